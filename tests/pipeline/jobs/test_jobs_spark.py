"""Real queries of a real Spark on a real Kafka, shown by a real offsetd."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from offsetd.bench.kafka import KafkaProcess
from offsetd.client import BlockingClient, Committed, TopicPartition
from offsetd.pipeline import report_progress, start_from_group
from offsetd.pipeline.jobs.starting import StartRefused
from tests.clients.kafka_admin import kafka_admin
from tests.fakes.daemon import Daemon, running

# pyspark leaves the socket over which it has collected rows to the garbage collector.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


class Topic:
    """A topic of two partitions, and a query over it."""

    def __init__(self, spark: Any, kafka: KafkaProcess, folder: Path) -> None:
        self.spark = spark
        self.upstream = f"127.0.0.1:{kafka.port}"
        self.name = f"jobs-{uuid4().hex[:8]}"
        self.query_name = f"q_{uuid4().hex[:8]}"
        self.group = f"spark.{self.query_name}"
        self.folder = folder
        admin = AdminClient({"bootstrap.servers": self.upstream})
        for made in admin.create_topics([NewTopic(self.name, 2, 1)]).values():
            made.result(60)

    def produce(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.upstream})
        for number in range(count):
            producer.produce(self.name, b"x", partition=number % 2)
        assert producer.flush(60) == 0

    def run(self, *, named: bool = True, checkpoint: str = "checkpoint", **options: str) -> str:
        """Read what is there, batch by batch, and return the query's id."""
        source = self.spark.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self.upstream,
                "subscribe": self.name,
                "startingOffsets": "earliest",
                **options,
            }
        )
        writer = source.load().writeStream.format("noop").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.folder / checkpoint))
        query = (writer.queryName(self.query_name) if named else writer).start()
        assert query.awaitTermination(120)
        return str(query.id)

    def at(self, first: int, second: int, metadata: str) -> dict[TopicPartition, Committed]:
        return {
            TopicPartition(self.name, 0): Committed(first, metadata),
            TopicPartition(self.name, 1): Committed(second, metadata),
        }


@pytest.fixture
def topic(spark: Any, kafka: KafkaProcess, tmp_path: Path) -> Topic:
    return Topic(spark, kafka, tmp_path)


@pytest.fixture
def client(offsets_daemon: Daemon) -> Iterator[BlockingClient]:
    with BlockingClient(offsets_daemon.address) as made:
        yield made


def test_a_query_is_a_group_through_a_restart(topic: Topic, offsets_daemon: Daemon, client: BlockingClient) -> None:
    topic.produce(6)
    with report_progress(topic.spark, offsets_daemon.address) as reports:
        query_id = topic.run(maxOffsetsPerTrigger="4")
        assert reports.flush()
        assert client.fetch(topic.group) == topic.at(3, 3, f"{query_id}:1")
        topic.produce(2)
        topic.run()
        assert reports.flush()
        assert client.fetch(topic.group) == topic.at(4, 4, f"{query_id}:2")
        assert reports.counts.last_error is None
        assert reports.counts.committed >= 2
    shown = json.dumps(kafka_admin(offsets_daemon, "groups", "list-offsets", "-g", topic.group))
    assert topic.name in shown
    assert f"{query_id}:2" in shown


def test_a_group_is_repaired_from_the_checkpoint_when_events_were_lost(
    topic: Topic, offsets_daemon: Daemon, client: BlockingClient
) -> None:
    """Nobody listens to the first run; the second finds no news, so no event of it has a position."""
    topic.produce(4)
    query_id = topic.run()
    assert client.fetch(topic.group) == {}

    with report_progress(topic.spark, offsets_daemon.address) as reports:
        reports.repair(topic.query_name, str(topic.folder / "checkpoint"))
        assert reports.flush()
        assert client.fetch(topic.group) == topic.at(2, 2, f"{query_id}:0")


