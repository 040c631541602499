"""What the segments of a journal add up to, and what a defect in them means. Reads only; recovery and repair act on it.

The decision table stands in docs/journal-format.md, "Recovery".
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from offsetd.journal.batch import BODY_BYTES_MAX, HEADER_BYTES, Batch, cluster_seed, find_batch
from offsetd.journal.files import Files
from offsetd.journal.marker import CLEAN_STOP, DURABLE, Marker
from offsetd.journal.segment import (
    SLOTS_MAX,
    Chain,
    Damage,
    NewerFormat,
    SegmentHeader,
    header_bytes,
    load_header,
    segment_number,
    walk,
)

logger = structlog.get_logger(__name__)

SLICE_BYTES: Final = 256 * 1024
_WINDOW_BYTES: Final = 16 * 1024 * 1024
_OVERLAP_BYTES: Final = BODY_BYTES_MAX + HEADER_BYTES + 8
_OURS: Final = frozenset({DURABLE, DURABLE + ".tmp", CLEAN_STOP, CLEAN_STOP + ".tmp"})


class JournalRefused(Exception):
    """The journal cannot be trusted as it stands; nothing was changed."""

    def __init__(self, path: Path, position: int, reason: str, advice: str) -> None:
        super().__init__(f"{path}, byte {position}: {reason}. {advice}")
        self.path = path
        self.position = position
        self.reason = reason
        self.advice = advice


class JournalDamaged(JournalRefused):
    """From this place on nothing can be trusted; a repair can put it into quarantine."""


class JournalShort(JournalRefused):
    """The journal ends before what was durable, or before what the checkpoint holds."""


class JournalGap(JournalRefused):
    """The journal begins after the batch that should follow the checkpoint."""


class JournalStranger(JournalRefused):
    """The journal and the checkpoint are of different lives: they name different batches by one number."""


STRANGER: Final = (
    "Bring back the checkpoint and the journal that belong together; `offsetd journal repair` can make the checkpoint "
    "anew where history/ reaches back to batch 1 without a gap"
)
REPAIR: Final = (
    "`offsetd journal verify` lists what is whole; `offsetd journal repair` shows what would be lost by putting "
    "everything from there on into quarantine"
)


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment, and where its last whole batch ends."""

    path: Path
    header: SegmentHeader
    end: int
    last_number: int


@dataclass(frozen=True, slots=True)
class Tail:
    """Bytes that no promise covers. `whole` tells a crash while rolling: the file goes, not only its end."""

    path: Path
    position: int
    size: int
    reason: str
    whole: bool


@dataclass(slots=True)
class Findings:
    """What an examination found: the whole segments in order, the chain's end, and the tail to cut, if any."""

    segments: list[SegmentFile] = field(default_factory=list)
    chain: Chain = field(default_factory=lambda: Chain(number=0, crc=0, epoch=0))
    time_ms: int = 0
    tail: Tail | None = None
    scanned_bytes: int = 0
    # Where in the last segment the batches begin that no later batch calls synced.
    unsynced_position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to examine, and what must be true of it. None: not known, so not held against it."""

    journal: Path
    files: Files
    cluster: bytes
    slots: int | None
    after_number: int | None
    after_crc: int | None = None
    durable: Marker | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file with a segment's name: its header, or what is wrong with it."""

    path: Path
    number: int
    size: int
    header: SegmentHeader | None
    damage: Damage | None


def list_segments(question: Question) -> list[Candidate]:
    """Return the segments by number, their headers read.

    Raises:
        JournalRefused: one is of a newer format, of another cluster, no plain file, or cannot be read.
    """
    candidates = []
    for listed in question.files.list(question.journal):
        path = question.journal / listed.name
        number = segment_number(listed.name)
        if number is None:
            if listed.name not in _OURS:
                logger.warning("foreign_file_ignored", path=str(path))
            continue
        if not listed.is_file:
            what = "is a symbolic link" if listed.is_link else "is no plain file"
            raise JournalRefused(path, 0, f"the segment {what}", "Put the file itself in its place")
        header = None
        damage = None
        try:
            header = load_header(partial(question.files.read, path), path=path)
        except Damage as found:
            damage = found
        except NewerFormat as newer:
            raise JournalRefused(
                path,
                0,
                f"the segment is of journal format {newer.version}",
                "Start the offsetd that wrote it, or a later one",
            ) from newer
        except OSError as error:
            raise _unreadable(path, 0, error) from error
        if header is not None:
            _check_header(question, path, number, header)
        candidates.append(Candidate(path, number, listed.size, header, damage))
    return sorted(candidates, key=lambda candidate: candidate.number)


