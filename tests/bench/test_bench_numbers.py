"""The arithmetic behind the tables."""

import pytest

from offsetd.bench.numbers import Spread, percentile, ratios


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (0.991, 100.0), (1.0, 100.0)])
def test_a_percentile_is_a_value_that_was_seen(share: float, value: float) -> None:
    assert percentile([float(number) for number in range(1, 101)], share) == value


def test_the_percentile_of_nothing_is_zero() -> None:
    assert percentile([], 0.99) == 0.0


def test_ratios_are_taken_round_by_round() -> None:
    """A machine that was slow in one round was slow for both."""
    assert ratios([20.0, 200.0, 30.0], [10.0, 100.0, 10.0]) == Spread(median=2.0, low=2.0, high=3.0)
