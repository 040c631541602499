"""Where the journal ends at this moment: the last batch that is whole and will never be taken back.

The segment is being written meanwhile. A tail that is not whole is the end; damage before good data is an error.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from offsetd.journal.batch import HEADER_BYTES, MAGIC
from offsetd.journal.files import OsFiles, read_at
from offsetd.journal.segment import HEADER_BYTES_MAX, Chain, Damage, SegmentHeader, load_header, walk_on
from offsetd.pipeline.history.refusal import HistoryRefused


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a segment has been read, so that the next look need not begin at its start."""

    header: SegmentHeader
    position: int
    chain: Chain
    settled_number: int

    @property
    def number(self) -> int:
        """The last whole batch; the one before the segment if it has none."""
        return self.chain.number


def find_end(path: Path, *, growing: bool, known: Reached | None = None) -> Reached | None:
    """Return how far a segment is whole, and durable; None for one that is only just being made.

    Args:
        path: the journal's last segment.
        growing: whether a daemon may be writing it, so that its tail need not be whole.
        known: what an earlier look at this segment has returned.

    Raises:
        Damage: it is harmed before good data, or at all if it is not growing.
        NewerFormat: a newer offsetd wrote it.
        FileNotFoundError: it has been moved since it was listed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if known is None or os.fstat(descriptor).st_size < known.position:
            header = _header(descriptor, path, growing=growing)
            if header is None:
                return None
            known = Reached(header, header.length, Chain.before(header), header.first_number - 1)
        return _settle(descriptor, _follow(descriptor, path, known, growing=growing))
    finally:
        os.close(descriptor)


def _header(descriptor: int, path: Path, *, growing: bool) -> SegmentHeader | None:
    try:
        return load_header(partial(read_at, descriptor), path=path)
    except Damage:
        # It is durable before a batch is written behind it: until then it may be cut short, or not written at all.
        if growing and MAGIC not in read_at(descriptor, 0, HEADER_BYTES_MAX + HEADER_BYTES):
            return None
        raise


def _follow(descriptor: int, path: Path, known: Reached, *, growing: bool) -> Reached:
    """Read on to the last whole batch."""
    refused_at = -1
    while True:
        chain, position, settled = replace(known.chain), known.position, known.settled_number
        damage = None
        try:
            for batch in walk_on(
                partial(read_at, descriptor), known.header, path=path, chain=chain, position=known.position
            ):
                position, settled = batch.end, max(settled, batch.synced_number)
        except Damage as found:
            if not growing:
                raise
            damage = found
        # The walk has moved the chain along, up to the last batch that it has given.
        known = Reached(known.header, position, chain, settled)
        if damage is None or not _good_behind(path, known):
            return known
        if refused_at == position:
            raise damage
        # A batch was being written while it was read, and others have followed it since: it may be whole by now.
        refused_at = position


def _good_behind(path: Path, known: Reached) -> bool:
    """Return whether good data stand behind a place that is not whole, by the rules of a start's recovery."""
    # Imported here: it brings the daemon's logs along, and Spark starts a process for every plan it makes.
    from offsetd.journal.examine import Candidate, JournalRefused, Question, later_batches  # noqa: PLC0415

    expected = known.number + 1
    question = Question(
        journal=path.parent, files=OsFiles(), cluster=known.header.cluster, slots=None, after_number=None, durable=None
    )
    candidate = Candidate(path, known.header.first_number, 0, known.header, None)
    try:
        return any(
            batch.number == expected or batch.synced_number >= expected
            for batch in later_batches(question, candidate, known.position, expected)
        )
    except JournalRefused as refused:
        if isinstance(refused.__cause__, FileNotFoundError):
            raise refused.__cause__ from refused
        raise HistoryRefused(str(refused)) from refused


def _settle(descriptor: int, known: Reached) -> Reached:
    """Make sure of the last batches: no later one calls them synced yet, so a power cut could still take them back."""
    if known.settled_number < known.number:
        with suppress(OSError):  # a file system that cannot: then only what the journal itself calls synced counts
            os.fdatasync(descriptor)
            return replace(known, settled_number=known.number)
    return known