def _check_header(question: Question, path: Path, number: int, header: SegmentHeader) -> None:
    if header.cluster != question.cluster:
        reason = "the segment belongs to another cluster"
        raise JournalRefused(path, 0, reason, "Move it away, or start with its own data directory")
    if question.slots is not None and len(header.next_sequences) != question.slots:
        raise JournalRefused(
            path,
            0,
            f"the segment was written with {len(header.next_sequences)} slots, this broker has {question.slots}",
            "Start with the slot count that the data was written with",
        )
    if header.first_number != number:
        reason = f"the segment begins with batch {header.first_number}, its name says {number}"
        raise JournalRefused(path, 0, reason, "Give it back its name, or move it away if it is a copy")


def examine_whole(question: Question, on_batch: Callable[[Batch], None]) -> Findings:
    """List and read the segments in one go, for those who have no loop to give turns to.

    Raises:
        JournalRefused: as `list_segments` and `examine`.
    """
    steps = examine(question, list_segments(question), on_batch)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Findings = end.value
            return found


def examine(
    question: Question, candidates: list[Candidate], on_batch: Callable[[Batch], None]
) -> Generator[int, None, Findings]:
    """Read every batch that the checkpoint lacks, in slices; yield how many bytes have been read.

    Raises:
        JournalRefused: the decision table says so.
    """
    found = Findings()
    after = question.after_number
    if candidates and after is not None and candidates[0].number > after + 1:
        raise JournalGap(
            candidates[0].path,
            0,
            f"the journal begins with batch {candidates[0].number}, but the checkpoint ends with batch {after}",
            "Bring back the missing segments or the checkpoint that belongs to this journal; `offsetd journal repair` "
            "can close the gap where history/ holds all that is missing",
        )
    for place, candidate in enumerate(candidates):
        last = place == len(candidates) - 1
        if candidate.header is None:
            found.tail = _judge_header(question, candidate, found, last=last)
            break
        if not last and after is not None and candidates[place + 1].number - 1 <= after:
            _pass_over(candidates, place, found)
            continue
        _check_link(candidate, found)
        yield from _scan(question, candidate, found, on_batch, last=last)
    _check_end(question, candidates, found)
    return found


def _pass_over(candidates: list[Candidate], place: int, found: Findings) -> None:
    """Keep a segment that the checkpoint has folded already; its batches need not be read again."""
    candidate, following = candidates[place], candidates[place + 1]
    assert candidate.header is not None
    if following.header is None:
        raise _damaged(following, 0, "the header is not whole")
    found.segments.append(SegmentFile(candidate.path, candidate.header, candidate.size, following.number - 1))
    header = following.header
    found.chain = Chain(number=following.number - 1, crc=header.previous_crc, epoch=header.epoch)


def _check_link(candidate: Candidate, found: Findings) -> None:
    header = candidate.header
    assert header is not None
    if not found.segments:
        found.chain = Chain.before(header)
        return
    chain = found.chain
    if header.first_number != chain.number + 1:
        reason = f"the segment before ends with batch {chain.number}, this one begins with {header.first_number}"
        raise _damaged(candidate, 0, reason)
    if header.previous_crc != chain.crc or header.epoch < chain.epoch:
        raise _damaged(candidate, 0, "the segment does not follow the one before it")


def _scan(
    question: Question, candidate: Candidate, found: Findings, on_batch: Callable[[Batch], None], *, last: bool
) -> Generator[int, None, None]:
    after = question.after_number or 0
    header = candidate.header
    assert header is not None
    base, end, sliced = found.scanned_bytes, header.length, 0
    # The batches that no later one calls synced; the bound is the flush setting of those who wrote them.
    unsynced: deque[tuple[int, int]] = deque()
    try:
        _, batches = walk(partial(question.files.read, candidate.path), path=candidate.path, chain=found.chain)
        for batch in batches:
            _check_marker(question, candidate, batch)
            end = batch.end
            found.time_ms = batch.time_ms
            while unsynced and unsynced[0][0] <= batch.synced_number:
                unsynced.popleft()
            unsynced.append((batch.number, batch.position))
            if batch.number > after:
                on_batch(batch)
            if end - sliced >= SLICE_BYTES:
                sliced = end
                yield base + end
    except Damage as damage:
        found.tail = _judge(question, candidate, damage, found.chain.number + 1, last=last)
    except OSError as error:
        raise _unreadable(candidate.path, end, error) from error
    found.scanned_bytes = base + end
    found.segments.append(SegmentFile(candidate.path, header, end, found.chain.number))
    found.unsynced_position = unsynced[0][1] if unsynced else end
    yield found.scanned_bytes


