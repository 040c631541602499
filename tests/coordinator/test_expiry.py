"""What expires when, and why a jumped clock expires nothing."""

from struct import pack

import pytest

from offsetd.coordinator.expiry import TRUST_AFTER_MS, ExpiryClock, expired, is_large
from offsetd.record import TopicOffsets, Who
from offsetd.table import SlotTable, TopicIndex, apply_commit

DAY = 24 * 3600 * 1000
WEEK = 7 * DAY
NOW = 1_800_000_000_000


def table(*, time_ms: int = NOW, expiry_ms: int | None = None) -> SlotTable:
    made = SlotTable(0, TopicIndex())
    topic = TopicOffsets(
        "t",
        pack(">2i", 0, 1),
        pack(">2q", 5, 6),
        expiries=None if expiry_ms is None else pack(">2q", expiry_ms, expiry_ms),
    )
    apply_commit(made, "g", time_ms, Who("", "", ""), (topic,))
    return made


def short(_: str) -> int | None:
    return WEEK


def long(_: str) -> int | None:
    return 100 * WEEK


def for_ever(_: str) -> int | None:
    return None


@pytest.mark.parametrize(("age", "gone"), [(WEEK - 1, False), (WEEK, True)])
def test_an_offset_expires_exactly_when_its_retention_is_over(age: int, gone: bool) -> None:
    found = list(expired(table(), now_ms=NOW + age, retention_ms=short, memberships={}))

    assert found == [("g", (("t", pack(">2i", 0, 1)),) if gone else (), False)]


@pytest.mark.parametrize(("late", "gone"), [(-1, False), (0, True)])
def test_an_expiry_of_its_own_overrides_the_retention_either_way(late: int, gone: bool) -> None:
    own = table(expiry_ms=NOW + 10 * WEEK)

    found = [
        list(expired(own, now_ms=NOW + 10 * WEEK + late, retention_ms=kept, memberships={}))
        for kept in (short, long, for_ever)
    ]

    assert [bool(topics) for ((_, topics, _),) in found] == [gone] * 3


def test_retention_may_be_none() -> None:
    assert list(expired(table(), now_ms=NOW + 1000 * WEEK, retention_ms=for_ever, memberships={})) == [("g", (), False)]


def test_a_clock_that_jumps_ahead_makes_nothing_old() -> None:
    clock = ExpiryClock(newest_ms=NOW, wall_ms=NOW, monotonic_ms=0)
    assert clock.now_ms(wall_ms=NOW + 1000 * DAY, monotonic_ms=600_000) == NOW + 600_000
    assert clock.now_ms(wall_ms=NOW + 1000 * DAY + 600_000, monotonic_ms=1_200_000) == NOW + 1_200_000


def test_a_clock_that_jumps_back_makes_nothing_old_either() -> None:
    clock = ExpiryClock(newest_ms=NOW, wall_ms=NOW, monotonic_ms=0)
    assert clock.now_ms(wall_ms=NOW - 1000 * DAY, monotonic_ms=600_000) == NOW - 1000 * DAY


def test_a_wall_clock_that_moved_evenly_for_a_day_is_believed_again() -> None:
    """After a long stop the log's newest time is old, and expiry must not stay late for ever."""
    clock = ExpiryClock(newest_ms=NOW - 30 * DAY, wall_ms=NOW, monotonic_ms=0)
    assert clock.now_ms(wall_ms=NOW + 1000, monotonic_ms=1000) == NOW - 30 * DAY + 1000
    assert clock.now_ms(wall_ms=NOW + TRUST_AFTER_MS, monotonic_ms=TRUST_AFTER_MS) == NOW + TRUST_AFTER_MS


def test_over_a_tenth_is_much() -> None:
    assert [is_large(expiring, 100) for expiring in (0, 1, 10, 11)] == [False, False, False, True]
