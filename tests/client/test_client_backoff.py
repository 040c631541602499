"""Pauses: they grow, they are drawn evenly, they end."""

from random import Random

import pytest

from offsetd.client.backoff import Backoff
from offsetd.client.limits import Limits


class Largest(Random):
    """Draws the bound itself."""

    def uniform(self, a: float, b: float) -> float:
        """Return the larger end."""
        return b


def test_a_pause_is_bounded_by_twice_the_one_before_up_to_the_largest() -> None:
    backoff = Backoff(first_s=0.1, max_s=1.0, random=Largest())

    assert [backoff.next_s() for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_a_pause_may_be_anything_down_to_none() -> None:
    backoff = Backoff(first_s=1.0, max_s=1.0, random=Random(7))
    pauses = [backoff.next_s() for _ in range(1000)]

    assert 0 <= min(pauses) < 0.05
    assert 0.95 < max(pauses) <= 1.0
    assert sum(pauses) / 1000 == pytest.approx(0.5, abs=0.05)


def test_a_success_begins_anew() -> None:
    backoff = Backoff(first_s=0.1, max_s=60.0, random=Largest())
    for _ in range(200):
        backoff.next_s()
    backoff.reset()

    assert backoff.next_s() == pytest.approx(0.1)


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="total_timeout_s is 0"):
        Limits(total_timeout_s=0)
    with pytest.raises(ValueError, match="backoff_first_s is 2"):
        Limits(backoff_first_s=2, backoff_max_s=1)