def _check_marker(question: Question, candidate: Candidate, batch: Batch) -> None:
    durable = question.durable
    if durable is not None and batch.number == durable.number and batch.crc != durable.crc:
        reason = f"batch {batch.number} is not the one that the durable marker names"
        raise _damaged(candidate, batch.position, reason)


def _judge(question: Question, candidate: Candidate, damage: Damage, expected: int, *, last: bool) -> Tail:
    """Tell a torn tail from damage before good data."""
    if not last:
        raise _damaged(candidate, damage.position, f"{damage.reason}, and later segments exist")
    for batch in later_batches(question, candidate, damage.position, expected):
        if batch.number == expected:
            reason = f"{damage.reason}; batch {expected} stands at byte {batch.position} and does not belong there"
            raise _damaged(candidate, damage.position, reason)
        if batch.synced_number >= expected:
            reason = f"{damage.reason}, and batch {batch.number} behind it is whole"
            raise _damaged(candidate, damage.position, reason)
    size = candidate.size - damage.position
    return Tail(candidate.path, damage.position, size, damage.reason, whole=False)


def _judge_header(question: Question, candidate: Candidate, found: Findings, *, last: bool) -> Tail:
    """Tell a crash while rolling from a damaged header."""
    assert candidate.damage is not None
    reason = candidate.damage.reason
    if not last:
        raise _damaged(candidate, 0, f"{reason}, and later segments exist")
    for batch in later_batches(question, candidate, 0, 1):
        raise _damaged(candidate, 0, f"{reason}, and batch {batch.number} in it is whole")
    # The header is durable before a batch is written behind it, so a crash leaves a header at most, and zeros.
    if any(question.files.read(candidate.path, header_bytes(question.slots or SLOTS_MAX), BODY_BYTES_MAX)):
        raise _damaged(candidate, 0, f"{reason}, and the segment is longer than its header")
    if candidate.number != found.chain.number + 1:
        reason = f"{reason}, and the segment before ends with batch {found.chain.number}"
        raise _damaged(candidate, 0, reason)
    return Tail(candidate.path, 0, candidate.size, reason, whole=True)


def later_batches(question: Question, candidate: Candidate, position: int, number_min: int) -> Iterator[Batch]:
    """Yield the unharmed batches from a place on, wherever they stand, reading a bounded window at a time."""
    seed = cluster_seed(question.cluster)
    at, data = position, b""
    shift = position
    while True:
        if at - shift >= _WINDOW_BYTES or not data:
            shift = at
            try:
                data = question.files.read(candidate.path, shift, _WINDOW_BYTES + _OVERLAP_BYTES)
            except OSError as error:
                raise _unreadable(candidate.path, shift, error) from error
            if not data:
                return
        batch = find_batch(data, at - shift, seed=seed, number_min=number_min, shift=shift, stop=_WINDOW_BYTES)
        if batch is None:
            at = shift + _WINDOW_BYTES
            continue
        yield batch
        at = batch.end


def _check_end(question: Question, candidates: list[Candidate], found: Findings) -> None:
    """Refuse a journal that ends before what was known to be durable."""
    number = found.chain.number
    place = found.tail.position if found.tail else (found.segments[-1].end if found.segments else 0)
    path = candidates[-1].path if candidates else question.journal
    why = f" ({found.tail.reason})" if found.tail else ""
    if question.durable is not None and question.durable.number > number:
        raise JournalShort(
            path,
            place,
            f"the journal ends with batch {number}, but batch {question.durable.number} was durable{why}",
            f"Acknowledged commits are missing or damaged. {REPAIR}",
        )
    if question.after_number is not None and question.after_number > number:
        raise JournalShort(
            path,
            place,
            f"the journal ends with batch {number}, but the checkpoint holds batch {question.after_number}{why}",
            "The checkpoint and the journal do not belong together, or segments are missing. Bring back the segments; "
            "`offsetd journal repair` can only go on from the checkpoint without them",
        )
    # Batches behind the checkpoint are held against it one by one; here there is none yet.
    if question.after_number == number and question.after_crc not in (None, found.chain.crc):
        reason = f"batch {number} is not the one that the checkpoint ends with"
        raise JournalStranger(path, place, reason, STRANGER)


def _damaged(candidate: Candidate, position: int, reason: str) -> JournalDamaged:
    return JournalDamaged(candidate.path, position, f"the journal is damaged: {reason}", REPAIR)


def _unreadable(path: Path, position: int, error: OSError) -> JournalRefused:
    reason = f"the segment cannot be read: {error.strerror}"
    return JournalRefused(path, position, reason, "Look at the disk and its cables first, then restore from a copy")
