"""What a commit writes and what it is refused with."""

from typing import Any

import pytest

from offsetd.coordinator.commit import Decision, decide_commit, unchanged_since
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.record import Who
from offsetd.table import Group, SlotTable, TopicIndex, apply_commit
from protocol.errors import Code
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

NOW = 1_800_000_000_000
WHO = Who("client", "/127.0.0.1", "")


def partition(index: int, offset: int = 42, **more: Any) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, **more)


def commit(*partitions: OffsetCommitRequestPartition, topic: str = "orders", **more: Any) -> OffsetCommitRequest:
    topics = (OffsetCommitRequestTopic(name=topic, partitions=partitions),)
    return OffsetCommitRequest(**{"group_id": "billing", "generation_id_or_member_epoch": -1, "topics": topics, **more})


def decide(
    request: OffsetCommitRequest,
    *,
    version: int = 9,
    group: Group | None = None,
    limits: Limits | None = None,
    known: dict[str, KnownTopic] | None = None,
) -> Decision:
    limits = limits or Limits()
    topics = Topics(cluster_id="c", index=TopicIndex(), limits=limits, known=known or {})
    return decide_commit(request, version=version, group=group, topics=topics, limits=limits, now_ms=NOW)


def codes(decision: Decision) -> dict[tuple[str, int], int]:
    return {
        (topic.name, row.partition_index): row.error_code for topic in decision.reply.topics for row in topic.partitions
    }


def table_with(request: OffsetCommitRequest) -> SlotTable:
    table = SlotTable(0, TopicIndex())
    apply_commit(table, request.group_id, NOW, WHO, decide(request).topics)
    return table


def test_a_plain_commit_is_accepted_and_keeps_its_values_verbatim() -> None:
    request = commit(partition(0, -2, committed_leader_epoch=-2, committed_metadata="x\0"), partition(7, (1 << 63) - 1))

    decision = decide(request)
    table = SlotTable(0, TopicIndex())
    apply_commit(table, "billing", NOW, WHO, decision.topics)

    assert codes(decision) == {("orders", 0): 0, ("orders", 7): 0}
    first, last = table.groups["billing"].get("orders", 0), table.groups["billing"].get("orders", 7)
    assert first is not None
    assert last is not None
    assert (first.offset, first.leader_epoch, first.metadata, first.time_ms) == (-2, -2, "x\0", NOW)
    assert (last.offset, last.metadata) == ((1 << 63) - 1, "")


def test_null_metadata_is_stored_as_the_empty_text() -> None:
    table = table_with(commit(partition(0, committed_metadata=None)))
    found = table.groups["billing"].get("orders", 0)
    assert found is not None
    assert found.metadata == ""


@pytest.mark.parametrize(
    ("version", "known", "code"),
    [(8, False, Code.ILLEGAL_GENERATION), (9, False, Code.GROUP_ID_NOT_FOUND), (9, True, Code.UNKNOWN_MEMBER_ID)],
)
def test_a_generation_needs_a_member(version: int, known: bool, code: Code) -> None:
    decision = decide(
        commit(partition(0), generation_id_or_member_epoch=3), version=version, group=Group() if known else None
    )
    assert codes(decision) == {("orders", 0): code}
    assert decision.topics == ()


def test_metadata_over_the_limit_costs_only_its_own_partition() -> None:
    longest, longer = "m" * 4096, "m" * 4095 + "\U0001f600"
    decision = decide(commit(partition(0, committed_metadata=longest), partition(1, committed_metadata=longer)))
    assert codes(decision) == {("orders", 0): 0, ("orders", 1): Code.OFFSET_METADATA_TOO_LARGE}
    assert [len(topic.partitions) // 4 for topic in decision.topics] == [1]


def test_an_unknown_topic_is_accepted_unless_strict() -> None:
    strict = Limits(strict=True)
    known = {"orders": KnownTopic(partitions=2)}
    assert codes(decide(commit(partition(5)))) == {("orders", 5): 0}
    assert codes(decide(commit(partition(0)), limits=strict)) == {("orders", 0): Code.UNKNOWN_TOPIC_OR_PARTITION}
    assert codes(decide(commit(partition(1), partition(2)), limits=strict, known=known)) == {
        ("orders", 1): 0,
        ("orders", 2): Code.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "n" * 250])
