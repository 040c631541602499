"""Records of the journal as Arrow columns: what the sealed files hold, and what reads segments that are not sealed yet.

An entry is looked at once for each of its topics; what is one per record (partitions, offsets, times) stays in the
packed columns it was written in until numpy takes all of them together. Nothing here knows days or files of Parquet.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsetd.journal.batch import Batch
from offsetd.journal.segment import Damage, SegmentHeader, walk
from offsetd.record import Entry, Kind, decode_entries, record_count

#: Rows of one record batch: enough to be quick, little enough to hold many.
ROWS: Final = 65_536

#: What calendars hold: the first and last millisecond of the years 1 to 9999. A time outside of it is null, but
#: for an expiry behind it, which is its end.
TIME_MS_MIN: Final = -62_135_596_800_000
TIME_MS_MAX: Final = 253_402_300_799_999

_TIME: Final = pa.timestamp("us", tz="UTC")
_MEMBERS: Final = pa.list_(
    pa.struct(
        [
            ("member_id", pa.string()),
            ("instance_id", pa.string()),
            ("client_id", pa.string()),
            ("host", pa.string()),
            ("rebalance_timeout_ms", pa.int32()),
            ("session_timeout_ms", pa.int32()),
            ("metadata", pa.binary()),
            ("assignment", pa.binary()),
        ]
    )
)
_SCHEMA: Final = pa.schema(
    [
        pa.field("slot", pa.int32(), nullable=False),
        ("sequence", pa.int64()),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("type", pa.int8(), nullable=False),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("commit_time", _TIME),
        ("client_id", pa.string()),
        ("host", pa.string()),
        ("member", pa.string()),
        ("expiry_time", _TIME),
        ("reason", pa.int8()),
        ("generation", pa.int32()),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("leader", pa.string()),
        ("members", _MEMBERS),
        ("release", pa.string()),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("batch_time", _TIME),
    ]
)
_NOBODY: Final = (None, None, None)
_NO_PARTITION: Final = bytes(4)
_NO_OFFSET: Final = bytes(8)

Numbers = npt.NDArray[Any]


def schema() -> pa.Schema:
    """Return the columns of history, as every reader of a sealed file sees them."""
    return _SCHEMA


class SegmentShort(Exception):
    """A segment is whole, and ends before the batch that it should reach."""

    def __init__(self, path: Path, last_number: int, wanted_number: int) -> None:
        super().__init__(f"{path} ends with batch {last_number}; batch {wanted_number} is not in it")
        self.path = path
        self.last_number = last_number


def read_segment(path: Path, *, after_number: int = 0, through_number: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the records of a segment's batches above a number, in the order of the journal.

    Every batch is checked, also those that are passed over. With `through_number` nothing behind that batch is looked
    at, so that the segment may still be written; without it the segment must be whole to its end.

    Raises:
        Damage: at the first place where the next batch cannot be read; all records before it have been given.
        SegmentShort: it ends before `through_number`; all records have been given.
        NewerFormat, UnknownEntry: a newer offsetd wrote it.
        FileNotFoundError: it has been moved or sealed since it was listed.
    """
    # Held open, because compaction or sealing may take the name away while it is read.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        header, batches = open_segment(descriptor, path)
        columns = Columns(header.next_sequences)
        last_number = header.first_number - 1
        try:
            for batch in batches:
                last_number = batch.number
                if last_number > after_number:
                    columns.add(batch)
                else:
                    columns.skip(batch)
                if columns.rows >= ROWS:
                    yield plain(columns.take())
                if last_number == through_number:
                    break
        except Damage:
            # What stands whole in front of it is not lost for it.
            if columns.rows:
                yield plain(columns.take())
            raise
        if columns.rows:
            yield plain(columns.take())
        if through_number is not None and last_number < through_number:
            raise SegmentShort(path, last_number, through_number)
    finally:
        os.close(descriptor)


def open_segment(descriptor: int, path: Path) -> tuple[SegmentHeader, Iterator[Batch]]:
    """Return the header of an open segment, and its batches."""
    return walk(partial(read_at, descriptor), path=path)


def read_at(descriptor: int, position: int, size: int) -> bytes:
    """Return the bytes at a place of an open file, fewer only at its end."""
    pieces = []
    while size > 0 and (piece := os.pread(descriptor, size, position)):
        pieces.append(piece)
        position += len(piece)
        size -= len(piece)
    return b"".join(pieces)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return what `Columns.take` gave with texts in place of numbers into a dictionary."""
    arrays = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


class _Pieces:
    """A column that few entries have: packed numbers, and the rows that they belong to."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._firsts: list[int] = []
        self._columns: list[bytes] = []

    def add(self, first_row: int, column: bytes) -> None:
        self._firsts.append(first_row)
        self._columns.append(column)

    def place(self, into: Numbers) -> None:
        """Write the numbers over those that stand in these rows."""
        values = np.frombuffer(b"".join(self._columns), self._form)
        counts = np.array([len(column) for column in self._columns], np.int64) // values.itemsize
        shifts = np.array(self._firsts, np.int64) - (np.cumsum(counts) - counts)
        into[np.repeat(shifts, counts) + np.arange(len(values))] = values


