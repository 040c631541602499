"""History of a daemon that is at work: it commits, compacts and seals while frames and a stream read."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from offsetd.client import BlockingClient
from offsetd.pipeline.history import records, register
from tests.fakes.daemon import Daemon, running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# pyspark leaves the socket that brings rows to the driver to the garbage collector.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]

_SETTINGS = {
    "offsets.topic.num.partitions": 3,
    "log.segment.bytes": 16_384,
    "log.cleaner.min.cleanable.ratio": 0,
    "log.cleaner.backoff.ms": 50,
    "history.seal.enabled": True,
    "history.seal.max.lag.ms": 1,
}
_GROUPS = 5

Commit = tuple[str, int]


class Committer:
    """Commits rising offsets of some groups until it is told to stop."""

    def __init__(self, daemon: Daemon) -> None:
        self.committed: list[Commit] = []
        self.ended = threading.Event()
        self._daemon = daemon

    def run(self) -> None:
        with BlockingClient(self._daemon.address) as client:
            number = 0
            while not self.ended.is_set():
                number += 1
                group = f"group-{number % _GROUPS}"
                client.commit(group, {("orders", 0): number})
                self.committed.append((group, number))


@contextmanager
def committing(daemon: Daemon) -> Iterator[Committer]:
    committer = Committer(daemon)
    thread = threading.Thread(target=committer.run)
    thread.start()
    try:
        yield committer
    finally:
        committer.ended.set()
        thread.join()


def commits(frame: "DataFrame") -> "Counter[Commit]":
    """Return how often each commit is in a frame."""
    return Counter(tuple(row) for row in frame.where("type = 1").select("group", "offset").collect())


def test_each_commit_is_seen_once_while_the_daemon_commits_compacts_and_seals(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with running(tmp_path / "daemon", _SETTINGS) as daemon:
        register(spark)
        stream = spark.readStream.format("offsetd").option("maxBatchesPerTrigger", 400).load(str(daemon.data))
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        with committing(daemon) as committer:
            daemon.wait_until(lambda: daemon.metric("offsetd_history_sealed_files") > 0)
            query = writer.option("path", str(tmp_path / "out")).start()
            try:
                settled = Counter(committer.committed)
                frame = records(spark, daemon.data)
                first = commits(frame)
                sealed = daemon.metric("offsetd_sealings_total")
                daemon.wait_until(lambda: daemon.metric("offsetd_sealings_total") > sealed + 1)
                second = commits(frame)
                committer.ended.set()
                daemon.wait_until(lambda: query.lastProgress is not None)
            finally:
                query.stop()
        # Stopped somewhere in the middle, and started again where it was.
        query = writer.option("path", str(tmp_path / "out")).start()
        query.processAllAvailable()
        query.stop()
        followed = commits(spark.read.parquet(str(tmp_path / "out")))
        everything = commits(records(spark, daemon.data))

    expected = Counter(committer.committed)
    assert everything == expected
    assert followed == expected
    assert max(expected.values()) == 1
    # The frame holds what had been committed when it was made, and goes on to hold just that.
    assert first == second
    assert settled <= first <= expected