def test_a_name_that_no_topic_can_have_is_refused_for_good(name: str) -> None:
    assert codes(decide(commit(partition(0), topic=name))) == {(name, 0): Code.INVALID_TOPIC_EXCEPTION}


def test_a_negative_partition_does_not_exist() -> None:
    assert codes(decide(commit(partition(-1)))) == {("orders", -1): Code.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_group_id_has_a_limit_of_our_own() -> None:
    assert codes(decide(commit(partition(0), group_id="g" * 1025))) == {("orders", 0): Code.INVALID_GROUP_ID}
    assert codes(decide(commit(partition(0), group_id="g" * 1024))) == {("orders", 0): 0}
    assert codes(decide(commit(partition(0), group_id=""))) == {("orders", 0): 0}


def test_refusals_for_the_topics_sake_come_first_and_empty_topics_not_at_all() -> None:
    topics = (
        OffsetCommitRequestTopic(name="empty", partitions=()),
        OffsetCommitRequestTopic(name="good", partitions=(partition(0),)),
        OffsetCommitRequestTopic(name="b a d", partitions=(partition(0),)),
    )
    decision = decide(commit(topics=topics))
    assert [topic.name for topic in decision.reply.topics] == ["b a d", "good"]


def test_a_partition_named_twice_is_answered_twice_and_the_last_one_wins() -> None:
    request = commit(partition(3, 1, committed_metadata="first"), partition(3, 2))
    found = table_with(request).groups["billing"].get("orders", 3)
    assert found is not None
    assert (found.offset, found.metadata) == (2, "")
    assert [row.partition_index for row in decide(request).reply.topics[0].partitions] == [3, 3]


def test_retention_of_the_request_and_its_timestamps_are_kept() -> None:
    kept = table_with(commit(partition(0, commit_timestamp=5), retention_time_ms=1000)).groups["billing"]
    endless = table_with(commit(partition(0), retention_time_ms=(1 << 63) - 1)).groups["billing"]
    one, other = kept.get("orders", 0), endless.get("orders", 0)
    assert one is not None
    assert other is not None
    assert (one.time_ms, one.expiry_ms) == (5, NOW + 1000)
    assert other.expiry_ms == (1 << 63) - 1


@pytest.mark.parametrize(
    ("again", "same"),
    [
        (commit(partition(0, 1), partition(1, 2, committed_metadata="m")), True),
        (commit(partition(1, 2, committed_metadata="m")), True),
        (commit(partition(0, 1), partition(1, 3, committed_metadata="m")), False),
        (commit(partition(0, 1), partition(1, 2)), False),
        (commit(partition(0, 1, committed_leader_epoch=4)), False),
        (commit(partition(0, 1), retention_time_ms=5), False),
        (commit(partition(0, 1), partition(1, 2, committed_metadata="m"), partition(2, 0)), False),
        (commit(partition(0, 1), topic="other"), False),
    ],
)
def test_only_a_commit_that_changes_nothing_is_a_repetition(again: OffsetCommitRequest, same: bool) -> None:
    table = table_with(commit(partition(0, 1), partition(1, 2, committed_metadata="m")))
    since = unchanged_since(table.groups["billing"], decide(again).topics)
    assert since == (NOW if same else None)


def test_a_repetition_over_an_expiry_that_it_would_clear_is_a_change() -> None:
    table = table_with(commit(partition(0, 1), retention_time_ms=5))
    assert unchanged_since(table.groups["billing"], decide(commit(partition(0, 1))).topics) is None