class Columns:
    """Collects the records of batches until somebody takes them."""

    def __init__(self, next_sequences: Sequence[int]) -> None:
        self._sequences = list(next_sequences)
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        # One for each topic of an entry, or for an entry without topics: what all of its rows have in common.
        self._runs: list[tuple[Any, ...]] = []
        self._partitions: list[bytes] = []
        self._offsets: list[bytes] = []
        self._leader_epochs = _Pieces(">i4")
        self._times = _Pieces(">i8")
        self._expiries = _Pieces(">i8")
        self._expiring = False
        self._text_rows: list[int] = []
        self._texts: list[str] = []
        self._generation_rows: list[int] = []
        self._generations: list[Entry] = []
        self._release_rows: list[int] = []
        self._releases: list[str] = []

    def skip(self, batch: Batch) -> None:
        """Count a batch's records, and leave them out.

        Raises:
            UnknownEntry: a newer offsetd wrote it.
        """
        for entry in decode_entries(batch.body):
            if entry[0] != Kind.OPENING:
                self._sequences[entry[2]] += record_count(entry)

    def add(self, batch: Batch) -> None:
        """Take the records of a batch.

        Raises:
            UnknownEntry: a newer offsetd wrote it.
        """
        place = (batch.number, batch.time_ms, batch.epoch)
        for entry in decode_entries(batch.body):
            kind = entry[0]
            if kind == Kind.COMMIT:
                _, _, slot, group, time_ms, who, topics = entry
                for topic in topics:
                    count = self._add_run(place, kind, slot, group, time_ms, who, None, topic)
                    if count:
                        self._add_commit(topic, count)
            elif kind == Kind.TOUCH:
                _, _, slot, group, time_ms, who, topics = entry
                for topic in topics:
                    self._add_plain(self._add_run(place, kind, slot, group, time_ms, who, None, topic))
            elif kind == Kind.TOMBSTONE:
                _, _, slot, group, time_ms, who, reason, topics = entry
                for topic in topics:
                    self._add_plain(self._add_run(place, kind, slot, group, time_ms, who, reason, topic))
            else:
                self._add_whole(place, entry)

    def _add_run(
        self,
        place: tuple[int, int, int],
        kind: int,
        slot: int,
        group: str | None,
        time_ms: int,
        who: Sequence[str | None],
        reason: int | None,
        topic: Sequence[Any],
    ) -> int:
        partitions = topic[1]
        count = len(partitions) // 4
        if count:
            first = self._sequences[slot]
            self._sequences[slot] = first + count
            self._runs.append((count, slot, first, *place, kind, group, topic[0], time_ms, who, reason))
            self._partitions.append(partitions)
        return count

    def _add_commit(self, topic: Sequence[Any], count: int) -> None:
        _, _, offsets, epochs, times, expiries, metadata = topic
        row = self.rows
        self._offsets.append(offsets)
        if epochs is not None:
            self._leader_epochs.add(row, epochs)
        if times is not None:
            self._times.add(row, times)
        if expiries is not None:
            self._expiring = True
            self._expiries.add(row, expiries)
        for at, text in metadata or ():
            self._text_rows.append(row + at)
            self._texts.append(text)
        self.rows = row + count

    def _add_plain(self, count: int) -> None:
        self._offsets.append(bytes(8 * count))
        self.rows += count

    def _add_whole(self, place: tuple[int, int, int], entry: Entry) -> None:
        """Take an entry that is one row, of no topic."""
        kind, _, slot, group, time_ms = entry[:5]
        if kind == Kind.OPENING:
            # Its fourth place is the epoch that it opens, which its batch is of already.
            self._runs.append((1, slot, -1, *place, kind, None, None, time_ms, _NOBODY, None))
            self._release_rows.append(self.rows)
            self._releases.append(entry[5])
        else:
            first = self._sequences[slot]
            self._sequences[slot] = first + 1
            reason = entry[6] if kind == Kind.GROUP_TOMBSTONE else None
            self._runs.append((1, slot, first, *place, kind, group, None, time_ms, entry[5], reason))
            if kind == Kind.GROUP:
                self._generation_rows.append(self.rows)
                self._generations.append(entry[6])
        self._partitions.append(_NO_PARTITION)
        self._offsets.append(_NO_OFFSET)
        self.rows += 1

    def take(self) -> pa.RecordBatch:
        """Return what was collected, in the order of the journal, and begin anew.

        Group, topic and who are numbers into a dictionary, which is what sorting and Parquet want; `plain` undoes it.
        """
        rows = self.rows
        runs = list(zip(*self._runs, strict=True)) if self._runs else [()] * 12
        counts = np.array(runs[0], np.int64)
        spread = np.repeat(np.arange(len(counts)), counts)
        assert len(spread) == rows, "every run has as many rows as it has partitions"

        def column(at: int, form: Any) -> Numbers:
            return np.array(runs[at], form)[spread]

        kinds = column(6, np.int8)
        within = np.arange(rows) - (np.cumsum(counts) - counts)[spread]
        commits, topical = kinds == Kind.COMMIT, (kinds >= Kind.COMMIT) & (kinds <= Kind.TOMBSTONE)
        offsets = np.frombuffer(b"".join(self._offsets), ">i8").astype(np.int64)
        partitions = np.frombuffer(b"".join(self._partitions), ">i4").astype(np.int32)
        leader_epochs = np.full(rows, -1, np.int32)
        self._leader_epochs.place(leader_epochs)
        times = column(9, np.int64)
        self._times.place(times)
        reasons = [0 if reason is None else reason for reason in runs[11]]
        reasons_column = np.array(reasons, np.int8)[spread]
        clients, hosts, members = self._whos(runs[10], spread)
        generations = [list(found) for found in zip(*self._generations, strict=True)] or [[]] * 5
        rare = partial(_rare, rows, self._generation_rows)
        arrays = [
            pa.array(column(1, np.int32)),
            pa.array(column(2, np.int64) + within, mask=kinds == Kind.OPENING),
            pa.array(column(5, np.int32)),
            pa.array(kinds),
            _dictionary(runs[7], spread),
            _dictionary(runs[8], spread),
            pa.array(partitions, mask=~topical),
            pa.array(offsets, mask=~commits),
            pa.array(leader_epochs, mask=leader_epochs < 0),
            self._metadata(commits),
            _moments(times),
            clients,
            hosts,
            members,
            self._expiry_times(),
            pa.array(reasons_column, mask=reasons_column == 0),
            rare(generations[1], pa.int32()),
            rare(generations[0], pa.string()),
            rare(generations[2], pa.string()),
            rare(generations[3], pa.string()),
            rare([[_member(row) for row in found] for found in generations[4]], _MEMBERS),
            _rare(rows, self._release_rows, self._releases, pa.string()),
            pa.array(column(3, np.int64)),
            _moments(column(4, np.int64)),
        ]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=_dictionaries(arrays))

    def _whos(self, whos: Sequence[Sequence[str | None]], spread: Numbers) -> list[pa.Array]:
        # Few are different, so that only these are taken apart.
        known: dict[Sequence[str | None], int] = {}
        numbers = np.array([known.setdefault(who, len(known)) for who in whos], np.int64)[spread]
        return [_dictionary([who[at] for who in known], numbers) for at in range(3)]

    def _metadata(self, commits: Numbers) -> pa.Array:
        places = np.zeros(len(commits), np.int64)
        places[self._text_rows] = np.arange(1, len(self._texts) + 1)
        return pa.array(["", *self._texts], pa.string()).take(pa.array(places, mask=~commits))

    def _expiry_times(self) -> pa.Array:
        if not self._expiring:
            return pa.nulls(self.rows, _TIME)
        moments = np.full(self.rows, TIME_MS_MIN - 1, np.int64)
        self._expiries.place(moments)
        # What is kept beyond all calendars must not seem to be kept no longer than others.
        return _moments(np.minimum(moments, TIME_MS_MAX))