def test_a_query_that_starts_is_repaired_without_being_told_where_its_checkpoint_is(
    topic: Topic, offsets_daemon: Daemon, client: BlockingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from offsetd.pipeline.jobs.listener import PositionListener  # noqa: PLC0415

    monkeypatch.setattr(PositionListener, "onQueryProgress", lambda _self, _event: None)
    topic.produce(4)
    query_id = topic.run()
    with report_progress(topic.spark, offsets_daemon.address) as reports:
        topic.run()
        assert reports.flush()
    assert client.fetch(topic.group) == topic.at(2, 2, f"{query_id}:0")


def test_a_query_goes_on_without_offsetd_and_is_shown_when_it_is_back(topic: Topic, tmp_path: Path) -> None:
    with running(tmp_path / "daemon") as daemon:
        address, port = daemon.address, daemon.port
        with report_progress(topic.spark, address, commit_timeout_s=1.0, retry_pause_s=0.2) as reports:
            topic.produce(2)
            topic.run()
            assert reports.flush()
            daemon.kill()
            topic.produce(2)
            query_id = topic.run()
            assert not reports.flush(3.0)
            assert reports.counts.failed > 0
            assert "behind its query" in (reports.counts.last_error or "")
            daemon.start(listen=f"127.0.0.1:{port}")
            assert reports.flush(60.0)
            assert reports.counts.last_error is None
        with BlockingClient(address) as client:
            assert client.fetch(topic.group) == topic.at(2, 2, f"{query_id}:1")


def test_a_group_is_not_moved_back_unless_allowed(
    topic: Topic, offsets_daemon: Daemon, client: BlockingClient, caplog: pytest.LogCaptureFixture
) -> None:
    topic.produce(4)
    ahead = {TopicPartition(topic.name, 0): 100}
    client.commit(topic.group, ahead)
    with caplog.at_level(logging.WARNING), report_progress(topic.spark, offsets_daemon.address) as reports:
        query_id = topic.run()
        assert reports.flush()
        assert reports.counts.partitions_held > 0
    expected = topic.at(2, 2, f"{query_id}:0")
    first = TopicPartition(topic.name, 0)
    assert client.fetch(topic.group) == {**expected, first: Committed(100)}
    assert f"{topic.name}/0 from 100 to 2" in caplog.text

    with report_progress(topic.spark, offsets_daemon.address, allow_rewind=True) as reports:
        reports.repair(topic.query_name, str(topic.folder / "checkpoint"))
        assert reports.flush()
    assert client.fetch(topic.group) == expected


def test_a_query_without_a_name_is_no_group_and_it_is_said(
    topic: Topic, offsets_daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    topic.produce(2)
    with caplog.at_level(logging.WARNING), report_progress(topic.spark, offsets_daemon.address) as reports:
        topic.run(named=False)
        assert reports.flush()
        assert reports.counts.heard == 0
    assert "has no name" in caplog.text


def test_reads_start_where_a_group_stands(topic: Topic, offsets_daemon: Daemon, client: BlockingClient) -> None:
    topic.produce(6)
    group = f"reader-{topic.name}"
    client.commit(group, {(topic.name, 0): 2})
    with pytest.raises(StartRefused, match=f"{topic.name}/1"):
        start_from_group(group, offsets_daemon.address, upstream=topic.upstream)

    options = start_from_group(group, offsets_daemon.address, upstream=topic.upstream, missing="earliest")
    rows = topic.spark.read.format("kafka").options(**options).load().select("partition", "offset").collect()
    assert sorted((row.partition, row.offset) for row in rows) == [(0, 2), (1, 0), (1, 1), (1, 2)]

    stream = start_from_group(group, offsets_daemon.address, upstream=topic.upstream, missing="latest", for_stream=True)
    assert json.loads(stream["startingOffsets"]) == {topic.name: {"0": 2, "1": -1}}
    topic.run(startingOffsets=stream["startingOffsets"])
