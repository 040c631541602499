"""Reads a run of batches from wherever it lies by now, as Arrow: segments move while they are read.

A batch is in the journal, in a released segment or in a sealed file, and moves only in this order. So whoever looks
for it in one place after it has left that one finds it in a later one, unless retention has taken it.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from offsetd.history.columns import ROWS, SegmentShort, plain, read_segment, schema
from offsetd.journal.sealed import SealedFile, list_sealed
from offsetd.journal.segment import segment_number
from offsetd.pipeline.history.places import Places
from offsetd.pipeline.history.refusal import BatchesGone
from offsetd.pipeline.history.span import Span, missing

_TRIES: Final = 10
#: The day of a batch whose time no calendar has, as in the names of sealed files.
_NO_DAY: Final = date.max
DAY: Final = pa.field("day", pa.date32())


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which batches are wanted, of where, and what of them."""

    places: Places
    span: Span
    columns: tuple[str, ...]
    fail_on_data_loss: bool = True


def all_columns() -> pa.Schema:
    """Return the columns that history has for Spark: those of the sealed files, and the day that they are sorted by."""
    return schema().append(DAY)


def read(wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the records of a run of batches, each once.

    Raises:
        BatchesGone: some of them are nowhere, unless that is not to fail.
        Damage: a segment cannot be read.
        NewerFormat, UnknownEntry: a newer offsetd wrote it.
    """
    with _without_collector():
        for batch in _read(wanted, _stored(wanted.columns)):
            yield _shown(batch, wanted.columns)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep the collector of cycles away from a task's process: decoding makes millions of tuples, and no cycle."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _stored(columns: Sequence[str]) -> tuple[str, ...]:
    """Return which stored columns it takes to show these: days come from times, and batches tell what to leave out."""
    needed = {*columns, "batch", *(("batch_time",) if DAY.name in columns else ())}
    return tuple(name for name in schema().names if name in needed)


def _read(wanted: Wanted, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    places, span, strict = wanted.places, wanted.span, wanted.fail_on_data_loss
    for _ in range(_TRIES):
        # The segment first: if it has gone by the time it is opened, or had gone by now, its files are all there.
        first_number = _holder(places, span)
        files = _overlapping(places, span)
        if _covered(files, span):
            yield from _read_sealed(files, span, names, strict=strict)
            return
        if first_number is None:
            continue
        for path in places.of_segment(first_number):
            with suppress(FileNotFoundError):
                yield from _read_segment(path, span, names, strict=strict)
                return
    if strict:
        raise _gone(span)
    yield from _read_sealed(_overlapping(places, span), span, names, strict=False)


def _holder(places: Places, span: Span) -> int | None:
    """Return the segment that holds the first batch of a run, if any does."""
    found = set()
    for directory in (places.journal, places.segments):
        with suppress(FileNotFoundError):
            found |= {number for path in directory.iterdir() if (number := segment_number(path.name)) is not None}
    return max((number for number in found if number <= span.first), default=None)


def _overlapping(places: Places, span: Span) -> list[SealedFile]:
    files = list_sealed(places.sealed)
    return [file for file in files if Span(file.first_number, file.last_number).within(span).batches]


def _covered(files: Sequence[SealedFile], span: Span) -> bool:
    found = [Span(file.first_number, file.last_number) for file in files]
    return bool(found) and found[0].first <= span.first and found[-1].last >= span.last and not missing(found)


def _read_segment(path: Path, span: Span, names: Sequence[str], *, strict: bool) -> Iterator[pa.RecordBatch]:
    try:
        yield from read_segment(path, after_number=span.first - 1, through_number=span.last, names=names)
    except SegmentShort as short:
        if strict:
            raise _gone(Span(max(span.first, short.last_number + 1), span.last)) from short


def _read_sealed(
    files: Sequence[SealedFile], span: Span, names: Sequence[str], *, strict: bool
) -> Iterator[pa.RecordBatch]:
    for file in files:
        held = Span(file.first_number, file.last_number)
        try:
            with pq.ParquetFile(file.path) as opened:
                for batch in opened.iter_batches(batch_size=ROWS, columns=list(names)):
                    rows = plain(batch.select(list(names)))
                    yield rows if held.within(span) == held else _only(rows, span)
        except FileNotFoundError:
            if strict:
                raise _gone(held) from None


def _only(batch: pa.RecordBatch, span: Span) -> pa.RecordBatch:
    numbers = batch.column("batch")
    return batch.filter(pc.and_(pc.greater_equal(numbers, span.first), pc.less_equal(numbers, span.last)))


def _gone(span: Span) -> BatchesGone:
    return BatchesGone(
        f"the batches {span} are neither in a segment nor sealed: retention has taken them since they were planned, or "
        "they never were in this directory. Ask again; failOnDataLoss=false reads what there is"
    )


def _shown(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    if DAY.name in columns:
        days = batch.column("batch_time").cast(DAY.type).fill_null(pa.scalar(_NO_DAY, DAY.type))
        batch = batch.append_column(DAY, days)
    return batch.select(list(columns))
