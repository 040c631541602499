"""How far a streaming query has come, as Spark says it in JSON; pure.

Spark's Kafka source writes its position as ``{"topic": {"0": 5}}``, offsets of the records to read next: in the events
of a query as a string, in its checkpoint as a line.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from offsetd.client.position import OFFSET_MAX, PARTITION_MAX, Committed, TopicPartition

GROUP_PREFIX: Final = "spark."
#: How the Kafka source describes itself in an event: ``KafkaV2[Subscribe[orders]]``.
_KAFKA_SOURCE: Final = "Kafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPosition:
    """What one query has read by the end of a batch, over all its Kafka sources."""

    group: str
    query_id: str
    batch_id: int
    offsets: Mapping[TopicPartition, int]

    @property
    def metadata(self) -> str:
        """What is committed beside each offset, so that anybody can tell whose it is."""
        return f"{self.query_id}:{self.batch_id}"

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Return some of the offsets as they are committed."""
        return {partition: Committed(self.offsets[partition], self.metadata) for partition in partitions}


def group_of(query_name: str) -> str:
    """Return the group that shows a query."""
    return GROUP_PREFIX + query_name


def offsets_of_source(text: str | None) -> dict[TopicPartition, int] | None:
    """Read the position of one source; None if it is no position of a Kafka source."""
    try:
        topics = json.loads(text) if text else None
    except ValueError:
        return None
    if not isinstance(topics, dict) or not topics:
        return None
    found = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            return None
        for number, offset in partitions.items():
            if not number.isdecimal() or int(number) > PARTITION_MAX or not _is_offset(offset):
                return None
            found[TopicPartition(topic, int(number))] = offset
    return found


def join_sources(sources: Iterable[Mapping[TopicPartition, int]]) -> dict[TopicPartition, int]:
    """Put the sources of one query together.

    Two sources may read one topic, and then the group stands where the slower one does: what it shows as read, both
    have read.
    """
    joined: dict[TopicPartition, int] = {}
    for offsets in sources:
        for partition, offset in offsets.items():
            joined[partition] = min(offset, joined.get(partition, offset))
    return joined


def position_of_progress(progress: Mapping[str, Any]) -> QueryPosition | None:
    """Read the position out of a progress event's JSON; None if no Kafka source of it has one."""
    sources = [
        offsets_of_source(_text(source.get("endOffset")))
        for source in progress["sources"]
        if str(source.get("description", "")).startswith(_KAFKA_SOURCE)
    ]
    offsets = join_sources(found for found in sources if found is not None)
    if not offsets:
        return None
    return QueryPosition(
        group=group_of(progress["name"]),
        query_id=str(progress["id"]),
        batch_id=int(progress["batchId"]),
        offsets=offsets,
    )


def _text(value: Any) -> str | None:
    # The event's own JSON holds the position as an object, its Python form as a string.
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= OFFSET_MAX
