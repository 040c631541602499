"""A data directory whose segments go the way of a daemon's: from the journal to history, and into sealed files."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from offsetd.history.columns import read_segment
from offsetd.history.seal import Done, seal
from offsetd.journal.history import list_history
from offsetd.journal.sealed import list_sealed
from offsetd.pipeline.history.listing import Lister
from offsetd.pipeline.history.places import Places, locate
from offsetd.pipeline.history.reading import Wanted, all_columns, read
from offsetd.pipeline.history.span import Span
from offsetd.record import encode_opening
from tests.directories import DataDirectory
from tests.histories import Step, encode
from tests.segments import TIME_MS

COLUMNS = tuple(all_columns().names)
#: What tells a record from all others, and what it says.
KEY = ("batch", "type", "slot", "sequence", "group", "topic", "partition", "offset", "metadata")

Row = tuple[Any, ...]


class History:
    """One broker's directory, and every record that was ever written to it."""

    def __init__(self, path: Path) -> None:
        self.data = DataDirectory(path)
        self.rows: list[Row] = []

    @property
    def path(self) -> Path:
        return self.data.path

    @property
    def places(self) -> Places:
        return locate(self.path, None)

    def write(self, batches: int, *, time_ms: int | None = None) -> Path:
        """Add a segment whose batches have two records each."""
        return self.add([[encode_opening(1, TIME_MS, "0.1.0")] * 2 for _ in range(batches)], time_ms)

    def add(self, batches: list[list[bytes]], time_ms: int | None = None) -> Path:
        """Add a segment of entries."""
        path = self.data.journal.segment(batches, time_ms=time_ms)
        self.rows += keys(read_segment(path))
        return path

    def add_steps(self, batches: list[list[Step]]) -> Path:
        """Add a segment of random entries."""
        return self.add([[encode(step) for step in batch] for batch in batches])

    def release(self, segments: int) -> None:
        """Move the oldest segments of the journal to history, as compaction does."""
        for path in sorted(self.data.broker.journal.glob("*.segment"))[:segments]:
            path.rename(self.data.broker.history / path.name)

    def seal(self) -> None:
        """Seal all that was released."""
        seal(self.data.broker, self.data.identity, done=Done())

    def forget(self) -> None:
        """Take the oldest file of history away, as retention does."""
        sealed = [file.path for file in list_sealed(self.data.broker.sealed)]
        (sealed or [segment.path for segment in list_history(self.data.broker.history)])[0].unlink()


def keys(batches: Any) -> list[Row]:
    """Return what tells records apart, of Arrow batches."""
    return [tuple(row[name] for name in KEY) for batch in batches for row in batch.select(list(KEY)).to_pylist()]


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def read_span(places: Places, span: Span, *, strict: bool = True) -> list[Row]:
    """Return the records of a run of batches."""
    return keys(read(Wanted(places, span, COLUMNS, fail_on_data_loss=strict)))


def read_sealed(path: Path) -> list[Row]:
    """Return the records of a sealed file, by Arrow alone."""
    return keys(pq.read_table(path, schema=pa.schema(all_columns())).to_batches())


def spans(places: Places) -> list[Span]:
    """Return what is not sealed."""
    return Lister(places).look().unsealed
