"""A streaming query's checkpoint: the batch that was finished last, and where its Kafka sources stood behind it.

``commits/`` has a file per finished batch, ``offsets/`` one per planned batch: a version line, a line of settings, and
a line per source (``-`` for one that has not begun). ``metadata`` holds the query's id. Read through Hadoop's file
system, as Spark itself does, so that a path means the same here as there.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from offsetd.pipeline.jobs.position import QueryPosition, join_sources, offsets_of_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSION: Final = "v1"
#: The version and the settings, before the sources.
_HEAD_LINES: Final = 2


class CheckpointUnreadable(Exception):
    """A checkpoint is there, and not as Spark writes it; says where and what."""


def read_position(spark: "SparkSession", checkpoint: str, group: str) -> QueryPosition | None:
    """Return the position behind the last finished batch; None if there is no checkpoint, batch or Kafka source yet.

    Raises:
        CheckpointUnreadable: it is not a checkpoint of a version that is known.
    """
    folder = _Folder(spark, checkpoint)
    batch_id = newest_batch(folder.names("commits"))
    if batch_id is None:
        return None
    identity, entry = folder.text("metadata"), folder.text(f"offsets/{batch_id}")
    if identity is None or entry is None:
        lacking = "metadata" if identity is None else f"offsets/{batch_id}"
        raise CheckpointUnreadable(f"{checkpoint} has batch {batch_id} under commits, but no {lacking}")
    try:
        return parse_position(group, identity, batch_id, entry)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointUnreadable(f"{checkpoint}: batch {batch_id} cannot be read: {error}") from error


def newest_batch(names: list[str]) -> int | None:
    """Return the highest number among the files of a log, which may have hidden and temporary ones beside them."""
    return max((int(name) for name in names if name.isdecimal()), default=None)


def parse_position(group: str, identity: str, batch_id: int, entry: str) -> QueryPosition | None:
    """Read the checkpoint's ``metadata`` and an entry of its ``offsets``.

    Raises:
        ValueError: they are not what this version knows.
    """
    lines = entry.splitlines()
    if not lines or lines[0] != _VERSION:
        raise ValueError(f"its first line is {lines[:1]}, want {_VERSION}")
    sources = [offsets_of_source(line) for line in lines[_HEAD_LINES:]]
    offsets = join_sources(found for found in sources if found is not None)
    if not offsets:
        return None
    return QueryPosition(group=group, query_id=str(json.loads(identity)["id"]), batch_id=batch_id, offsets=offsets)


def checkpoint_of_query(spark: "SparkSession", query_id: str) -> str | None:
    """Return where a running query keeps its checkpoint; None if it does not run any more.

    Spark says it in no public method, only inside its JVM: an `AttributeError` or an error of the bridge means that
    this version of Spark does not say it at all.
    """
    query = spark.streams.get(query_id)
    if query is None:
        return None
    return str(query._jsq.streamingQuery().resolvedCheckpointRoot())  # noqa: SLF001  # Spark has no public way


class _Folder:
    """A directory, through Spark's own file systems."""

    def __init__(self, spark: "SparkSession", path: str) -> None:
        self._jvm: Any = spark._jvm  # noqa: SLF001  # the only way to Hadoop's file systems from Python
        self._root = path
        settings = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        self._system = self._path("").getFileSystem(settings)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{name}" if name else self._root)

    def names(self, name: str) -> list[str]:
        """Return the names in a directory, none if it is not there."""
        path = self._path(name)
        if not self._system.exists(path):
            return []
        return [str(status.getPath().getName()) for status in self._system.listStatus(path)]

    def text(self, name: str) -> str | None:
        """Return a file's text; None if it is not there."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
