"""kafka-python as a client process."""

import logging
import sys
import time
from collections import defaultdict
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.structs import OffsetAndMetadata

from tests.clients.program import Row, serve

_NO_EPOCH = -1


class KafkaPython:
    """A consumer for each group, and one admin client; all are made when they are first wanted."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._consumers: dict[str, Any] = {}
        self._admin_client: Any = None

    def _consumer(self, group: str) -> Any:
        if group not in self._consumers:
            self._consumers[group] = KafkaConsumer(
                bootstrap_servers=self._address,
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=100,
            )
        return self._consumers[group]

    def _admin(self) -> Any:
        if self._admin_client is None:
            self._admin_client = KafkaAdminClient(bootstrap_servers=self._address)
        return self._admin_client

    def commit(self, group: str, rows: list[Row]) -> None:
        """Commit as a consumer that assigned its partitions itself."""
        consumer = self._consumer(group)
        consumer.assign([TopicPartition(topic, partition) for topic, partition, *_ in rows])
        consumer.commit(_offsets(rows))

    def committed(self, group: str, rows: list[Row]) -> list[Row]:
        """Read offsets; none where the client says so."""
        consumer = self._consumer(group)
        return [[*row, consumer.committed(TopicPartition(*row))] for row in rows]

    def commit_position(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Go to an offset and commit where the consumer stands."""
        consumer = self._consumer(group)
        consumer.assign([TopicPartition(topic, partition)])
        consumer.seek(TopicPartition(topic, partition), offset)
        consumer.commit()

    def position(self, group: str, topic: str, partition: int) -> int:
        """Return where a fresh assignment starts."""
        consumer = self._consumer(group)
        consumer.assign([])
        consumer.assign([TopicPartition(topic, partition)])
        found: int = consumer.position(TopicPartition(topic, partition))
        return found

    def poll(self, group: str, rows: list[Row], seconds: float) -> dict[str, Any]:
        """Poll for a while; return how many records came and how long it took."""
        consumer = self._consumer(group)
        consumer.assign([TopicPartition(*row) for row in rows])
        began = time.monotonic()
        records = 0
        while (left := began + seconds - time.monotonic()) > 0:
            records += sum(map(len, consumer.poll(timeout_ms=int(left * 1000) + 1).values()))
        return {"records": records, "errors": [], "seconds": time.monotonic() - began}

    def start_at(self, group: str, topic: str, partition: int, where: str) -> int:
        """Go to the `beginning` or the `end` of a partition and return where that is."""
        consumer = self._consumer(group)
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        getattr(consumer, f"seek_to_{where}")(place)
        found: int = consumer.position(place)
        return found

    def offset_at(self, group: str, topic: str, partition: int, time_ms: int) -> int | None:
        """Return the first offset at or after a time."""
        place = TopicPartition(topic, partition)
        found = self._consumer(group).offsets_for_times({place: time_ms})[place]
        return None if found is None else int(found.offset)

    def ends(self, group: str, rows: list[Row]) -> list[Row]:
        """Return the first and the last offset of partitions of one topic."""
        consumer = self._consumer(group)
        partitions = [TopicPartition(*row) for row in rows]
        first, last = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        return [[*row, first[partition], last[partition]] for row, partition in zip(rows, partitions, strict=True)]

    def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        return {topic["name"]: len(topic["partitions"]) for topic in self._admin().describe_topics()}

    def cluster(self) -> dict[str, Any]:
        """Describe the cluster."""
        found = self._admin().describe_cluster()
        brokers = [[broker["broker_id"], broker["host"], broker["port"]] for broker in found["brokers"]]
        return {"id": found["cluster_id"], "controller": found["controller_id"], "brokers": brokers}

    def group_offsets(self, asked: dict[str, list[Row] | None]) -> dict[str, list[Row]]:
        """Read the offsets of groups as an administrator, of all their topics where none are named."""
        wanted = {
            group: None if rows is None else [TopicPartition(*row) for row in rows] for group, rows in asked.items()
        }
        answer = defaultdict(list)
        for group, offsets in self._admin().list_group_offsets(wanted).items():
            answer[group] = [[*place, found.offset, found.metadata] for place, found in offsets.items()]
        return answer

    def alter(self, group: str, rows: list[Row]) -> None:
        """Set offsets as an administrator."""
        codes = self._admin().alter_group_offsets(group, _offsets(rows))
        assert all(code.errno == 0 for code in codes.values()), codes

    def reset(self, group: str, rows: list[Row]) -> list[Row]:
        """Reset offsets as an administrator, to an offset or to `earliest` or `latest`; return what became of it."""
        wanted = {
            TopicPartition(topic, partition): OffsetSpec.build_from(to) if isinstance(to, str) else to
            for topic, partition, to in rows
        }
        results = self._admin().reset_group_offsets(group, wanted)
        assert all(result["error"].errno == 0 for result in results.values()), results
        return [[*place, result["offset"]] for place, result in results.items()]

    def close(self) -> None:
        """Leave in order."""
        for consumer in self._consumers.values():
            consumer.close()
        if self._admin_client is not None:
            self._admin_client.close()


def _offsets(rows: list[Row]) -> dict[Any, Any]:
    return {
        TopicPartition(topic, partition): OffsetAndMetadata(offset, metadata, _NO_EPOCH)
        for topic, partition, offset, metadata in rows
    }


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Pass over two things that no answer of a broker could bring about; all else that the library logs is kept.

    At its own end `close` takes the socket away while the library's own loop, already woken for it, goes on to read:
    the loop meets None and logs that as an error of the network. And on a busy machine the loop warns that one of its
    own steps took longer than 0.1 s.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_closing = isinstance(error, AttributeError) and str(error) == "'NoneType' object has no attribute 'recv'"
    is_slow = "It is blocking the event loop" in record.getMessage()
    return not (is_closing or is_slow)


if __name__ == "__main__":
    for name in ("kafka.net.transport", "kafka.net.selector"):
        logging.getLogger(name).addFilter(_is_worth_saying)
    serve(KafkaPython(sys.argv[1]))
