"""Records of the journal as Arrow columns: what the sealed files hold, and what reads segments that are not sealed yet.

An entry is looked at once for each of its topics. What is one per record (partitions, offsets, times) stays in the
packed columns it was written in until numpy takes all of them together; what is said again and again (group, topic,
who) is looked at once for each different one. Nothing here knows days or files of Parquet.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from offsetd.journal.batch import Batch
from offsetd.journal.files import read_at
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

_COMMIT: Final = int(Kind.COMMIT)
#: A commit's topic that says nothing of leader epochs, times, expiry and metadata, as nearly all do.
_PLAIN: Final = (None, None, None, None)

Numbers = npt.NDArray[Any]

#: Kind, slot, group, topic, who and reason.
_Sort: TypeAlias = tuple[int, int, str | None, str | None, Sequence[str | None], int]


def schema() -> pa.Schema:
    """Return the columns of history, as every reader of a sealed file sees them."""
    return _SCHEMA


class SegmentShort(Exception):
    """A segment is whole, and ends before the batch that it should reach."""

    def __init__(self, path: Path, last_number: int, wanted_number: int) -> None:
        super().__init__(f"{path} ends with batch {last_number}; batch {wanted_number} is not in it")
        self.path = path
        self.last_number = last_number


def read_segment(
    path: Path, *, after_number: int = 0, through_number: int | None = None, names: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a segment's batches above a number, in the order of the journal; all columns, or these.

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
        columns = Columns(header.next_sequences, names)
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


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return what `Columns.take` gave with texts in place of numbers into a dictionary."""
    arrays = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([_SCHEMA.field(name) for name in batch.schema.names]))


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

    def __init__(self, next_sequences: Sequence[int], names: Sequence[str] | None = None) -> None:
        """Begin where each slot's next sequence is this; `names` are the columns that are wanted, all if None."""
        self._sequences = list(next_sequences)
        self._names = tuple(_SCHEMA.names if names is None else names)
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        # What all of a batch has in common: number, time, epoch; and the row that it begins with.
        self._batches: list[tuple[int, int, int, int]] = []
        # A run is one topic of an entry, or an entry without topics. What others say too is said by a number here.
        self._sorts: dict[_Sort, int] = {}
        self._run_sorts: list[int] = []
        self._run_firsts: list[int] = []
        self._run_times: list[int] = []
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
        self._batches.append((batch.number, batch.time_ms, batch.epoch, self.rows))
        sorts, sequences, firsts = self._sorts, self._sequences, self._run_firsts
        run_sorts, times, partitions, offsets = self._run_sorts, self._run_times, self._partitions, self._offsets
        for entry in decode_entries(batch.body):
            kind = entry[0]
            if kind == _COMMIT:
                # Nearly all there is, so it is `_add_run` written out: a call for each costs a third of the rate.
                _, _, slot, group, time_ms, who, topics = entry
                for topic in topics:
                    packed = topic[1]
                    if packed:
                        run_sorts.append(sorts.setdefault((_COMMIT, slot, group, topic[0], who, 0), len(sorts)))
                        times.append(time_ms)
                        firsts.append(sequences[slot])
                        partitions.append(packed)
                        offsets.append(topic[2])
                        if topic[3:] != _PLAIN:
                            self._add_particulars(topic)
                        count = len(packed) >> 2
                        sequences[slot] += count
                        self.rows += count
            elif kind == Kind.TOUCH:
                _, _, slot, group, time_ms, who, topics = entry
                self._add_topics(kind, slot, group, time_ms, who, 0, topics)
            elif kind == Kind.TOMBSTONE:
                _, _, slot, group, time_ms, who, reason, topics = entry
                self._add_topics(kind, slot, group, time_ms, who, reason, topics)
            else:
                self._add_whole(entry)

    def _add_run(self, sort: _Sort, time_ms: int, partitions: bytes, offsets: bytes) -> None:
        sorts, sequences, slot = self._sorts, self._sequences, sort[1]
        self._run_sorts.append(sorts.setdefault(sort, len(sorts)))
        self._run_times.append(time_ms)
        self._run_firsts.append(sequences[slot])
        sequences[slot] += len(partitions) >> 2
        self._partitions.append(partitions)
        self._offsets.append(offsets)

    def _add_particulars(self, topic: Sequence[Any]) -> None:
        """Take what few commits say of their rows, which begin with the next one."""
        _, _, _, epochs, times, expiries, metadata = topic
        row = self.rows
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

    def _add_topics(
        self,
        kind: int,
        slot: int,
        group: str,
        time_ms: int,
        who: Sequence[str | None],
        reason: int,
        topics: Sequence[Sequence[Any]],
    ) -> None:
        """Take an entry that names partitions, and no offsets."""
        for name, partitions in topics:
            if partitions:
                self._add_run((kind, slot, group, name, who, reason), time_ms, partitions, bytes(2 * len(partitions)))
                self.rows += len(partitions) >> 2

    def _add_whole(self, entry: Entry) -> None:
        """Take an entry that is one row, of no topic."""
        kind, _, slot, group, time_ms = entry[:5]
        if kind == Kind.OPENING:
            # Of no slot, so that it has no sequence. Its fourth place is the epoch that it opens, which its batch has.
            opening: _Sort = (kind, slot, None, None, _NOBODY, 0)
            self._run_sorts.append(self._sorts.setdefault(opening, len(self._sorts)))
            self._run_times.append(time_ms)
            self._run_firsts.append(0)
            self._partitions.append(_NO_PARTITION)
            self._offsets.append(_NO_OFFSET)
            self._release_rows.append(self.rows)
            self._releases.append(entry[5])
        else:
            reason = entry[6] if kind == Kind.GROUP_TOMBSTONE else 0
            self._add_run((kind, slot, group, None, entry[5], reason), time_ms, _NO_PARTITION, _NO_OFFSET)
            if kind == Kind.GROUP:
                self._generation_rows.append(self.rows)
                self._generations.append(entry[6])
        self.rows += 1

    def take(self) -> pa.RecordBatch:
        """Return what was collected, in the order of the journal, and begin anew.

        Group, topic and who are numbers into a dictionary, which is what sorting and Parquet want; `plain` undoes it.
        """
        builders = self._builders()
        arrays = [builders[name]() for name in self._names]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=_dictionaries(self._names, arrays))

    def _builders(self) -> dict[str, Callable[[], pa.Array]]:
        """Return what makes each column: only those are made that somebody wants."""
        rows = self.rows
        counts = np.fromiter(map(len, self._partitions), np.int64, len(self._partitions)) >> 2
        sorts = np.repeat(np.array(self._run_sorts, np.int32), counts)
        assert len(sorts) == rows, "every run has as many rows as it has partitions"
        kinds_of, slots, groups, topics, whos, reasons_of = zip(*self._sorts, strict=True) if self._sorts else [()] * 6
        numbers, times_of, epochs, starts = zip(*self._batches, strict=True) if self._batches else [()] * 4
        sizes = np.array([*starts[1:], rows], np.int64) - np.array(starts, np.int64)

        def said(values: Sequence[int], form: Any) -> Numbers:
            return np.array(values, form)[sorts]

        def of_batches(values: Sequence[int], form: Any) -> Numbers:
            return np.repeat(np.array(values, form), sizes)

        kinds = said(kinds_of, np.int8)
        rare = partial(_rare, rows, self._generation_rows)
        generations = [list(found) for found in zip(*self._generations, strict=True)] or [[]] * 5

        def sequences() -> pa.Array:
            # Of each row the first of its run, and how many rows of the run stand before it.
            shifts = np.array(self._run_firsts, np.int64) - (np.cumsum(counts) - counts)
            return pa.array(np.repeat(shifts, counts) + np.arange(rows), mask=kinds == Kind.OPENING)

        def leader_epochs() -> pa.Array:
            found = np.full(rows, -1, np.int32)
            self._leader_epochs.place(found)
            return pa.array(found, mask=found < 0)

        def times() -> pa.Array:
            found = np.repeat(np.array(self._run_times, np.int64), counts)
            self._times.place(found)
            return _moments(found)

        def partitions() -> pa.Array:
            topical = (kinds >= Kind.COMMIT) & (kinds <= Kind.TOMBSTONE)
            return pa.array(np.frombuffer(b"".join(self._partitions), ">i4").astype(np.int32), mask=~topical)

        def offsets() -> pa.Array:
            found = np.frombuffer(b"".join(self._offsets), ">i8").astype(np.int64)
            return pa.array(found, mask=kinds != Kind.COMMIT)

        def reasons() -> pa.Array:
            found = said(reasons_of, np.int8)
            return pa.array(found, mask=found == 0)

        return {
            "slot": lambda: pa.array(said(slots, np.int32)),
            "sequence": sequences,
            "epoch": lambda: pa.array(of_batches(epochs, np.int32)),
            "type": lambda: pa.array(kinds),
            "group": lambda: _dictionary(groups, sorts),
            "topic": lambda: _dictionary(topics, sorts),
            "partition": partitions,
            "offset": offsets,
            "leader_epoch": leader_epochs,
            "metadata": lambda: self._metadata(kinds == Kind.COMMIT),
            "commit_time": times,
            "client_id": lambda: _dictionary([who[0] for who in whos], sorts),
            "host": lambda: _dictionary([who[1] for who in whos], sorts),
            "member": lambda: _dictionary([who[2] for who in whos], sorts),
            "expiry_time": self._expiry_times,
            "reason": reasons,
            "generation": lambda: rare(generations[1], pa.int32()),
            "protocol_type": lambda: rare(generations[0], pa.string()),
            "protocol": lambda: rare(generations[2], pa.string()),
            "leader": lambda: rare(generations[3], pa.string()),
            "members": lambda: rare([[_member(row) for row in found] for found in generations[4]], _MEMBERS),
            "release": lambda: _rare(rows, self._release_rows, self._releases, pa.string()),
            "batch": lambda: pa.array(of_batches(numbers, np.int64)),
            "batch_time": lambda: _moments(of_batches(times_of, np.int64)),
        }

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
    """Return texts, one for each sort of run, as numbers into the different ones, one for each row."""
    known: dict[str | None, int] = {}
    numbers = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
    missing = known.pop(None, None)
    mask = None
    if missing is not None:
        # The numbers behind the one that is no text move up.
        mask = (numbers == missing)[spread]
        numbers -= numbers > missing
    values = pa.array(list(known), pa.string())
    if not len(values):
        values, numbers = pa.array([""]), np.zeros(len(numbers), np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(numbers[spread], mask=mask), values)


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


def _dictionaries(names: Sequence[str], arrays: Sequence[pa.Array]) -> pa.Schema:
    return pa.schema([_SCHEMA.field(name).with_type(array.type) for name, array in zip(names, arrays, strict=True)])
