"""A broker's history for tests: segments as compaction releases them, and everything that a reader finds of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from offsetd.history.columns import read_segment, schema
from offsetd.journal.directory import BrokerDirectory, Identity
from offsetd.journal.history import list_history
from offsetd.journal.sealed import list_sealed, sealed_through
from tests.directories import commit
from tests.segments import CLUSTER_ID, JournalFiles

#: Midnight at the beginning of the 2nd of March 2026, UTC.
MIDNIGHT_MS = 1_772_409_600_000
IDENTITY = Identity(CLUSTER_ID, 1, 3)


class Released:
    """Released segments of broker 1. By default each batch commits its own number as the offset of orders/0."""

    def __init__(self, path: Path) -> None:
        self.directory = BrokerDirectory(path)
        self.files = JournalFiles(self.directory.history)

    def write(self, times: Sequence[int]) -> Path:
        """Add a segment with a batch for each of these times."""
        first = self.files.number + 1
        return self.files.segment([[commit(first + at)] for at in range(len(times))], time_ms=times)

    def days(self, segments: int, batches: int) -> None:
        """Add segments that go over midnight, each once."""
        for segment in range(segments):
            start = MIDNIGHT_MS + segment * 86_400_000 - batches // 2
            self.write([start + batch for batch in range(batches)])

    def segments(self) -> list[str]:
        """Return the names of the segments that are left."""
        return [segment.path.name for segment in list_history(self.directory.history)]

    def sealed(self) -> list[str]:
        """Return the sealed files by their place in the directory, oldest batch first."""
        return [str(file.path.relative_to(self.directory.sealed)) for file in list_sealed(self.directory.sealed)]

    def strays(self) -> list[str]:
        """Return what stands in the directory of sealed files and is none."""
        known = {file.path for file in list_sealed(self.directory.sealed)}
        return [str(path) for path in self.directory.sealed.rglob("*") if path.is_file() and path not in known]


def segment_rows(directory: BrokerDirectory, path: Path, after_number: int = 0) -> list[tuple[Any, ...]]:
    """Return the records of a segment."""
    return rows_of(pa.Table.from_batches(read_segment(path, after_number=after_number), schema()))


def everything(directory: BrokerDirectory) -> list[tuple[Any, ...]]:
    """Return each record once for each time that a reader of segments and sealed files meets it, in a fixed order."""
    segments = list_history(directory.history)
    files = list_sealed(directory.sealed)
    rows = [row for file in files for row in rows_of(pq.read_table(file.path, partitioning=None))]
    for segment in segments:
        after = sealed_through(files, int(segment.path.stem))
        rows += segment_rows(directory, segment.path, after)
    return sorted(rows, key=repr)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table as plain values."""
    columns = [
        (column.cast("int64") if pa.types.is_timestamp(column.type) else column).to_pylist() for column in table.columns
    ]
    return [tuple(map(_plain, row)) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, list) else value
