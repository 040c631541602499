"""Where logs begin and end as far as offsets can tell; empty answers to those who want messages."""

from struct import pack
from typing import Any

import pytest

from offsetd.coordinator.ends import (
    answer_fetch_records,
    answer_list_offsets,
    refuse_produce,
    topics_ended,
    topics_polled,
)
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.record import TopicOffsets, Who
from offsetd.table import SlotTable, TopicIndex, apply_commit
from protocol.errors import Code
from protocol.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic
from protocol.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponsePartition,
)
from protocol.produce import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
VERSIONS = range(12)


def topics(*, whole: bool = True) -> Topics:
    """Orders has committed offsets up to 42, payments none but a stated end."""
    table = SlotTable(0, TopicIndex())
    for group, offset in (("a", 42), ("b", 41), ("c", (1 << 63) - 1), ("d", -1)):
        row = TopicOffsets("orders", pack(">2i", 0, 1), pack(">2q", offset, -2))
        apply_commit(table, group, 1 << 41, Who("", "", ""), (row,))
    return Topics(
        cluster_id="c",
        index=table.index,
        limits=Limits(),
        known={"payments": KnownTopic(1, (1000,))},
        are_whole=lambda: whole,
    )


def listed(timestamp: int, *, version: int, topic: str = "orders", partition: int = 0, **more: Any) -> Any:
    asked = ListOffsetsRequestPartition(partition_index=partition, timestamp=timestamp, **more)
    request = ListOffsetsRequest(topics=(ListOffsetsRequestTopic(name=topic, partitions=(asked,)),))
    ((found,),) = (one.partitions for one in answer_list_offsets(request, version=version, topics=topics()).topics)
    return found


@pytest.mark.parametrize(("topic", "partition", "end"), [("orders", 0, 42), ("orders", 1, 0), ("payments", 0, 1000)])
@pytest.mark.parametrize("version", range(1, 12))
def test_earliest_is_0_and_latest_the_highest_commit(version: int, topic: str, partition: int, end: int) -> None:
    latest = listed(LATEST, version=version, topic=topic, partition=partition)
    earliest = listed(EARLIEST, version=version, topic=topic, partition=partition)

    assert (latest.error_code, latest.offset, latest.timestamp, latest.leader_epoch) == (0, end, -1, 0)
    assert (earliest.error_code, earliest.offset, earliest.timestamp, earliest.leader_epoch) == (0, 0, -1, 0)


def test_version_0_is_answered_with_a_list_of_offsets() -> None:
    found = [listed(timestamp, version=0) for timestamp in (LATEST, EARLIEST, 1_700_000_000_000)]

    assert [(one.error_code, one.old_style_offsets) for one in found] == [(0, (42,)), (0, (0,)), (0, ())]


@pytest.mark.parametrize("version", range(1, 12))
def test_a_time_is_found_in_no_message_because_there_is_none(version: int) -> None:
    found = listed(1_700_000_000_000, version=version)

    assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "since", "offset"),
    [
        (MAX_TIMESTAMP, 7, -1),
        (EARLIEST_LOCAL, 8, 0),
        (LATEST_TIERED, 9, -1),
        (EARLIEST_PENDING, 11, -1),
        (-7, 99, -1),
        (-(1 << 63), 99, -1),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_special_times_are_known_from_their_version_on(version: int, timestamp: int, since: int, offset: int) -> None:
    found = listed(timestamp, version=version)

    if version < since:
        assert (found.error_code, found.offset) == (Code.UNSUPPORTED_VERSION, -1)
    else:
        assert (found.error_code, found.offset) == (0, offset)


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("orders", 2), ("orders", -1), ("payments", 1)])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_does_not_exist_has_no_end(version: int, topic: str, partition: int) -> None:
    found = listed(LATEST, version=version, topic=topic, partition=partition)

    assert found == ListOffsetsResponsePartition(partition_index=partition, error_code=Code.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, 5])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_end_is_not_told_before_every_slot_is_loaded(version: int, timestamp: int) -> None:
    known = topics(whole=False)
    asked = ListOffsetsRequestPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        topics=tuple(ListOffsetsRequestTopic(name=name, partitions=(asked,)) for name in ("orders", "nowhere"))
    )

    answer = answer_list_offsets(request, version=version, topics=known)

    unknown = Code.OFFSET_NOT_AVAILABLE if version >= 5 else Code.LEADER_NOT_AVAILABLE
    codes = [topic.partitions[0].error_code for topic in answer.topics]
    assert codes == [unknown if timestamp == LATEST else 0, unknown]


