"""The Spark session that every command of the pipeline uses: what it needs, and one sentence when that is missing."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"

#: What Spark brings for itself from Maven Central at a session's start; `{spark}` is pyspark's own version.
KAFKA: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}"
AVRO: Final = "org.apache.spark:spark-avro_2.13:{spark}"
DELTA: Final = "io.delta:delta-spark_2.13:{spark}"

#: Quiet, on this machine only, and no web page that nobody opens. All of it can be overridden.
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
}
_LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}
#: How much of what Java said before it gave up is shown.
_SAID_BYTES: Final = 2000
_DELTA_SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
#: Delta reads a table's log in fifty tasks unless told otherwise: on one machine that is mostly waiting.
_LOCAL_DELTA_SETTINGS: Final = {"spark.databricks.delta.snapshotPartitions": "4"}


class SparkMissing(Exception):
    """Spark cannot run here; says in one line what to install."""


def missing() -> str | None:
    """Return what to install before Spark can run here, None if nothing."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'offsetd[spark]'"
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and (home is None or shutil.which("java", path=f"{home}/bin") is None):
        return "java is not installed: Spark needs Java 17 or newer"
    return None


@contextmanager
def spark_session(
    name: str,
    *,
    master: str = DEFAULT_MASTER,
    packages: Iterable[str] = (),
    settings: Mapping[str, str] | None = None,
) -> "Iterator[SparkSession]":
    """Give a session, and stop it at the end.

    Args:
        name: how Spark's own pages call the job.
        packages: of `KAFKA`, `AVRO`, `DELTA` those that the job needs.
        settings: Spark's own, which win over ours.

    Raises:
        SparkMissing: there is no Java or no pyspark, or Spark did not start.
    """
    session = make_session(name, master=master, packages=packages, settings=settings)
    try:
        yield session
    finally:
        session.stop()


def make_session(
    name: str,
    *,
    master: str = DEFAULT_MASTER,
    packages: Iterable[str] = (),
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Return a session that the caller stops; else as `spark_session`."""
    lacking = missing()
    if lacking is not None:
        raise SparkMissing(lacking)
    # Imported here: it takes a second, and is not there without the extra.
    import pyspark  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Workers must run the Python of the driver, to the minor version.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = master.startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wanted = [package.format(spark=pyspark.__version__) for package in packages]
    chosen = {**_SETTINGS, **(_LOCAL_SETTINGS if local else {})}
    if DELTA in packages:
        chosen |= {**_DELTA_SETTINGS, **(_LOCAL_DELTA_SETTINGS if local else {})}
    if wanted:
        chosen["spark.jars.packages"] = ",".join(wanted)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    with _java_aside() as said:
        try:
            session: SparkSession = builder.getOrCreate()
        except Exception as error:
            raise SparkMissing(f"Spark did not start: {error}\n{_tail(said)}") from error
    return session


@contextmanager
def _java_aside() -> "Iterator[int]":
    """Let Java, which is started here, talk to a file for all its life: what it has to say reaches us as exceptions."""
    kept = os.dup(2)
    with tempfile.TemporaryFile(prefix="offsetd-spark-") as file:
        sys.stderr.flush()
        os.dup2(file.fileno(), 2)
        try:
            yield file.fileno()
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, _SAID_BYTES, max(0, size - _SAID_BYTES)).decode("utf-8", "replace")
