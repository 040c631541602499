"""What a fetch shows, in every version's place for it."""

import pytest

from offsetd.coordinator.fetch import answer_fetch
from offsetd.record import TopicOffsets, Who
from offsetd.table import Group, SlotTable, TopicIndex, apply_commit
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


@pytest.mark.parametrize("version", [1, 5, 9])
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