def _moments(times_ms: Numbers) -> pa.Array:
    shown = (times_ms >= TIME_MS_MIN) & (times_ms <= TIME_MS_MAX)
    return pa.array(np.where(shown, times_ms, 0) * 1000, mask=~shown).cast(_TIME)


def _dictionary(texts: Sequence[str | None], spread: Numbers) -> pa.Array:
    """Return texts, one for each run, as numbers into the different ones, one for each row."""
    known: dict[str | None, int] = {}
    numbers = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
    missing = known.pop(None, None)
    if missing is not None:
        # The numbers behind the one that is no text move up.
        none = numbers == missing
        numbers = numbers - (numbers > missing)
        mask = none[spread]
    else:
        mask = None
    values = pa.array(list(known), pa.string())
    if not len(values):
        values, numbers = pa.array([""]), np.zeros(len(numbers), np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(numbers[spread].astype(np.int32), mask=mask), values)


def _rare(rows: int, at: Sequence[int], values: Sequence[Any], form: pa.DataType) -> pa.Array:
    """Return a column that is null but for a few rows."""
    if not at:
        return pa.nulls(rows, form)
    places = np.zeros(rows, np.int64)
    empty = np.ones(rows, np.bool_)
    places[at], empty[at] = np.arange(len(at)), False
    return pa.array(values, form).take(pa.array(places, mask=empty))


def _member(row: Sequence[Any]) -> dict[str, Any]:
    return {field.name: value for field, value in zip(_MEMBERS.value_type, row, strict=True)}


def _dictionaries(arrays: Sequence[pa.Array]) -> pa.Schema:
    return pa.schema([field.with_type(array.type) for field, array in zip(_SCHEMA, arrays, strict=True)])
