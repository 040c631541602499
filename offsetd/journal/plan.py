"""The plan of a repair: the least that must go so that a start trusts the rest. Reads only; `repair` carries it out.

A start is tried on the journal as planned. Each place that it refuses is cut there, from that batch on: what is left is
always everything up to some batch, never a journal with a hole. Batches that the checkpoint holds are not missed.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from offsetd.journal.batch import Batch
from offsetd.journal.checkpoint import Checkpoint, CheckpointLost, CheckpointRefused
from offsetd.journal.directory import BrokerDirectory, Identity
from offsetd.journal.examine import (
    Candidate,
    Findings,
    JournalDamaged,
    JournalGap,
    JournalRefused,
    JournalShort,
    JournalStranger,
    Question,
    examine_whole,
    later_batches,
)
from offsetd.journal.fold import FoldRefused, Place, follows
from offsetd.journal.history import list_history
from offsetd.journal.marker import DURABLE, Marker, read_marker
from offsetd.journal.planned import Cut, NewSegment, PlannedFiles
from offsetd.journal.rebuild import Bridge, find_bridge
from offsetd.journal.sealed import list_sealed
from offsetd.journal.segment import Damage, encode_header, segment_name, segment_number, walk
from offsetd.journal.survey import list_names, survey_segments
from offsetd.journal.view import read_through, viewed
from offsetd.record import decode_entries


class RepairRefused(Exception):
    """Nothing here can be repaired without guessing; the words say what else to do."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a repair would do, and what a start would find after it."""

    place: Place
    durable: Marker | None
    files: PlannedFiles
    found: Findings = field(default_factory=Findings)
    # Why a start refuses, in the order in which the reasons showed.
    refusals: list[str] = field(default_factory=list)
    # How the checkpoint is brought back; `renew` makes it anew, else it is carried on.
    bridge: Bridge | None = None
    renew: bool = False
    marker: Marker | None = None

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.bridge or self.files.cuts or self.files.new or self.marker)


def is_new(directory: BrokerDirectory) -> bool:
    """Return whether a start would take this for the directory of a new broker."""
    used = PlannedFiles().list(directory.journal) or list_history(directory.history) or list_sealed(directory.sealed)
    return not used and not Checkpoint.exists(directory.checkpoint)


def read_place(directory: BrokerDirectory, identity: Identity) -> Place:
    """Read a checkpoint from one end to the other, and return where it ends.

    Raises:
        CheckpointRefused: it cannot be trusted or opened.
    """
    with viewed(directory.checkpoint, cluster_id=identity.cluster_id) as checkpoint:
        read_through(checkpoint, identity.slots)
        return checkpoint.place


def make_plan(directory: BrokerDirectory, identity: Identity) -> Plan:
    """Find the least that makes a start possible.

    Raises:
        RepairRefused: it takes more than cutting and what history holds.
        JournalRefused: a defect that no repair is allowed to touch: a newer format, a bad disk, another's segment.
        CheckpointRefused: the same of the checkpoint.
        UnknownEntry: a newer offsetd wrote to this journal.
    """
    durable, _ = read_marker(PlannedFiles(), directory.journal / DURABLE)
    if is_new(directory):
        return Plan(place=Place(), durable=durable, files=PlannedFiles())
    try:
        place = read_place(directory, identity)
    except CheckpointLost as lost:
        return _from_history(directory, identity, durable, Place(), lost)
    plan = Plan(place=place, durable=durable, files=PlannedFiles())
    try:
        _Planner(directory, identity, plan).settle()
    except JournalGap as gap:
        return _from_history(directory, identity, durable, place, gap)
    except (FoldRefused, JournalStranger) as stranger:
        return _from_history(directory, identity, durable, Place(), stranger)
    return plan


def _from_history(
    directory: BrokerDirectory,
    identity: Identity,
    durable: Marker | None,
    after: Place,
    refusal: CheckpointRefused | JournalRefused | FoldRefused,
) -> Plan:
    bridge = bridge_of(directory, identity, after)
    if bridge.obstacle is not None:
        raise RepairRefused(f"{_sentence(refusal)} It cannot be repaired: {bridge.obstacle}.") from refusal
    plan = Plan(place=bridge.place, durable=durable, files=PlannedFiles(), bridge=bridge, renew=not after.number)
    plan.refusals.append(str(refusal))
    try:
        _Planner(directory, identity, plan).settle()
    except (JournalGap, JournalStranger, FoldRefused) as stranger:
        raise RepairRefused(
            f"{_sentence(refusal)} With what history holds it would still be refused: {stranger}"
        ) from stranger
    return plan


def _sentence(refusal: Exception) -> str:
    return str(refusal).rstrip(".") + "."


def bridge_of(directory: BrokerDirectory, identity: Identity, after: Place) -> Bridge:
    """Look whether a broker's history leads from a place to its journal."""
    history = [segment.path for segment in list_history(directory.history)]
    journal = [directory.journal / listed.name for listed, _ in list_names(PlannedFiles(), directory.journal)]
    bridge = find_bridge(history, journal, cluster=identity.cluster, after=after)
    sealed = [file for file in list_sealed(directory.sealed) if file.last_number > after.number]
    if bridge.obstacle is None or not sealed:
        return bridge
    numbers = f"{max(sealed[0].first_number, after.number + 1)} to {sealed[-1].last_number}"
    hint = f"batches {numbers} were sealed as Parquet, and a checkpoint is made of segments only"
    return replace(bridge, obstacle=f"{bridge.obstacle} ({hint})")


