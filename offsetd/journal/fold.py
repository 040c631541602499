"""Folding: what a run of batches leaves behind, as rows of a checkpoint. Pure over the table; no file is touched here.

Only the groups that a run names are looked at. Their rows come from a reader that is passed in, `apply` changes them as
it changes live state, and what differs afterwards is to be written. A run is cut at a batch boundary when the groups it
touched grow large, so that memory stays bounded and each run can be one atomic write together with its place.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from offsetd.journal.batch import Batch
from offsetd.record import Entry, Kind, decode_entries, record_count
from offsetd.rows import checkpoint_rows, restore
from offsetd.table import SlotTable, TopicIndex, apply

#: Entries and rows that one run may hold. A full disk's reserve has to cover one run's log and tables.
RUN_BYTES_MAX: Final = 16 * 1024 * 1024

#: Gives the rows (topic, value) that a checkpoint holds of one group.
Reader: TypeAlias = Callable[[int, str], Iterable[tuple[str, bytes]]]

#: Slot, group id, topic: "" names the group's own row.
Key: TypeAlias = tuple[int, str, str]

# Plain numbers: comparing with a member of an enumeration costs as much as all else that a replaced commit does.
_OPENING: Final = int(Kind.OPENING)
_COMMIT: Final = int(Kind.COMMIT)


class FoldRefused(Exception):
    """The batches do not follow what the checkpoint holds, so folding them would leave a hole."""

    def __init__(self, *, folded_number: int, found_number: int, reason: str) -> None:
        super().__init__(
            f"the checkpoint ends with batch {folded_number}, and batch {found_number} of the journal {reason}. "
            "Nothing was folded or released; `offsetd journal verify` shows what is there."
        )
        self.folded_number = folded_number
        self.found_number = found_number


@dataclass(frozen=True, slots=True)
class SlotMark:
    """What a slot counts on: the sequence its next record gets, and the newest time the log has shown."""

    sequence: int = 0
    newest_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Up to where a checkpoint holds the journal: its last folded batch, and where every slot then stood."""

    number: int = 0
    crc: int = 0
    epoch: int = 0
    time_ms: int = 0
    slots: dict[int, SlotMark] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One atomic change of a checkpoint."""

    puts: dict[Key, bytes]
    deletes: tuple[Key, ...]
    place: Place
    batches: int
    records: int


def follows(place: Place, batch: Batch) -> None:
    """Check that a batch is the one right after a place.

    Raises:
        FoldRefused: it is not.
    """
    reason = None
    if batch.number != place.number + 1:
        reason = f"stands where batch {place.number + 1} should"
    elif batch.previous_crc != place.crc:
        reason = "does not follow it: their checksums name different batches"
    elif batch.epoch < place.epoch:
        reason = f"is of epoch {batch.epoch}, before epoch {place.epoch}"
    if reason is not None:
        raise FoldRefused(folded_number=place.number, found_number=batch.number, reason=reason)


def fold_runs(
    batches: Iterable[Batch], place: Place, read: Reader, *, run_bytes_max: int = RUN_BYTES_MAX
) -> Iterator[Fold]:
    """Yield the changes that bring a checkpoint from `place` to the last of these batches.

    The caller writes each fold before it asks for the next one: a later run reads what an earlier one wrote. Batches up
    to `place` are passed over.

    Raises:
        FoldRefused: a batch is missing, or is not of this journal.
        UnknownEntry: a newer offsetd wrote one of them.
    """
    run = _Run(place, read)
    for batch in batches:
        if batch.number <= run.place.number:
            continue
        run.add(batch)
        if run.bytes_bound > run_bytes_max and run.measure() > run_bytes_max // 2:
            yield run.fold()
            run = _Run(run.place, read)
    if run.batches:
        yield run.fold()


class _Repeated:
    """Commits of one group to the same partitions, one after another: the last of them, and how many they were."""

    __slots__ = ("entry", "places", "times")

    def __init__(self, entry: Entry, places: list[tuple[str, bytes]]) -> None:
        self.entry = entry
        self.places = places
        self.times = 1


class _Run:
    """The groups that a run has touched: as the checkpoint has them, and as the batches leave them."""

    def __init__(self, place: Place, read: Reader) -> None:
        self.place = place
        self.batches = 0
        # Never less than what is held: commits that overwrite one another are counted until the next measuring.
        self.bytes_bound = 0
        self._read = read
        self._records = 0
        self._index = TopicIndex()
        self._tables: dict[int, SlotTable] = {}
        self._before: dict[tuple[int, str], dict[str, bytes]] = {}
        # Each group's newest commit, not yet applied: consumers repeat themselves, and the next one may replace it.
        self._newest: dict[tuple[int, str], _Repeated] = {}
        self._marks = dict(place.slots)

    def add(self, batch: Batch) -> None:
        follows(self.place, batch)
        for entry in decode_entries(batch.body):
            if entry[0] == _OPENING:
                continue
            slot, group_id = entry[2], entry[3]
            table = self._tables.get(slot)
            if table is None:
                mark = self._marks.get(slot, SlotMark())
                table = self._tables[slot] = SlotTable(slot, self._index, sequence=mark.sequence)
                table.newest_ms = mark.newest_ms
            key = slot, group_id
            if key not in self._before:
                self._load(table, group_id)
            if entry[4] > table.newest_ms:
                table.newest_ms = entry[4]
            places = [topic[:2] for topic in entry[6]] if entry[0] == _COMMIT else None
            earlier = self._newest.get(key)
            if earlier is not None:
                if places == earlier.places:
                    # It names the same partitions and replaces their rows whole: nothing of the earlier one is left.
                    earlier.entry = entry
                    earlier.times += 1
                    continue
                self._settle(table, self._newest.pop(key))
            if places is not None:
                self._newest[key] = _Repeated(entry, places)
            else:
                self._records += record_count(entry)
                apply(table, entry)
        self.batches += 1
        self.bytes_bound += len(batch.body)
        self.place = Place(number=batch.number, crc=batch.crc, epoch=batch.epoch, time_ms=batch.time_ms)

    def measure(self) -> int:
        """Return the bytes that the touched groups really hold, which is what the bound then starts from."""
        self._settle_all()
        now = sum(
            len(value)
            for table in self._tables.values()
            for group in table.groups.values()
            for _, value in checkpoint_rows(group)
        )
        before = sum(len(value) for rows in self._before.values() for value in rows.values())
        self.bytes_bound = now + before
        return self.bytes_bound

    def fold(self) -> Fold:
        """Return what differs between the checkpoint and now."""
        self._settle_all()
        puts: dict[Key, bytes] = {}
        deletes: list[Key] = []
        for (slot, group_id), before in self._before.items():
            group = self._tables[slot].groups.get(group_id)
            now = {} if group is None else dict(checkpoint_rows(group))
            for topic, value in now.items():
                if before.get(topic) != value:
                    puts[slot, group_id, topic] = value
            deletes.extend((slot, group_id, topic) for topic in before if topic not in now)
        for slot, table in self._tables.items():
            self._marks[slot] = SlotMark(table.sequence, table.newest_ms)
        place = self.place
        self.place = Place(
            number=place.number, crc=place.crc, epoch=place.epoch, time_ms=place.time_ms, slots=self._marks
        )
        return Fold(puts=puts, deletes=tuple(deletes), place=self.place, batches=self.batches, records=self._records)

    def _settle_all(self) -> None:
        for (slot, _), repeated in self._newest.items():
            self._settle(self._tables[slot], repeated)
        self._newest.clear()

    def _settle(self, table: SlotTable, repeated: "_Repeated") -> None:
        count = record_count(repeated.entry)
        # What was replaced is not applied, but counts: every replay gives a record the same sequence.
        table.sequence += count * (repeated.times - 1)
        self._records += count * repeated.times
        apply(table, repeated.entry)

    def _load(self, table: SlotTable, group_id: str) -> None:
        rows = self._before[table.slot, group_id] = dict(self._read(table.slot, group_id))
        for topic, value in rows.items():
            restore(table, group_id, topic, value)
            self.bytes_bound += 2 * len(value)
