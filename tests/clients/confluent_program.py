"""confluent-kafka, which is librdkafka, as a client process."""

import sys
import time
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.program import Row, serve

#: How long librdkafka may go on trying; it has no wait without an end.
_TIMEOUT_SECONDS = 60
#: What librdkafka says where a group has no offset.
_NO_OFFSET = -1001


class Confluent:
    """A consumer for each group, and one admin client; all are made when they are first wanted."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._consumers: dict[str, Any] = {}
        self._admin_client: Any = None

    def _consumer(self, group: str) -> Any:
        if group not in self._consumers:
            self._consumers[group] = Consumer(
                {
                    "bootstrap.servers": self._address,
                    "group.id": group,
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 100,
                }
            )
        return self._consumers[group]

    def _admin(self) -> Any:
        if self._admin_client is None:
            self._admin_client = AdminClient({"bootstrap.servers": self._address})
        return self._admin_client

    def commit(self, group: str, rows: list[Row]) -> None:
        """Commit as a consumer that assigned its partitions itself."""
        consumer = self._consumer(group)
        consumer.assign([TopicPartition(topic, partition) for topic, partition, *_ in rows])
        # Only with metadata does the library send any: without, its length on the wire is another one.
        offsets = [
            TopicPartition(topic, partition, offset, metadata) if metadata else TopicPartition(topic, partition, offset)
            for topic, partition, offset, metadata in rows
        ]
        _no_errors(consumer.commit(offsets=offsets, asynchronous=False))

    def committed(self, group: str, rows: list[Row]) -> list[Row]:
        """Read offsets; none where the client says so."""
        asked = [TopicPartition(*row) for row in rows]
        found = _no_errors(self._consumer(group).committed(asked, timeout=_TIMEOUT_SECONDS))
        return [[one.topic, one.partition, None if one.offset == _NO_OFFSET else one.offset] for one in found]

    def commit_position(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Store an offset as done with and commit what is stored."""
        consumer = self._consumer(group)
        consumer.assign([TopicPartition(topic, partition)])
        consumer.store_offsets(offsets=[TopicPartition(topic, partition, offset)])
        _no_errors(consumer.commit(asynchronous=False))

    def poll(self, group: str, rows: list[Row], seconds: float) -> dict[str, Any]:
        """Poll for a while; return how many records came, what errors, and how long it took."""
        consumer = self._consumer(group)
        consumer.assign([TopicPartition(*row) for row in rows])
        began = time.monotonic()
        records, errors = 0, []
        while (left := began + seconds - time.monotonic()) > 0:
            message = consumer.poll(left)
            if message is not None and message.error():
                errors.append(str(message.error()))
            elif message is not None:
                records += 1
        return {"records": records, "errors": errors, "seconds": time.monotonic() - began}

    def offset_at(self, group: str, topic: str, partition: int, time_ms: int) -> int | None:
        """Return the first offset at or after a time."""
        asked = [TopicPartition(topic, partition, time_ms)]
        (found,) = _no_errors(self._consumer(group).offsets_for_times(asked, timeout=_TIMEOUT_SECONDS))
        return None if found.offset == OFFSET_END else int(found.offset)

    def ends(self, group: str, rows: list[Row]) -> list[Row]:
        """Return the first and the last offset of partitions."""
        consumer = self._consumer(group)
        asked = [TopicPartition(*row) for row in rows]
        return [
            [one.topic, one.partition, *consumer.get_watermark_offsets(one, timeout=_TIMEOUT_SECONDS)] for one in asked
        ]

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        found = self._admin().list_topics(timeout=_TIMEOUT_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def cluster(self) -> dict[str, Any]:
        """Describe the cluster."""
        found = self._admin().describe_cluster(request_timeout=_TIMEOUT_SECONDS).result()
        brokers = [[node.id, node.host, node.port] for node in found.nodes]
        return {"id": found.cluster_id, "controller": found.controller.id, "brokers": brokers}

    def group_offsets(self, asked: dict[str, list[Row] | None]) -> dict[str, list[Row]]:
        """Read the offsets of groups as an administrator, of all their topics where none are named."""
        answer = {}
        for group, rows in asked.items():
            wanted = None if rows is None else [TopicPartition(*row) for row in rows]
            # The library takes one group at a time.
            (future,) = self._admin().list_consumer_group_offsets([_of_group(group, wanted)]).values()
            found = _no_errors(future.result().topic_partitions)
            answer[group] = [[one.topic, one.partition, one.offset, one.metadata] for one in found]
        return answer

    def alter(self, group: str, rows: list[Row]) -> None:
        """Set offsets as an administrator."""
        offsets = [TopicPartition(*row) for row in rows]
        (future,) = self._admin().alter_consumer_group_offsets([_of_group(group, offsets)]).values()
        _no_errors(future.result().topic_partitions)

    def close(self) -> None:
        """Leave in order."""
        for consumer in self._consumers.values():
            consumer.close()


def _of_group(group: str, partitions: list[Any] | None) -> Any:
    return (
        ConsumerGroupTopicPartitions(group) if partitions is None else ConsumerGroupTopicPartitions(group, partitions)
    )


def _no_errors(partitions: list[Any]) -> list[Any]:
    assert all(one.error is None for one in partitions), partitions
    return partitions


if __name__ == "__main__":
    serve(Confluent(sys.argv[1]))
