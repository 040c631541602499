"""Recovery at the start: cut what no promise covers, refuse what one does, and make durable what is left.

What a defect means is decided in `examine`; here it is acted upon.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from offsetd.failpoint import failpoint
from offsetd.journal.batch import Batch
from offsetd.journal.examine import (
    Findings,
    JournalRefused,
    Question,
    SegmentFile,
    Tail,
    examine,
    list_segments,
)
from offsetd.journal.files import Files, sync_directory, sync_path
from offsetd.journal.marker import CLEAN_STOP, DURABLE, Marker, read_marker

__all__ = ["JournalRefused", "Recovered", "SegmentFile", "Torn", "cut_tail", "recover"]

logger = structlog.get_logger(__name__)

_COPY_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Torn:
    """A tail that was cut off, and where its bytes are kept."""

    path: Path
    position: int
    size: int
    reason: str
    quarantine: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A journal that can be written on: its segments, its last batch, and what had to be cut off."""

    segments: tuple[SegmentFile, ...] = ()
    last_batch_number: int = 0
    last_crc: int = 0
    last_epoch: int = 0
    last_time_ms: int = 0
    torn: Torn | None = None
    clean: bool = False

    @property
    def end_position(self) -> int:
        """Where the last segment ends; 0 if there is none."""
        return self.segments[-1].end if self.segments else 0


def recover(
    journal: Path,
    quarantine: Path,
    *,
    files: Files,
    cluster: bytes,
    slots: int | None,
    after_number: int,
    after_crc: int | None = None,
    on_batch: Callable[[Batch], None],
) -> Generator[int, None, Recovered]:
    """Bring the journal to a trustworthy end; yield the bytes scanned so far, between slices.

    Args:
        journal: the directory of the segments.
        quarantine: where cut bytes are kept; an existing directory.
        files: the file system.
        cluster: the cluster's uuid.
        slots: how many slots this broker has.
        after_number: the last batch that the checkpoint holds, 0 for none.
        after_crc: its CRC, None if that is not known.
        on_batch: gets every later batch, in order. Nothing of it may be served before the generator has returned.

    Raises:
        JournalRefused: acknowledged batches are missing or damaged, or the data is not ours; nothing was cut.
    """
    durable = _read(files, journal / DURABLE)
    stop = _read(files, journal / CLEAN_STOP)
    question = Question(
        journal=journal,
        files=files,
        cluster=cluster,
        slots=slots,
        after_number=after_number,
        after_crc=after_crc,
        durable=durable,
    )
    candidates = list_segments(question)
    # Gone before anything is loaded: should this start die half-way, the next one must not believe in a clean stop.
    # What it promised stays in the durable marker.
    if stop is not None or read_marker(files, journal / CLEAN_STOP)[1]:
        files.unlink(journal / CLEAN_STOP)
        sync_directory(files, journal)
    found = yield from examine(question, candidates, on_batch)
    torn = cut_tail(files, found.tail, quarantine) if found.tail is not None else None
    clean = stop is not None and (stop.number, stop.crc) == (found.chain.number, found.chain.crc)
    if not clean and found.segments:
        yield from _harden(files, journal, found)
    return Recovered(
        segments=tuple(found.segments),
        last_batch_number=found.chain.number,
        last_crc=found.chain.crc,
        last_epoch=found.chain.epoch,
        last_time_ms=found.time_ms,
        torn=torn,
        clean=clean,
    )


def cut_tail(files: Files, tail: Tail, quarantine: Path) -> Torn:
    """Copy a tail into quarantine, durably, and only then cut it off.

    Raises:
        JournalRefused: there is no room to keep a copy; nothing was cut.
    """
    try:
        kept = _keep(files, tail, quarantine)
    except OSError as error:
        raise JournalRefused(
            tail.path,
            tail.position,
            f"{tail.size} bytes cannot be put into {quarantine}: {error.strerror}",
            "Make room first; the file named reserve in the broker's directory may be deleted for it",
        ) from error
    failpoint("recovery_before_truncate")
    if tail.whole:
        files.unlink(tail.path)
    else:
        descriptor = files.open_append(tail.path)
        try:
            files.truncate(descriptor, tail.position)
            files.sync(descriptor)
        finally:
            files.close(descriptor)
    sync_directory(files, tail.path.parent)
    failpoint("recovery_after_truncate")
    torn = Torn(tail.path, tail.position, tail.size, tail.reason, kept)
    logger.error(
        "journal_tail_cut",
        segment=str(tail.path),
        position=tail.position,
        size_bytes=tail.size,
        reason=tail.reason,
        kept_in=str(kept),
    )
    return torn


def _keep(files: Files, tail: Tail, quarantine: Path) -> Path:
    names = {listed.name for listed in files.list(quarantine)}
    stem = f"{tail.path.name}.{tail.position}"
    name, turn = stem, 1
    while name in names:
        turn += 1
        name = f"{stem}.{turn}"
    kept = quarantine / name
    descriptor = files.create(kept)
    try:
        position = tail.position
        while data := files.read(tail.path, position, _COPY_BYTES):
            position += len(data)
            while data:
                data = data[files.write(descriptor, data) :]
        files.sync(descriptor)
    finally:
        files.close(descriptor)
    sync_directory(files, quarantine)
    return kept


def _harden(files: Files, journal: Path, found: Findings) -> Generator[int, None, None]:
    """Make the last batches durable before they are served.

    They may have been read from the page cache alone. After a failed sync the cache even calls them clean, so that a
    sync would do nothing and succeed: written once more, they are dirty again, and the sync tells the truth.
    """
    last = found.segments[-1]
    position = found.unsynced_position
    while position < last.end:
        data = files.read(last.path, position, min(_COPY_BYTES, last.end - position))
        assert data, "these bytes were there a moment ago"
        files.overwrite(last.path, position, data)
        position += len(data)
        yield found.scanned_bytes
    sync_path(files, last.path)
    sync_directory(files, journal)


def _read(files: Files, path: Path) -> Marker | None:
    marker, exists = read_marker(files, path)
    if exists and marker is None:
        logger.warning("marker_ignored", path=str(path), reason="the file is not whole")
    return marker
