"""What a commit writes and what it is refused with."""

from typing import Any

import pytest

from offsetd.coordinator.commit import Decision, decide_commit, refuse_commit, unchanged_since
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.group import Group
from offsetd.record import Who
from offsetd.table import SlotTable, TopicIndex, apply_commit
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


@pytest.mark.parametrize("member_id", ["", "m-1"])
@pytest.mark.parametrize("instance_id", [None, "", "i-1"])
@pytest.mark.parametrize("generation", [-1, -2, -(1 << 31)])
@pytest.mark.parametrize("known", [False, True])
def test_without_a_generation_a_simple_group_takes_a_commit_whatever_member_it_names(
    known: bool, generation: int, instance_id: str | None, member_id: str
) -> None:
    request = commit(
        partition(0),
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
    )

    decision = decide(request, group=Group() if known else None)

    assert codes(decision) == {("orders", 0): 0}
    assert len(decision.topics) == 1


@pytest.mark.parametrize("version", range(1, 10))
@pytest.mark.parametrize("generation", [0, 1, (1 << 31) - 1])
def test_a_generation_of_an_unknown_group_is_refused_as_its_version_knows(version: int, generation: int) -> None:
    decision = decide(commit(partition(0), generation_id_or_member_epoch=generation), version=version)

    code = Code.GROUP_ID_NOT_FOUND if version >= 9 else Code.ILLEGAL_GENERATION
    assert codes(decision) == {("orders", 0): code}


def test_places_are_judged_before_the_group_and_the_group_before_metadata() -> None:
    topics = (
        OffsetCommitRequestTopic(name="a b", partitions=(partition(0, committed_metadata="m" * 5000),)),
        OffsetCommitRequestTopic(name="good", partitions=(partition(-1), partition(0, committed_metadata="m" * 5000))),
    )

    decision = decide(commit(topics=topics, generation_id_or_member_epoch=3))

    assert codes(decision) == {
        ("a b", 0): Code.INVALID_TOPIC_EXCEPTION,
        ("good", -1): Code.UNKNOWN_TOPIC_OR_PARTITION,
        ("good", 0): Code.GROUP_ID_NOT_FOUND,
    }
    assert decision.topics == ()


def test_a_commit_of_nothing_is_answered_with_nothing_and_makes_no_group() -> None:
    none, empty = decide(commit(topics=())), decide(commit())

    assert (none.reply.topics, none.topics, none.refused) == ((), (), False)
    assert (empty.reply.topics, empty.topics, empty.refused) == ((), (), False)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("m" * 10, True),
        ("m" * 11, False),
        ("\u00fc" * 10, True),
        ("\U0001f600" * 5, True),
        ("\U0001f600" * 5 + "m", False),
        ("\0" * 10, True),
        ("", True),
        (None, True),
    ],
)
def test_the_limit_of_metadata_is_in_utf16_units_and_inclusive(text: str | None, fits: bool) -> None:
    decision = decide(commit(partition(0, committed_metadata=text)), limits=Limits(metadata_units_max=10))

    assert codes(decision) == {("orders", 0): 0 if fits else Code.OFFSET_METADATA_TOO_LARGE}


@pytest.mark.parametrize("offset", [0, -1, -2, -(1 << 63), (1 << 63) - 1])
@pytest.mark.parametrize("epoch", [-1, -2, 0, (1 << 31) - 1])
def test_offsets_and_epochs_are_kept_as_they_are_whatever_they_say(offset: int, epoch: int) -> None:
    table = table_with(commit(partition(0, offset, committed_leader_epoch=epoch)))

    found = table.groups["billing"].get("orders", 0)
    assert found is not None
    assert (found.offset, found.leader_epoch) == (offset, epoch)


def test_a_smaller_offset_overwrites_a_larger_one() -> None:
    table = table_with(commit(partition(0, 100)))

    apply_commit(table, "billing", NOW, WHO, decide(commit(partition(0, 1))).topics)

    found = table.groups["billing"].get("orders", 0)
    assert found is not None
    assert found.offset == 1


@pytest.mark.parametrize(("retention_ms", "expiry_ms"), [(-1, None), (0, NOW), (1, NOW + 1), (-2, NOW - 2)])
def test_a_retention_of_the_request_counts_from_now(retention_ms: int, expiry_ms: int | None) -> None:
    found = table_with(commit(partition(0), retention_time_ms=retention_ms)).groups["billing"].get("orders", 0)

    assert found is not None
    assert found.expiry_ms == expiry_ms


def test_a_time_of_the_clients_own_is_kept_beside_those_of_others() -> None:
    request = commit(partition(0, commit_timestamp=5), partition(1), partition(2, commit_timestamp=-(1 << 63)))
    group = table_with(request).groups["billing"]

    moments = [row.time_ms for _, row in group.rows("orders")]
    # The smallest time of all means "no row here", so it is moved up by one.
    assert moments == [5, NOW, -(1 << 63) + 1]


def test_a_refusal_of_all_names_every_partition_and_no_empty_topic() -> None:
    topics = (
        OffsetCommitRequestTopic(name="empty", partitions=()),
        OffsetCommitRequestTopic(name="orders", partitions=(partition(3), partition(3), partition(-1))),
        OffsetCommitRequestTopic(name="orders", partitions=(partition(0),)),
    )

    reply = refuse_commit(commit(topics=topics), Code.COORDINATOR_LOAD_IN_PROGRESS)

    assert [(topic.name, [tuple(row) for row in topic.partitions]) for topic in reply.topics] == [
        ("orders", [(3, 14), (3, 14), (-1, 14)]),
        ("orders", [(0, 14)]),
    ]


@pytest.mark.parametrize(
    ("again", "same"),
    [
        (commit(partition(0, 1), partition(5, 2, committed_metadata="m")), True),
        (commit(partition(5, 2, committed_metadata="m"), partition(0, 1)), True),
        (commit(partition(900_000, 3, committed_leader_epoch=4)), True),
        (commit(partition(0, 1), partition(900_000, 3, committed_leader_epoch=4)), True),
        (commit(partition(0, 1), partition(5, 3, committed_metadata="m")), False),
        (commit(partition(0, 1), partition(5, 2)), False),
        (commit(partition(0, 1), partition(4, 0)), False),
        (commit(partition(900_000, 3)), False),
        (commit(partition(0, 1), partition(900_001, 3)), False),
    ],
)
def test_scattered_partitions_repeat_as_neighbours_do(again: OffsetCommitRequest, same: bool) -> None:
    table = table_with(
        commit(
            partition(0, 1),
            partition(5, 2, committed_metadata="m"),
            partition(900_000, 3, committed_leader_epoch=4),
        )
    )

    assert unchanged_since(table.groups["billing"], decide(again).topics) == (NOW if same else None)


def test_the_oldest_time_of_all_topics_of_a_repetition_counts() -> None:
    table = table_with(commit(partition(0, 1)))
    apply_commit(table, "billing", NOW + 5, WHO, decide(commit(partition(7, 1), topic="later")).topics)
    both = (
        OffsetCommitRequestTopic(name="later", partitions=(partition(7, 1),)),
        OffsetCommitRequestTopic(name="orders", partitions=(partition(0, 1),)),
    )

    since = [
        unchanged_since(table.groups["billing"], decide(commit(topics=topics)).topics) for topics in (both, both[:1])
    ]

    assert since == [NOW, NOW + 5]
