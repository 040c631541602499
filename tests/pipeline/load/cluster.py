"""Topics of a real Kafka for tests: made, filled, cut; and what the tables made of them hold."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Theirs
from confluent_kafka.admin import AdminClient, NewTopic

from offsetd.bench.kafka import KafkaProcess
from offsetd.client import BlockingClient, Committed, TopicPartition
from offsetd.pipeline.load.loader import load
from offsetd.pipeline.load.observer import Observer
from offsetd.pipeline.load.request import Request
from offsetd.pipeline.load.summary import Summary
from offsetd.pipeline.load.upstream import Topics
from tests.fakes.daemon import Daemon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 60.0
Row = tuple[str, int, int]


class Cluster:
    """A Kafka, an offsetd and a Spark, and a group and a topic that only one test uses."""

    def __init__(self, kafka: KafkaProcess, daemon: Daemon, spark: "SparkSession", out: Path) -> None:
        self.upstream = f"127.0.0.1:{kafka.port}"
        self.daemon = daemon
        self.spark = spark
        self.out = out
        name = uuid.uuid4().hex[:12]
        self.group = f"group-{name}"
        self.topic = f"topic.{name}"
        self._admin = AdminClient({"bootstrap.servers": self.upstream})

    # --- topics -----------------------------------------------------------------------------------------------------

    def create(self, topic: str | None = None, *, partitions: int = 2, **config: str) -> None:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        made = self._admin.create_topics([NewTopic(topic or self.topic, partitions, 1, config=settings)])
        for future in made.values():
            future.result(SECONDS)

    def produce(
        self,
        values: Iterable[bytes | None],
        *,
        topic: str | None = None,
        partition: int = 0,
        key: Callable[[int], bytes] | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        time_ms: int = 0,
    ) -> None:
        producer = Producer({"bootstrap.servers": self.upstream, "linger.ms": 5})
        for number, value in enumerate(values):
            producer.produce(
                topic or self.topic,
                value,
                key=b"k%d" % number if key is None else key(number),
                partition=partition,
                headers=list(headers),
                timestamp=time_ms,
            )
        assert producer.flush(SECONDS) == 0

    def transaction(self, values: Iterable[bytes], *, commit: bool, partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.upstream, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(self.topic, value, partition=partition)
        producer.flush(SECONDS)
        if commit:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)

    def delete_before(self, offset: int, *, partition: int = 0) -> None:
        """Have the log begin at an offset, as retention does."""
        for future in self._admin.delete_records([Theirs(self.topic, partition, offset)]).values():
            future.result(SECONDS)

    # --- the group --------------------------------------------------------------------------------------------------

    def committed(self) -> dict[TopicPartition, Committed]:
        with BlockingClient(self.daemon.address) as client:
            return client.fetch(self.group)

    def commit(self, offset: int, *, partition: int = 0, metadata: str = "") -> None:
        with BlockingClient(self.daemon.address) as client:
            client.commit(self.group, {(self.topic, partition): Committed(offset, metadata)})

    # --- loads ------------------------------------------------------------------------------------------------------

    def load(self, observer: Observer | None = None, **changes: Any) -> Summary:
        asked: dict[str, Any] = {
            "group": self.group,
            "topics": Topics(names=(self.topic,)),
            "out": str(self.out),
            "upstream": self.upstream,
            "offsets": self.daemon.address,
            **changes,
        }
        return load(Request(**asked), lambda: self.spark, observer)

    def rows(self, out: Path | None = None) -> list[Row]:
        """Return topic, partition and offset of every row that a plain reader of the table sees, in order."""
        frame = self.spark.read.parquet(str(out or self.out)).select("topic", "partition", "offset")
        return sorted((row[0], row[1], row[2]) for row in frame.collect())

    def expected(self, *, start: int = 0, **ends: int) -> list[Row]:
        """Return the rows of whole partitions: `p0=3` is three of partition 0."""
        return sorted((self.topic, int(name[1:]), offset) for name, end in ends.items() for offset in range(start, end))