def test_only_the_topics_whose_latest_is_asked_for_are_looked_at() -> None:
    first, last = (ListOffsetsRequestPartition(partition_index=0, timestamp=time) for time in (EARLIEST, LATEST))
    request = ListOffsetsRequest(
        topics=(
            ListOffsetsRequestTopic(name="a", partitions=(first,)),
            ListOffsetsRequestTopic(name="b", partitions=(first, last)),
            ListOffsetsRequestTopic(name="c", partitions=()),
        )
    )

    assert topics_ended(request) == ["b"]


# --- Fetch ----------------------------------------------------------------------------------------------------------


def poll(version: int, name: str, *, offset: int = 0) -> FetchRequest:
    partition = FetchRequestPartition(partition=0, fetch_offset=offset)
    topic_id = topics().topic_id(name) if version >= 13 else bytes(16)
    return FetchRequest(topics=(FetchRequestTopic(topic=name, topic_id=topic_id, partitions=(partition,)),))


@pytest.mark.parametrize("version", range(4, 17))
def test_a_poll_finds_nothing_up_to_the_end(version: int) -> None:
    (topic,) = answer_fetch_records(poll(version, "orders", offset=40), version=version, topics=topics()).responses
    (row,) = topic.partitions

    assert (row.error_code, row.records, row.high_watermark, row.last_stable_offset) == (0, b"", 42, 42)
    assert row.log_start_offset == 0
    if version >= 13:
        assert topic.topic_id == topics().topic_id("orders")
    else:
        assert topic.topic == "orders"


@pytest.mark.parametrize("version", range(4, 17))
def test_a_poll_of_what_does_not_exist_is_refused(version: int) -> None:
    (topic,) = answer_fetch_records(poll(version, "nowhere"), version=version, topics=topics()).responses

    code = Code.UNKNOWN_TOPIC_ID if version >= 13 else Code.UNKNOWN_TOPIC_OR_PARTITION
    assert [(row.error_code, row.high_watermark, row.records) for row in topic.partitions] == [(code, -1, b"")]


@pytest.mark.parametrize(("version", "names"), [(12, ["orders", "nowhere"]), (13, ["orders"])])
def test_the_ends_of_the_polled_topics_are_looked_at(version: int, names: list[str]) -> None:
    known, unknown = poll(version, "orders").topics[0], poll(version, "nowhere").topics[0]

    assert topics_polled(FetchRequest(topics=(known, unknown)), version=version, topics=topics()) == names


# --- Produce --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(14))
def test_messages_are_refused_for_good_and_in_words(version: int) -> None:
    """A code that clients retry would keep a misguided producer busy for ever."""
    rows = (ProduceRequestPartition(index=0, records=b"x"), ProduceRequestPartition(index=7, records=None))
    request = ProduceRequest(acks=1, topic_data=(ProduceRequestTopic(name="orders", partition_data=rows),))

    (topic,) = refuse_produce(request, version=version).responses

    code = Code.POLICY_VIOLATION if version >= 2 else Code.UNKNOWN_SERVER_ERROR
    assert topic.name == "orders"
    assert [(row.index, row.error_code, row.base_offset) for row in topic.partition_responses] == [
        (0, code, -1),
        (7, code, -1),
    ]
    assert all("no messages" in (row.error_message or "") for row in topic.partition_responses)
