"""Ends and partition counts that are kept, against those that are counted anew: any history, asked at any time."""

from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.coordinator.latest import LISTED_PARTITIONS_MAX, Latest
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import Topics
from offsetd.group import Group
from offsetd.record import Reason, TopicOffsets, Who, decode_entries, encode_group_tombstone, encode_tombstone
from offsetd.rows import checkpoint_rows, restore
from offsetd.table import SlotTable, TopicIndex, apply, apply_commit
from tests.histories import SLOTS, TOPICS, Step, encode, slot_of, steps

NO_END = (1 << 63) - 1
WHO = Who("", "", "")


def counted(index: TopicIndex, name: str, partition: int) -> int:
    """Find the highest offset the slow way."""
    rows = [group.get(name, partition) for group in index.groups.get(name, ())]
    return max((row.offset for row in rows if row is not None and 0 <= row.offset < NO_END), default=-1)


def partitions(index: TopicIndex, name: str) -> int:
    """Count a topic's partitions the slow way."""
    named = max((group.partitions(name) for group in index.groups.get(name, ())), default=0)
    return min(max(named, 1), LISTED_PARTITIONS_MAX)


@settings(derandomize=True, deadline=None, max_examples=120)
@given(history=st.lists(st.tuples(steps, st.sampled_from((None, None, *TOPICS))), max_size=16))
def test_what_is_kept_is_what_would_be_counted(history: list[tuple[Step, str | None]]) -> None:
    index = TopicIndex()
    tables = [SlotTable(slot, index) for slot in range(SLOTS)]
    ends = Latest(index)
    topics = Topics(cluster_id="c", index=index, limits=Limits(), known={})

    for step, asked in history:
        apply(tables[slot_of(step.group)], decode_entries(b"\x91" + encode(step))[0])
        if asked is not None:
            assert topics.partitions(asked) == partitions(index, asked)
            for partition in (0, 1, 5, 40, 1000):
                assert ends.get(asked, partition) == counted(index, asked, partition)

    for name in TOPICS:
        assert topics.partitions(name) == partitions(index, name)
        assert [ends.get(name, partition) for partition in range(64)] == [
            counted(index, name, partition) for partition in range(64)
        ]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(history=st.lists(steps, max_size=10))
def test_a_restart_counts_the_same_partitions(history: list[Step]) -> None:
    index, again = TopicIndex(), TopicIndex()
    tables = [SlotTable(slot, index) for slot in range(SLOTS)]
    for step in history:
        apply(tables[slot_of(step.group)], decode_entries(b"\x91" + encode(step))[0])

    for table in tables:
        fresh = SlotTable(table.slot, again)
        for group_id, group in table.groups.items():
            for name, value in checkpoint_rows(group):
                restore(fresh, group_id, name, value)

    topics = Topics(cluster_id="c", index=again, limits=Limits(), known={})
    assert {name: topics.partitions(name) for name in again.groups} == {
        name: partitions(again, name) for name in again.groups
    }


def commit(table: SlotTable, group: str, offsets: dict[int, int], topic: str = "t") -> None:
    numbers = pack(f">{len(offsets)}i", *offsets)
    values = pack(f">{len(offsets)}q", *offsets.values())
    apply_commit(table, group, 1 << 41, WHO, (TopicOffsets(topic, numbers, values),))


def made(groups: int, *, partitions: int = 1) -> tuple[SlotTable, Latest]:
    index = TopicIndex()
    table = SlotTable(0, index)
    for number in range(groups):
        commit(table, f"g-{number}", dict.fromkeys(range(partitions), number))
    return table, Latest(index)


def test_only_groups_that_changed_are_looked_at_again() -> None:
    table, ends = made(1000)
    first = ends.behind("t")
    ends.get("t", 0)
    quiet = ends.behind("t")
    commit(table, "g-3", {0: 5000})
    commit(table, "g-4", {0: 7})

    assert (first, quiet, ends.behind("t")) == (1000, 0, 2)
    assert ends.get("t", 0) == 5000


def test_when_the_foremost_group_goes_back_the_next_one_is_found() -> None:
    table, ends = made(1000)
    before = ends.get("t", 0)
    commit(table, "g-999", {0: 5})

    assert (before, ends.get("t", 0)) == (999, 998)


