"""The checker is checked: against trying every order, and with bugs that were planted."""

import math
from random import Random

import pytest

from tests.crash.history import NEVER, READ, WRITE, Operation, explain, explain_by_trying

HISTORIES = 4000


def random_history(random: Random) -> list[Operation]:
    """Return a few overlapping operations; about half of such histories make sense."""
    count = random.randint(2, 7)
    moments = random.sample(range(100), 2 * count)
    spans = [sorted(moments[2 * number : 2 * number + 2]) for number in range(count)]
    kinds = [random.choice((WRITE, READ)) for _ in spans]
    written = kinds.count(WRITE)
    values = iter(range(1, written + 1))
    history = []
    for (start, end), kind in zip(spans, kinds, strict=True):
        if kind == WRITE:
            unknown = random.random() < 0.2
            history.append(Operation(start, NEVER if unknown else end, WRITE, next(values)))
        else:
            history.append(Operation(start, end, READ, random.choice([None, *range(1, written + 1)])))
    return history


def test_it_agrees_with_trying_every_order() -> None:
    random = Random(20)
    sensible = 0
    for _ in range(HISTORIES):
        history = random_history(random)
        expected = explain_by_trying(history)
        assert (explain(history) is None) == expected, history
        sensible += expected

    assert HISTORIES * 0.2 < sensible < HISTORIES * 0.8


@pytest.mark.parametrize(
    ("bug", "history"),
    [
        (
            "a stale read",
            [Operation(0, 1, WRITE, 1), Operation(2, 3, WRITE, 2), Operation(4, 5, READ, 2), Operation(6, 7, READ, 1)],
        ),
        ("a lost write", [Operation(0, 1, WRITE, 1), Operation(2, 3, WRITE, 2), Operation(4, 5, READ, 1)]),
        ("an acknowledged write that is not there", [Operation(0, 1, WRITE, 1), Operation(2, 3, READ, None)]),
        ("a value from nowhere", [Operation(0, 1, WRITE, 1), Operation(2, 3, READ, 7)]),
        ("a value from the future", [Operation(0, 1, READ, 1), Operation(2, 3, WRITE, 1)]),
        (
            "an unknown write that was seen and is gone",
            [
                Operation(0, 1, WRITE, 1),
                Operation(2, NEVER, WRITE, 2),
                Operation(3, 4, READ, 2),
                Operation(5, 6, READ, 1),
            ],
        ),
    ],
)
def test_a_planted_bug_is_noticed(bug: str, history: list[Operation]) -> None:
    assert explain(history) is not None, bug
    assert not explain_by_trying(history), bug


def test_an_unknown_write_may_take_place_late_or_never() -> None:
    seen_late = [Operation(0, NEVER, WRITE, 1), Operation(5, 6, READ, None), Operation(7, 8, READ, 1)]
    never_seen = [Operation(0, NEVER, WRITE, 1), Operation(5, 6, READ, None), Operation(7, 8, READ, None)]

    assert explain(seen_late) is None
    assert explain(never_seen) is None


def test_a_long_history_takes_no_square_of_its_length() -> None:
    """The count of comparisons is not measured; a checker that compared all pairs would not end."""
    history = []
    for number in range(100_000):
        moment = number * 2.0
        history.append(Operation(moment, moment + 1, WRITE, number))
        history.append(Operation(moment + 1.1, moment + 1.2, READ, number))

    assert explain(history) is None
    assert explain([*history, Operation(math.ldexp(1, 40), math.ldexp(1, 40) + 1, READ, 5)]) is not None
