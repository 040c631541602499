"""How a commit's reply is laid out where topics are unknown, empty or named twice: as Kafka's is."""

import pytest

from offsetd.coordinator.commit import decide_commit
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.table import TopicIndex
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic

Layout = list[tuple[str, list[tuple[int, int]]]]


def layout(*topics: tuple[str, list[int]], strict: bool = True) -> Layout:
    """Commit partitions of topics, of which only orders and payments are known; return names, partitions and codes."""
    limits = Limits(strict=strict)
    known = {"orders": KnownTopic(4), "payments": KnownTopic(4)}
    request = OffsetCommitRequest(
        group_id="billing",
        topics=tuple(
            OffsetCommitRequestTopic(
                name=name, partitions=tuple(OffsetCommitRequestPartition(partition_index=index) for index in indexes)
            )
            for name, indexes in topics
        ),
    )
    places = Topics(cluster_id="c", index=TopicIndex(), limits=limits, known=known)
    reply = decide_commit(request, version=9, group=None, topics=places, limits=limits, now_ms=0).reply
    return [(topic.name, [(row.partition_index, row.error_code) for row in topic.partitions]) for topic in reply.topics]


def test_a_topic_that_is_named_twice_is_answered_twice() -> None:
    asked = (("orders", [0]), ("payments", [1]), ("orders", [0, 2]))

    assert layout(*asked) == [("orders", [(0, 0)]), ("payments", [(1, 0)]), ("orders", [(0, 0), (2, 0)])]


def test_once_a_place_is_refused_each_topic_is_answered_once_and_refusals_come_first() -> None:
    asked = (("orders", [0, 9]), ("nowhere", [1]), ("payments", [1]), ("orders", [2]), ("payments", [3]))

    assert layout(*asked) == [
        ("orders", [(9, 3), (0, 0), (2, 0)]),
        ("nowhere", [(1, 3)]),
        ("payments", [(1, 0), (3, 0)]),
    ]


@pytest.mark.parametrize(("strict", "name"), [(True, "nowhere"), (True, "a b"), (False, "a b")])
def test_a_topic_that_cannot_be_is_listed_without_partitions_too(strict: bool, name: str) -> None:
    assert layout((name, []), ("orders", [0]), strict=strict) == [(name, []), ("orders", [(0, 0)])]


def test_a_known_topic_without_partitions_is_not_listed() -> None:
    assert layout(("orders", []), ("payments", [0])) == [("payments", [(0, 0)])]


def test_a_negative_partition_of_any_topic_is_unknown() -> None:
    assert layout(("anything", [-1, 0]), strict=False) == [("anything", [(-1, 3), (0, 0)])]
