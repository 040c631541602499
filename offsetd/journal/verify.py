"""Verifying a data directory: everything is read, nothing is changed, and a start is tried on it.

What is found is returned as facts; the words for people are the command's business.
"""

from dataclasses import dataclass, field, replace

from offsetd.journal.batch import Batch
from offsetd.journal.checkpoint import CheckpointLost, CheckpointRefused
from offsetd.journal.directory import BrokerDirectory, Identity
from offsetd.journal.examine import STRANGER, Findings, JournalRefused, Question, examine_whole
from offsetd.journal.fold import FoldRefused, Place
from offsetd.journal.history import list_history
from offsetd.journal.load import Loader
from offsetd.journal.marker import DURABLE, Marker, read_marker
from offsetd.journal.plan import bridge_of, is_new
from offsetd.journal.planned import PlannedFiles
from offsetd.journal.rebuild import Bridge
from offsetd.journal.sealed import list_sealed
from offsetd.journal.survey import Survey, survey_segments
from offsetd.journal.view import read_through, viewed
from offsetd.record import UnknownEntry, decode_entries
from offsetd.table import SlotTable, TopicIndex


@dataclass(slots=True, kw_only=True)
class Verification:
    """What stands in a data directory, and what a start would make of it."""

    segments: list[Survey]
    durable: Marker | None
    marker_harmed: bool
    # Whether history could make the checkpoint anew; asked also where that is not needed.
    bridge: Bridge
    history_segments: int
    sealed_files: int
    new: bool = False
    # Where the checkpoint ends, unless it is refused or not there yet.
    place: Place | None = None
    found: Findings | None = None
    groups: int = 0
    offsets: int = 0
    # Why a start would be refused, each a sentence or two.
    refusals: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether a start would go through and no segment is damaged. A torn tail is no damage."""
        return not self.refusals and not self.damaged

    @property
    def damaged(self) -> list[Survey]:
        """The segments with a defect that is more than a torn tail."""
        tail = self.found.tail.path if self.found is not None and self.found.tail is not None else None
        return [survey for survey in self.segments if survey.defect is not None and survey.path != tail]


def verify(directory: BrokerDirectory, identity: Identity) -> Verification:
    """Read journal, checkpoint and history, and try a start on them. Nobody may be working there meanwhile.

    Raises:
        OSError: a directory could not be read.
    """
    files = PlannedFiles()
    durable, exists = read_marker(files, directory.journal / DURABLE)
    question = Question(
        journal=directory.journal,
        files=files,
        cluster=identity.cluster,
        slots=identity.slots,
        after_number=None,
        durable=durable,
    )
    done = Verification(
        segments=survey_segments(question),
        durable=durable,
        marker_harmed=exists and durable is None,
        bridge=bridge_of(directory, identity, Place()),
        history_segments=len(list_history(directory.history)),
        sealed_files=len(list_sealed(directory.sealed)),
        new=is_new(directory),
    )
    if not done.new:
        _try_start(done, question, directory, identity)
    return done


def _try_start(done: Verification, question: Question, directory: BrokerDirectory, identity: Identity) -> None:
    """Do what a start does, as far as that changes nothing; an unusable checkpoint does not spare the journal."""
    try:
        with viewed(directory.checkpoint, cluster_id=identity.cluster_id) as checkpoint:
            read_through(checkpoint, identity.slots)
            done.place = checkpoint.place
            loader = Loader(checkpoint)
            place = checkpoint.place
            question_after = replace(question, after_number=place.number, after_crc=place.crc)
            done.found = examine_whole(question_after, loader.add_batch)
            _load(done, loader, identity.slots)
    except CheckpointLost as lost:
        done.refusals.append(str(lost))
        _examine_alone(done, question)
    except FoldRefused as stranger:
        done.refusals.append(
            f"{directory.journal}: batch {stranger.found_number} does not follow the checkpoint, which ends with batch "
            f"{stranger.folded_number}. {STRANGER}"
        )
    except (CheckpointRefused, JournalRefused, UnknownEntry) as refused:
        done.refusals.append(str(refused))


def _load(done: Verification, loader: Loader, slots: int) -> None:
    index = TopicIndex()
    for slot in range(slots):
        table = SlotTable(slot, index)
        for _ in loader.load(table):
            pass
        done.groups += len(table.groups)
        done.offsets += table.live


def _examine_alone(done: Verification, question: Question) -> None:
    try:
        done.found = examine_whole(question, _decode)
    except (JournalRefused, UnknownEntry) as refused:
        done.refusals.append(str(refused))


def _decode(batch: Batch) -> None:
    decode_entries(batch.body)