def test_topics_that_nobody_asks_for_cost_nothing() -> None:
    table, ends = made(10)
    commit(table, "g", {0: 1}, topic="other")
    ends.get("other", 0)
    commit(table, "g", {0: 1})

    assert set(table.index.touched) == {"other"}


def test_a_topic_that_goes_is_no_longer_watched_and_comes_back_empty() -> None:
    table, ends = made(2)
    before = ends.get("t", 0)
    for group in ("g-0", "g-1"):
        _drop(table, group)
    gone = (ends.get("t", 0), dict(table.index.touched), dict(table.index.groups))
    commit(table, "new", {0: 3})

    assert before == 1
    assert gone == (-1, {}, {})
    assert ends.get("t", 0) == 3


def _drop(table: SlotTable, group: str) -> None:
    apply(table, decode_entries(b"\x91" + encode_group_tombstone(0, group, 1 << 41, WHO, Reason.DELETED))[0])


def test_an_end_goes_back_when_the_offset_that_made_it_is_removed() -> None:
    table, ends = made(3, partitions=2)
    commit(table, "g-2", {9000: 50})
    before = [ends.get("t", partition) for partition in (0, 1, 9000)]
    topics = Topics(cluster_id="c", index=table.index, limits=Limits(), known={})
    counted_before = topics.partitions("t")

    gone = encode_tombstone(0, "g-2", 1 << 41, WHO, Reason.DELETED, [("t", pack(">2i", 1, 9000))])
    apply(table, decode_entries(b"\x91" + gone)[0])

    assert (before, counted_before) == ([2, 2, 50], 9001)
    assert [ends.get("t", partition) for partition in (0, 1, 9000)] == [2, 1, -1]
    assert topics.partitions("t") == 2


def test_what_topics_have_left_behind_is_bounded() -> None:
    index = TopicIndex()
    table = SlotTable(0, index)
    ends = Latest(index)
    for number in range(100):
        commit(table, "g", {0: 1}, topic=f"t-{number}")
        ends.get(f"t-{number}", 0)
        _drop(table, "g")

    assert len(ends._known) <= 2


def test_a_look_at_very_many_groups_gives_others_their_turn() -> None:
    table, ends = made(5000, partitions=3)
    turns = 0
    for _ in ends.catch_up("t"):
        turns += 1
        commit(table, f"g-{turns}", {0: 10_000 + turns})

    assert turns > 5
    assert ends.behind("t") == 0
    assert ends.get("t", 0) == 10_000 + turns


def test_a_topic_that_vanishes_between_two_slices_ends_the_look() -> None:
    table, ends = made(2000)
    look = ends.catch_up("t")
    next(look)
    for group in list(table.groups):
        _drop(table, group)

    assert list(look) == []
    assert ends.get("t", 0) == -1


@pytest.mark.parametrize("offset", [-1, -2, NO_END])
def test_offsets_that_say_nothing_of_an_end_are_left_out(offset: int) -> None:
    table, ends = made(1)
    commit(table, "odd", {0: offset, 1: offset})

    assert (ends.get("t", 0), ends.get("t", 1)) == (0, -1)


def test_partitions_above_those_that_are_listed_have_no_end() -> None:
    table, ends = made(1)
    commit(table, "far", {LISTED_PARTITIONS_MAX - 1: 5, LISTED_PARTITIONS_MAX: 6, (1 << 31) - 1: 7})

    assert ends.get("t", LISTED_PARTITIONS_MAX - 1) == 5
    assert ends.get("t", LISTED_PARTITIONS_MAX) == -1


def test_the_count_of_partitions_is_kept_and_counted_anew_only_after_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = made(50, partitions=3)
    topics = Topics(cluster_id="c", index=table.index, limits=Limits(), known={})
    looked: list[str] = []
    counting = Group.partitions

    def spy(self: Any, topic: str) -> int:
        looked.append(topic)
        return counting(self, topic)

    monkeypatch.setattr(Group, "partitions", spy)
    commit(table, "more", {6: 1})
    kept = topics.partitions("t")
    quiet = len(looked)
    _drop(table, "more")

    assert (kept, quiet) == (7, 0)
    assert (topics.partitions("t"), topics.partitions("t")) == (3, 3)
    assert len(looked) == 50