class _Planner:
    """A plan in the making."""

    def __init__(self, directory: BrokerDirectory, identity: Identity, plan: Plan) -> None:
        self._journal = directory.journal
        self._identity = identity
        self._plan = plan
        self._files = plan.files
        self._durable = plan.durable

    def settle(self) -> None:
        """Cut until a start would go through."""
        plan = self._plan
        # Every round takes a segment, the marker or the gap to the checkpoint out of the way, so the rounds end.
        while True:
            follower = _Follower(plan.place)
            try:
                plan.found = examine_whole(self._question(), follower.add)
                break
            except JournalDamaged as damaged:
                plan.refusals.append(_place(damaged))
                self._cut_from(damaged)
            except JournalShort as short:
                plan.refusals.append(_place(short))
                if self._durable is not None:
                    self._durable = None
                else:
                    self._begin_after_checkpoint()
        self._clear_covered()
        if plan.durable is not None and plan.durable.number > plan.found.chain.number:
            plan.marker = _marker(plan.found)

    def _question(self) -> Question:
        return Question(
            journal=self._journal,
            files=self._files,
            cluster=self._identity.cluster,
            slots=self._identity.slots,
            after_number=self._plan.place.number,
            after_crc=self._plan.place.crc,
            durable=self._durable,
        )

    def _cut_from(self, damaged: JournalDamaged) -> None:
        """Take everything from a place on out of the journal, but keep what follows the checkpoint, if that does."""
        path, position = damaged.path, damaged.position
        if self._files.new is not None and path == self._files.new.path:
            raise damaged  # it was read a moment ago, and was whole
        segments = list(list_names(self._files, self._journal))
        saved = None
        if self._expected(path, position) <= self._plan.place.number:
            saved = self._save(path, position)
        for listed, number in segments:
            each = self._journal / listed.name
            if each == path:
                self._files.cuts[path] = Cut(path, position, self._size(listed.size, path, position), damaged.reason)
            elif saved is None and number > _number(path):
                self._files.cuts[each] = Cut(each, 0, listed.size, f"it follows the damage in {path.name}")
        self._files.new = saved or self._files.new

    def _size(self, listed_size: int, path: Path, position: int) -> int:
        earlier = self._files.cuts.get(path)
        return (listed_size if earlier is None else earlier.position + earlier.size) - position

    def _expected(self, path: Path, position: int) -> int:
        """Return the number of the batch that should stand at a place."""
        number = _number(path)
        if position == 0:
            return number
        try:
            _, batches = walk(partial(self._files.read, path), path=path)
            for batch in batches:
                if batch.position >= position:
                    break
                number = batch.number + 1
        except Damage:
            pass  # the place itself
        return number

    def _save(self, path: Path, position: int) -> NewSegment | None:
        """Find the batches behind a defect that follow the checkpoint: with a header of their own nothing is lost."""
        place = self._plan.place
        name = segment_name(place.number + 1)
        if any(listed.name == name for listed, _ in list_names(self._files, self._journal)):
            return None
        candidate = Candidate(path, _number(path), 0, None, None)
        for batch in later_batches(self._question(), candidate, position, place.number + 1):
            if batch.number == place.number + 1 and batch.previous_crc == place.crc and batch.epoch >= place.epoch:
                return self._whole_part(path, batch)
        return None

    def _whole_part(self, source: Path, first: Batch) -> NewSegment:
        header = self._header()
        path = self._journal / segment_name(first.number)
        end = first.end
        tried = NewSegment(path=path, header=header, source=source, start=first.position, end=1 << 62)
        try:
            _, batches = walk(partial(PlannedFiles(new=tried).read, path), path=path)
            for batch in batches:
                end = first.position + batch.end - len(header)
        except Damage:
            pass  # the rest goes with the segment that it is taken from
        return NewSegment(path=path, header=header, source=source, start=first.position, end=end)

    def _begin_after_checkpoint(self) -> None:
        path = self._journal / segment_name(self._plan.place.number + 1)
        self._files.new = NewSegment(path=path, header=self._header())

    def _header(self) -> bytes:
        place = self._plan.place
        marks = place.slots
        return encode_header(
            cluster=self._identity.cluster,
            first_number=place.number + 1,
            previous_crc=place.crc,
            epoch=place.epoch,
            created_ms=place.time_ms,
            next_sequences=[marks[slot].sequence if slot in marks else 0 for slot in range(self._identity.slots)],
        )

    def _clear_covered(self) -> None:
        """Cut the defects of segments that the checkpoint holds: a start passes over them, compaction would not."""
        surveys = survey_segments(self._question())
        for survey, following in pairwise(surveys):
            if survey.defect is not None and following.number - 1 <= self._plan.place.number:
                position, reason = survey.defect.position, survey.defect.reason
                size = self._size(survey.size, survey.path, position)
                self._files.cuts[survey.path] = Cut(survey.path, position, size, reason)


class _Follower:
    """Hears what a start would load, and checks what it would check."""

    def __init__(self, place: Place) -> None:
        self._end = place

    def add(self, batch: Batch) -> None:
        follows(self._end, batch)
        decode_entries(batch.body)
        self._end = Place(number=batch.number, crc=batch.crc, epoch=batch.epoch, time_ms=batch.time_ms)


def _place(refusal: JournalRefused) -> str:
    """Return where and why, without the advice to call for a repair."""
    return f"{refusal.path}, byte {refusal.position}: {refusal.reason}"


def _marker(found: Findings) -> Marker:
    """Return the marker that names the end of what is kept."""
    last = found.segments[-1] if found.segments else None
    if last is None or last.last_number < last.header.first_number:
        return Marker(number=found.chain.number, first_number=0, position=0, crc=found.chain.crc)
    return Marker(
        number=found.chain.number, first_number=last.header.first_number, position=last.end, crc=found.chain.crc
    )


def _number(path: Path) -> int:
    number = segment_number(path.name)
    assert number is not None, "only segments are cut"
    return number
