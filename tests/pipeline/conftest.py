"""What tests of the pipeline share, each made once per process: a Spark session, a Kafka with data, a daemon."""

import fcntl
import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from offsetd.bench.kafka import KafkaProcess, bring, missing_tools
from offsetd.bench.server import ServerFailed
from offsetd.pipeline.session import AVRO, DELTA, KAFKA, make_session, missing
from tests.fakes.daemon import Daemon, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT: Final = Path(__file__).parents[2]
_JARS: Final = _ROOT / ".peers" / "kafka"
#: Small heaps and few tasks: tests have little data, and share two cores with all others.
SPARK_SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let processes of one test run bring jars one after the other: two at once would tread on each other's cache."""
    common = tmp_path_factory.getbasetemp().parent
    with (common / "pipeline.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let py4j leave its sockets to the collector, as it does for every thread that has spoken to Java."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(autouse=True)
def _sockets_of_py4j() -> Iterator[None]:
    """Collect them before a test that is not ours could be blamed."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """One session for all tests of a process; skipped in one line where there is no Java or no jar to be had."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(lacking)
    warehouse = tmp_path_factory.mktemp("warehouse")
    with one_at_a_time(tmp_path_factory):
        session = make_session(
            "offsetd-tests",
            master="local[2]",
            packages=(KAFKA, AVRO, DELTA),
            settings={**SPARK_SETTINGS, "spark.sql.warehouse.dir": str(warehouse)},
        )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Kafka's jars are; skipped in one line where they cannot be had."""
    lacking = missing_tools()
    if lacking:
        pytest.skip(f"no Kafka to load from: {' and '.join(lacking)} not installed")
    try:
        with one_at_a_time(tmp_path_factory):
            bring(_ROOT / "deploy" / "peers" / "pom.xml", _JARS)
    except ServerFailed as error:
        pytest.skip(f"no Kafka to load from: {error}")
    return _JARS


@pytest.fixture(scope="session")
def kafka(kafka_libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    """A real Kafka of one node; each test has topics of its own there."""
    process = KafkaProcess(kafka_libraries, tmp_path_factory.mktemp("kafka"))
    yield process
    process.kill()


@pytest.fixture(scope="session")
def offsets_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A real offsetd that nothing bad happens to; each test has groups of its own there."""
    with running(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon
