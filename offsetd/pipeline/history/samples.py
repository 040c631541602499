"""The table of samples: where the logs of the data cluster began and ended, and when, as Parquet files by day.

    <table>/day=2026-11-18/142501000000-5f0c1a2b.parquet: time, topic, partition, log_start, log_end

A file is a sample, whole from the moment that it has its name. Any reader of Parquet reads the table. Who asks the
cluster is `offsetd.pipeline.history.sampling`.
"""

import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from offsetd.journal.files import Files, sync_directory, write_new

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA: Final = "time timestamp, topic string, partition int, log_start bigint, log_end bigint"


class NoSamples(Exception):
    """There is no table of samples where one was said to be."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where one log began and ended."""

    topic: str
    partition: int
    log_start: int
    log_end: int


def append_sample(files: Files, folder: Path, time: datetime, ends: Iterable[LogEnds]) -> Path:
    """Add what was seen at a moment; return its file, which no power cut takes back.

    Raises:
        OSError: it could not be written; nothing of it is in the table then.
    """
    data = _parquet(time, ends)
    moment = time.astimezone(UTC)
    day = folder / f"day={moment:%Y-%m-%d}"
    for place in (folder, day):
        _make(files, place)
    # Several may sample into one table at once.
    path = day / f"{moment:%H%M%S%f}-{secrets.token_hex(4)}.parquet"
    # Readers of tables pass over names with a dot before them.
    growing = path.with_name(f".{path.name}.tmp")
    try:
        write_new(files, growing, data)
        files.rename(growing, path)
    except OSError:
        with suppress(OSError):
            files.unlink(growing)
        raise
    sync_directory(files, day)
    return path


def read_samples(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Return the whole table.

    Raises:
        NoSamples: there is none.
    """
    if not any(folder.glob("day=*/*.parquet")):
        raise NoSamples(f"{folder} holds no samples: `offsetd pipeline sample` makes them")
    return spark.read.schema(SCHEMA).option("recursiveFileLookup", "true").parquet(f"file:{folder.absolute()}")


def _make(files: Files, place: Path) -> None:
    with suppress(FileExistsError):
        files.make_directory(place)
        sync_directory(files, place.parent)


def _parquet(time: datetime, ends: Iterable[LogEnds]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  # not there without the extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    listed = sorted(ends, key=lambda each: (each.topic, each.partition))
    table = pa.table(
        {
            "time": pa.array([time] * len(listed), pa.timestamp("us", tz="UTC")),
            "topic": pa.array([each.topic for each in listed], pa.string()),
            "partition": pa.array([each.partition for each in listed], pa.int32()),
            "log_start": pa.array([each.log_start for each in listed], pa.int64()),
            "log_end": pa.array([each.log_end for each in listed], pa.int64()),
        }
    )
    file = BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()
