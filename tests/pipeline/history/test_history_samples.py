"""Samples of log ends: a table that grows by whole files, whatever happens while one is written."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from offsetd.client.position import TopicPartition
from offsetd.journal.files import OsFiles
from offsetd.pipeline.history.samples import LogEnds, NoSamples, append_sample, read_samples
from offsetd.pipeline.history.sampling import Sampling
from offsetd.pipeline.load.plan import Logs
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused
from offsetd.pipeline.load.upstream import Topics
from tests.fakes.disk import FakeDisk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from offsetd.bench.kafka import KafkaProcess

NOON = datetime(2026, 1, 1, 23, 59, 59, 5, tzinfo=UTC)
ENDS = [LogEnds("orders", 1, 5, 20), LogEnds("orders", 0, 0, 7), LogEnds("clicks", 0, 2, 2)]


class Time:
    """A clock that stands still but for those who sleep, and for what takes long."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return 100 + self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def sampling(out: Path, every: float | None = None, lasting: float | None = None) -> Sampling:
    def span(seconds: float | None) -> timedelta | None:
        return None if seconds is None else timedelta(seconds=seconds)

    return Sampling(
        upstream="kafka:9092", topics=Topics(pattern=".*"), out=out, every=span(every), lasting=span(lasting)
    )


def logs(end: int) -> Logs:
    key = TopicPartition("orders", 0)
    # Readers of committed records see less; lag is told by all there is.
    return Logs(starts={key: 3}, ends={key: end - 1}, highs={key: end}, times={}, compacted=frozenset())


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob("day=*/*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()]


def test_a_sample_is_a_file_of_its_day(tmp_path: Path) -> None:
    path = append_sample(OsFiles(), tmp_path / "samples", NOON, ENDS)
    append_sample(OsFiles(), tmp_path / "samples", NOON + timedelta(seconds=1), ENDS[:1])

    assert path.parent.name == "day=2026-01-01"
    assert [row["topic"] for row in pq.ParquetFile(path).read().to_pylist()] == ["clicks", "orders", "orders"]
    found = rows(tmp_path / "samples")
    assert len(found) == 4
    assert found[2] == {"time": NOON, "topic": "orders", "partition": 1, "log_start": 5, "log_end": 20}
    assert {each.name for each in (tmp_path / "samples").iterdir()} == {"day=2026-01-01", "day=2026-01-02"}


def crashes(folder: Path) -> Iterator[FakeDisk]:
    """Yield every disk that a power cut may leave, at every call of two samples."""
    disk = FakeDisk()
    left: list[FakeDisk] = []
    disk.on_call = lambda: left.extend(disk.after_crash())
    for seconds in range(2):
        append_sample(disk, folder, NOON - timedelta(seconds=seconds), ENDS)
    yield from left


def test_a_power_cut_leaves_whole_files_or_none(tmp_path: Path) -> None:
    """What has a name that readers take is read from end to end."""
    seen = set()
    for disk in crashes(tmp_path / "samples"):
        whole = [data for path, data in disk.content().items() if not path.name.startswith(".")]
        assert all(pq.ParquetFile(BytesIO(data)).read().num_rows == len(ENDS) for data in whole)
        seen.add(len(whole))

    assert seen == {0, 1, 2}


def test_a_sample_that_was_told_is_not_lost(tmp_path: Path) -> None:
    disk = FakeDisk()
    path = append_sample(disk, tmp_path / "samples", NOON, ENDS)

    assert path in disk.power_cut().content()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    disk = FakeDisk()
    disk.write_faults = [(10, 0), (0, 28)]
    with pytest.raises(OSError, match="No space left"):
        append_sample(disk, tmp_path / "samples", NOON, ENDS)

    assert disk.content() == {}


def test_one_sample_is_taken_before_the_cluster_is_asked(tmp_path: Path) -> None:
    clock = Time()

    def ask(upstream: str, topics: Topics) -> Logs:
        clock.seconds += 30
        return logs(40)

    (sampled,) = sampling(tmp_path).run(ask=ask, now=clock.now, monotonic=clock.monotonic, sleep=clock.sleep)

    assert (sampled.time, sampled.partitions, sampled.problem) == (NOON, 1, None)
    assert rows(tmp_path) == [{"time": NOON, "topic": "orders", "partition": 0, "log_start": 3, "log_end": 40}]


def test_samples_keep_their_times_and_a_cluster_that_is_away_costs_only_some(tmp_path: Path) -> None:
    clock = Time()
    answers: Iterator[Logs | LoadRefused] = iter([logs(10), LoadRefused("away"), logs(30), logs(40)])

    def ask(upstream: str, topics: Topics) -> Logs:
        answer = next(answers)
        if isinstance(answer, LoadRefused):
            clock.seconds += 25
            raise answer
        clock.seconds += 2
        return answer

    run = sampling(tmp_path, every=10, lasting=50)
    found = list(run.run(ask=ask, now=clock.now, monotonic=clock.monotonic, sleep=clock.sleep))

    assert [((each.time - NOON).total_seconds(), each.problem) for each in found] == [
        (0, None), (10, "away"), (35, None), (40, None),
    ]  # fmt: skip
    assert [row["log_end"] for row in rows(tmp_path)] == [10, 30, 40]


def test_topics_that_are_not_there_end_it(tmp_path: Path) -> None:
    def ask(upstream: str, topics: Topics) -> Logs:
        raise BadRequest("no topic matches")

    with pytest.raises(BadRequest):
        list(sampling(tmp_path, every=10, lasting=50).run(ask=ask))


def test_spark_reads_the_table_and_says_where_there_is_none(spark: "SparkSession", tmp_path: Path) -> None:
    with pytest.raises(NoSamples, match="holds no samples"):
        read_samples(spark, tmp_path)

    append_sample(OsFiles(), tmp_path / "samples", NOON, ENDS)
    append_sample(OsFiles(), tmp_path / "samples", NOON + timedelta(seconds=1), ENDS)

    assert read_samples(spark, tmp_path / "samples").where("log_end = 20 and partition = 1").count() == 2


def test_a_real_cluster_tells_its_log_ends(kafka: "KafkaProcess", tmp_path: Path) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415  # only where there is a Kafka
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    upstream = f"127.0.0.1:{kafka.port}"
    admin = AdminClient({"bootstrap.servers": upstream})
    for future in admin.create_topics([NewTopic("sampled", 2, 1)]).values():
        future.result(60)
    producer = Producer({"bootstrap.servers": upstream})
    for _ in range(5):
        producer.produce("sampled", b"x", partition=1)
    producer.flush(60)

    run = Sampling(upstream=upstream, topics=Topics(names=("sampled",)), out=tmp_path)
    assert [each.partitions for each in run.run()] == [2]

    assert [(row["partition"], row["log_start"], row["log_end"]) for row in rows(tmp_path)] == [(0, 0, 0), (1, 0, 5)]
