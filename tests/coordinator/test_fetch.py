"""What a fetch shows, in every version's place for it."""

from struct import pack
from typing import Any

import pytest

from offsetd.coordinator.fetch import answer_fetch
from offsetd.group import Group
from offsetd.record import TopicOffsets, Who
from offsetd.table import SlotTable, TopicIndex, apply_commit
from protocol.errors import Code
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic

ORDERS = OffsetFetchRequestTopic(name="orders", partition_indexes=(0, 1, 0))


def group() -> Group:
    table = SlotTable(0, TopicIndex())
    offsets = TopicOffsets("orders", b"\0\0\0\0", (42).to_bytes(8, "big"), (3).to_bytes(4, "big"), metadata=((0, "m"),))
    apply_commit(table, "g", 1, Who("", "", ""), (offsets,))
    return table.groups["g"]


def rows(topics: object) -> list[tuple[str, int, int, int, str, int]]:
    return [(topic.name, *row) for topic in topics for row in topic.partitions]  # type: ignore[attr-defined]


def test_a_partition_asked_for_twice_is_answered_twice_and_none_is_minus_one() -> None:
    reply = answer_fetch(
        OffsetFetchRequest(group_id="g", topics=(ORDERS,)), version=5, lookup=lambda _: (Code.NONE, group())
    )
    found = ("orders", 0, 42, 3, "m", 0)
    assert rows(reply.topics) == [found, ("orders", 1, -1, -1, "", 0), found]
    assert reply.error_code == 0


def test_null_topics_ask_for_all_and_an_unknown_group_has_none() -> None:
    request = OffsetFetchRequest(group_id="g", topics=None)
    assert rows(answer_fetch(request, version=5, lookup=lambda _: (Code.NONE, group())).topics) == [
        ("orders", 0, 42, 3, "m", 0)
    ]
    assert answer_fetch(request, version=5, lookup=lambda _: (Code.NONE, None)).topics == ()


def test_an_unknown_group_has_no_offset_and_no_error() -> None:
    reply = answer_fetch(
        OffsetFetchRequest(group_id="g", topics=(ORDERS,)), version=1, lookup=lambda _: (Code.NONE, None)
    )
    assert {row[2:] for row in rows(reply.topics)} == {(-1, -1, "", 0)}


@pytest.mark.parametrize("version", range(10))
def test_a_refusal_stands_above_and_on_every_partition(version: int) -> None:
    """aiokafka reads the code only on the partitions, others above them; none may take -1 for an answer."""
    asked = OffsetFetchRequestGroup(group_id="g", topics=(ORDERS,))
    request = OffsetFetchRequest(group_id="g", topics=(ORDERS,), groups=(asked,))
    reply = answer_fetch(request, version=version, lookup=lambda _: (Code.COORDINATOR_LOAD_IN_PROGRESS, None))
    topics = reply.groups[0].topics if version >= 8 else reply.topics
    above = reply.groups[0].error_code if version >= 8 else reply.error_code
    assert above == Code.COORDINATOR_LOAD_IN_PROGRESS
    assert {row[5] for row in rows(topics)} == {Code.COORDINATOR_LOAD_IN_PROGRESS}


def test_several_groups_are_answered_each_by_itself() -> None:
    asked = (
        OffsetFetchRequestGroup(group_id="g", topics=None),
        OffsetFetchRequestGroup(group_id="loading", topics=(ORDERS,)),
    )

    def lookup(group_id: str) -> tuple[Code, Group | None]:
        return (Code.NONE, group()) if group_id == "g" else (Code.COORDINATOR_LOAD_IN_PROGRESS, None)

    reply = answer_fetch(OffsetFetchRequest(groups=asked), version=9, lookup=lookup)
    assert [(one.group_id, one.error_code, len(one.topics)) for one in reply.groups] == [
        ("g", 0, 1),
        ("loading", 14, 1),
    ]


def fetched(asked: tuple[OffsetFetchRequestTopic, ...] | None, version: int, **more: Any) -> Any:
    one = OffsetFetchRequestGroup(group_id="g", topics=asked, **more)
    request = OffsetFetchRequest(group_id="g", topics=asked, groups=(one,), require_stable=True)
    reply = answer_fetch(request, version=version, lookup=lambda _: (Code.NONE, group()))
    return reply.groups[0].topics if version >= 8 else reply.topics


@pytest.mark.parametrize("version", range(10))
def test_topics_and_partitions_are_answered_as_often_and_in_the_order_they_are_asked_for(version: int) -> None:
    other = OffsetFetchRequestTopic(name="a b", partition_indexes=(7, -1))
    empty = OffsetFetchRequestTopic(name="empty", partition_indexes=())

    found = fetched((other, ORDERS, empty, other), version)

    assert [(topic.name, [row.partition_index for row in topic.partitions]) for topic in found] == [
        ("a b", [7, -1]),
        ("orders", [0, 1, 0]),
        ("empty", []),
        ("a b", [7, -1]),
    ]
    assert [row.committed_offset for topic in found for row in topic.partitions] == [-1, -1, 42, -1, 42, -1, -1]
    assert {row.error_code for topic in found for row in topic.partitions} == {0}


@pytest.mark.parametrize("version", range(10))
def test_an_empty_list_asks_for_nothing(version: int) -> None:
    assert fetched((), version) == ()


@pytest.mark.parametrize("version", range(2, 10))
def test_null_asks_for_all_that_the_group_has(version: int) -> None:
    found = fetched(None, version)

    assert rows(found) == [("orders", 0, 42, 3, "m", 0)]


@pytest.mark.parametrize(("member_id", "epoch"), [(None, -1), ("m-1", -1), ("m-1", 7), (None, 7)])
def test_members_are_not_looked_at_for_a_simple_group(member_id: str | None, epoch: int) -> None:
    found = fetched((ORDERS,), 9, member_id=member_id, member_epoch=epoch)

    assert [row.committed_offset for row in found[0].partitions] == [42, -1, 42]


def test_all_topics_come_in_the_order_of_their_first_commit_with_partitions_ascending() -> None:
    table = SlotTable(0, TopicIndex())
    for name, numbers in (("b", (5, 1)), ("a", (0,)), ("b", (900_000, 3))):
        packed = pack(f">{len(numbers)}i", *numbers)
        offsets = TopicOffsets(name, packed, pack(f">{len(numbers)}q", *numbers))
        apply_commit(table, "g", 1, Who("", "", ""), (offsets,))

    request = OffsetFetchRequest(group_id="g", topics=None)
    reply = answer_fetch(request, version=5, lookup=lambda _: (Code.NONE, table.groups["g"]))

    assert [row[:3] for row in rows(reply.topics)] == [
        ("b", 1, 1),
        ("b", 3, 3),
        ("b", 5, 5),
        ("b", 900_000, 900_000),
        ("a", 0, 0),
    ]
