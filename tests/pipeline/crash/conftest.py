"""What crash tests of the load share: topics of their own in one Kafka, a daemon of their own, and a Spark cluster."""

import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from offsetd.bench.kafka import KafkaProcess
from offsetd.pipeline.load.request import TableFormat
from offsetd.pipeline.session import missing
from tests.fakes.daemon import Daemon, running
from tests.pipeline.crash.loads import Loads, loading
from tests.pipeline.crash.records import ProducedTopic
from tests.pipeline.crash.spark_cluster import SparkCluster, spark_cluster

MakeTopic = Callable[..., ProducedTopic]
_NUMBERS: Final = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def _spark_there() -> None:
    """Skip in one line where there is no Java or no pyspark."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(lacking)


@pytest.fixture
def make_topic(kafka: KafkaProcess) -> MakeTopic:
    """Make a topic that no other test has."""
    return partial(ProducedTopic, f"127.0.0.1:{kafka.port}", f"crash-{os.getpid()}-{next(_NUMBERS)}")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A real offsetd of the test's own, which may be killed."""
    with running(tmp_path / "daemon") as daemon:
        yield daemon


@pytest.fixture
def loads(tmp_path: Path, make_topic: MakeTopic, daemon: Daemon) -> Iterator[Loads]:
    """Loads of a small topic of three partitions, on this machine."""
    with loading(tmp_path, make_topic(partitions=3), daemon) as loads:
        yield loads


@pytest.fixture
def delta_loads(tmp_path: Path, make_topic: MakeTopic, daemon: Daemon) -> Iterator[Loads]:
    """The same into a Delta table."""
    with loading(tmp_path, make_topic(partitions=3), daemon, kind=TableFormat.DELTA) as loads:
        yield loads


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A standalone Spark cluster of two workers."""
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
