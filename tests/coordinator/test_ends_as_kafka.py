"""ListOffsets and Fetch where something is odd about the request: the same refusals as Kafka's, in the same order."""

import pytest

from offsetd.coordinator.ends import answer_fetch_records, answer_list_offsets
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.table import TopicIndex
from protocol.errors import Code
from protocol.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic, FetchResponsePartition
from protocol.list_offsets import ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic

LATEST = -1


def topics() -> Topics:
    known = {"orders": KnownTopic(4), "payments": KnownTopic(4)}
    return Topics(cluster_id="c", index=TopicIndex(), limits=Limits(), known=known)


def asked(index: int, timestamp: int = LATEST, epoch: int = -1) -> ListOffsetsRequestPartition:
    return ListOffsetsRequestPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)


def listed(
    *parts: tuple[str, list[ListOffsetsRequestPartition]], isolation: int = 0, version: int = 11
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return names, partitions and codes."""
    request = ListOffsetsRequest(
        isolation_level=isolation,
        topics=tuple(ListOffsetsRequestTopic(name=name, partitions=tuple(rows)) for name, rows in parts),
    )
    reply = answer_list_offsets(request, version=version, topics=topics())
    return [(topic.name, [(row.partition_index, row.error_code) for row in topic.partitions]) for topic in reply.topics]


def test_a_topic_that_is_named_twice_is_answered_once() -> None:
    found = listed(("orders", [asked(0)]), ("payments", [asked(0)]), ("orders", [asked(1)]))

    assert found == [("orders", [(0, 0), (1, 0)]), ("payments", [(0, 0)])]


def test_a_partition_that_is_named_twice_is_refused_once_wherever_it_stands() -> None:
    found = listed(("orders", [asked(0), asked(1)]), ("orders", [asked(0)]))

    assert found == [("orders", [(0, Code.INVALID_REQUEST), (1, 0)])]


def test_a_topic_without_partitions_is_not_answered() -> None:
    assert listed(("orders", [])) == []


def test_a_time_that_no_version_knows_is_refused_before_the_topic_is_looked_for() -> None:
    assert listed(("nowhere", [asked(0, -100)])) == [("nowhere", [(0, Code.UNSUPPORTED_VERSION)])]


def test_an_unknown_isolation_level_refuses_the_whole_request_as_it_was_asked() -> None:
    found = listed(("orders", [asked(0), asked(0)]), ("nowhere", [asked(0)]), isolation=5)

    assert found == [("orders", [(0, -1), (0, -1)]), ("nowhere", [(0, -1)])]


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, 0), (0, 0), (1, Code.UNKNOWN_LEADER_EPOCH), (-2, Code.FENCED_LEADER_EPOCH)]
)
def test_a_leader_epoch_must_be_the_present_one_or_none(epoch: int, code: int) -> None:
    assert listed(("orders", [asked(0, epoch=epoch)])) == [("orders", [(0, code)])]


def fetched(index: int, offset: int, *, topic: str = "orders", isolation: int = 0) -> FetchResponsePartition:
    partitions = (FetchRequestPartition(partition=index, fetch_offset=offset),)
    request = FetchRequest(isolation_level=isolation, topics=(FetchRequestTopic(topic=topic, partitions=partitions),))
    reply = answer_fetch_records(request, version=12, topics=topics())
    return reply.responses[0].partitions[0]


def test_an_offset_before_the_start_is_out_of_range() -> None:
    found = fetched(0, -1)

    assert (found.error_code, found.high_watermark, found.log_start_offset) == (Code.OFFSET_OUT_OF_RANGE, -1, -1)


def test_an_offset_beyond_every_commit_is_not_refused() -> None:
    found = fetched(0, 500)

    assert (found.error_code, found.high_watermark, found.records) == (Code.NONE, 500, b"")


@pytest.mark.parametrize(
    ("topic", "offset", "isolation", "aborted"),
    [("orders", 0, 0, None), ("orders", 0, 1, ()), ("orders", -1, 1, None), ("nowhere", 0, 0, ())],
)
def test_aborted_transactions_are_null_where_kafka_says_null(
    topic: str, offset: int, isolation: int, aborted: tuple[()] | None
) -> None:
    assert fetched(0, offset, topic=topic, isolation=isolation).aborted_transactions == aborted


def test_a_fetch_of_a_topic_without_partitions_is_not_answered() -> None:
    request = FetchRequest(topics=(FetchRequestTopic(topic="orders"),))

    assert answer_fetch_records(request, version=12, topics=topics()).responses == ()
