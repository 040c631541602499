"""What a planned repair would lose: which batches, and what each offset would fall back to. Reads only.

Found by doing: the rows of the groups concerned as a start would load them after the repair, then once more with the
lost batches applied to them. What differs is the loss.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from offsetd.group import Offset
from offsetd.journal.batch import Batch
from offsetd.journal.directory import BrokerDirectory, Identity
from offsetd.journal.examine import Candidate, Question, examine_whole, later_batches
from offsetd.journal.files import OsFiles
from offsetd.journal.plan import Plan
from offsetd.journal.segment import read_batches, segment_number
from offsetd.journal.view import viewed
from offsetd.record import Entry, Kind, decode_entries
from offsetd.rows import restore
from offsetd.table import SlotTable, TopicIndex, apply

_Rows: TypeAlias = dict[tuple[str, str, int], Offset]


@dataclass(frozen=True, slots=True)
class LostBatch:
    """A whole batch that would go into quarantine."""

    path: Path
    number: int
    time_ms: int
    entries: int


@dataclass(frozen=True, slots=True)
class LostOffset:
    """An offset as the lost batches leave it, and as it would be without them; None for none."""

    group: str
    topic: str
    partition: int
    lost: Offset | None
    kept: Offset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """All that is known of what would be lost."""

    # The last batch that is kept.
    kept_number: int
    batches: tuple[LostBatch, ...]
    # Numbers of batches that were written once and that nobody can read any more.
    unreadable: tuple[range, ...]
    offsets: tuple[LostOffset, ...]
    # Whether the journal's end itself is gone, so that there may have been more than anything tells of.
    untraced: bool

    @property
    def nothing(self) -> bool:
        """Whether everything is kept."""
        return not self.batches and not self.unreadable and not self.untraced


def measure_loss(directory: BrokerDirectory, identity: Identity, plan: Plan) -> Loss:
    """Compare what a start would serve after the repair with what the lost batches say.

    Raises:
        UnknownEntry: a newer offsetd wrote one of them.
    """
    lost = list(_lost_batches(directory, identity, plan))
    entries = [entry for _, batch in lost for entry in decode_entries(batch.body) if entry[0] != Kind.OPENING]
    groups = _Groups((entry[2], entry[3]) for entry in entries)
    _load(groups, directory, identity, plan)
    kept = groups.rows()
    for entry in entries:
        groups.add(entry)
    new = plan.files.new
    return Loss(
        kept_number=plan.found.chain.number,
        batches=tuple(LostBatch(path, batch.number, batch.time_ms, batch.count) for path, batch in lost),
        unreadable=tuple(_unreadable(plan, [batch.number for _, batch in lost])),
        offsets=tuple(_differences(kept, groups.rows())),
        untraced=new is not None and new.source is None,
    )


def _lost_batches(directory: BrokerDirectory, identity: Identity, plan: Plan) -> Iterator[tuple[Path, Batch]]:
    """Yield the whole batches in what would be cut, by number; not those that are kept elsewhere."""
    question = _question(directory, identity, plan, OsFiles())
    found: dict[int, tuple[Path, Batch]] = {}
    for cut in plan.files.cuts.values():
        candidate = Candidate(cut.path, 0, cut.size, None, None)
        for batch in later_batches(question, candidate, cut.position, plan.found.chain.number + 1):
            found.setdefault(batch.number, (cut.path, batch))
    yield from (found[number] for number in sorted(found))


def _unreadable(plan: Plan, found: list[int]) -> Iterator[range]:
    """Yield the runs of numbers that were once written and are not among the batches found."""
    begun = [segment_number(cut.path.name) or 0 for cut in plan.files.cuts.values()]
    # A segment is begun when all batches before it are durable.
    known = [*found, *(number - 1 for number in begun), plan.durable.number if plan.durable else 0]
    expected = plan.found.chain.number + 1
    for number in [*found, max(known) + 1]:
        if number > expected:
            yield range(expected, number)
        expected = number + 1


def _load(groups: "_Groups", directory: BrokerDirectory, identity: Identity, plan: Plan) -> None:
    """Fill the groups as a start after the repair would."""
    if not groups.wanted:
        return
    if not plan.renew:
        with viewed(directory.checkpoint, cluster_id=identity.cluster_id) as checkpoint:
            for slot, group in groups.wanted:
                for topic, value in checkpoint.group_rows(slot, group):
                    groups.restore(slot, group, topic, value)
            after_number = checkpoint.place.number
    else:
        after_number = 0
    for path in plan.bridge.segments if plan.bridge else ():
        for batch in read_batches(path, after_number):
            groups.add_batch(batch)
    examine_whole(_question(directory, identity, plan, plan.files), groups.add_batch)


def _question(directory: BrokerDirectory, identity: Identity, plan: Plan, files: OsFiles) -> Question:
    return Question(
        journal=directory.journal,
        files=files,
        cluster=identity.cluster,
        slots=identity.slots,
        after_number=plan.place.number,
        durable=None,
    )


class _Groups:
    """Tables that hold only the groups concerned."""

    def __init__(self, wanted: Iterable[tuple[int, str]]) -> None:
        self.wanted = set(wanted)
        self._index = TopicIndex()
        self._tables: dict[int, SlotTable] = {}

    def restore(self, slot: int, group: str, topic: str, value: bytes) -> None:
        restore(self._table(slot), group, topic, value)

    def add_batch(self, batch: Batch) -> None:
        for entry in decode_entries(batch.body):
            if entry[0] != Kind.OPENING and (entry[2], entry[3]) in self.wanted:
                self.add(entry)

    def add(self, entry: Entry) -> None:
        apply(self._table(entry[2]), entry)

    def rows(self) -> _Rows:
        return {
            (group_id, topic, partition): offset
            for table in self._tables.values()
            for group_id, group in table.groups.items()
            for topic in group.names()
            for partition, offset in group.rows(topic)
        }

    def _table(self, slot: int) -> SlotTable:
        table = self._tables.get(slot)
        if table is None:
            table = self._tables[slot] = SlotTable(slot, self._index)
        return table


def _differences(kept: _Rows, known: _Rows) -> Iterator[LostOffset]:
    for key in sorted(kept.keys() | known.keys()):
        before, after = kept.get(key), known.get(key)
        if _shown(before) != _shown(after):
            yield LostOffset(*key, lost=after, kept=before)


def _shown(offset: Offset | None) -> object:
    """Return what a fetch shows of an offset, and when it would expire; not when it was committed."""
    return None if offset is None else (offset.offset, offset.leader_epoch, offset.metadata, offset.expiry_ms)
