"""History: released segments and what they were sealed as, kept for as long as the settings say. Nothing that is served
depends on them.

The oldest go first, so that what is left has no gap. Age is told by the newest batch in a segment, or by the day of a
sealed file, and never by a file's time, which a copy or a backup changes.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from offsetd.journal.files import OsFiles, sync_directory
from offsetd.journal.sealed import SealedFile, list_sealed
from offsetd.journal.segment import Damage, NewerFormat, read_batches, segment_number


class Kept(Protocol):
    """Anything that takes space."""

    @property
    def size_bytes(self) -> int: ...


K = TypeVar("K", bound=Kept)


@dataclass(frozen=True, slots=True)
class HistorySegment:
    """One released segment."""

    path: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class HistorySize:
    """How much is kept."""

    segments: int
    size_bytes: int
    sealed_files: int = 0
    sealed_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Segments and sealed files together."""
        return self.size_bytes + self.sealed_bytes


@contextmanager
def changing(directory: Path) -> Iterator[None]:
    """Keep retention and sealing from changing the history of a directory of segments at once. Held for moments."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def list_history(directory: Path) -> list[HistorySegment]:
    """Return the segments in a directory, oldest first; none if there is no directory."""
    try:
        paths = [path for path in directory.iterdir() if segment_number(path.name) is not None]
    except FileNotFoundError:
        return []
    found = []
    for path in sorted(paths):
        # The compactor or the sealer, other processes, may take it away while we look.
        with suppress(FileNotFoundError):
            found.append(HistorySegment(path, path.stat().st_size))
    return found


def size(directory: Path, sealed: Path | None = None) -> HistorySize:
    """Return how much segments and sealed files take; the journal's own segments may be asked about too."""
    segments = list_history(directory)
    files = [] if sealed is None else list_sealed(sealed)
    return HistorySize(
        len(segments),
        sum(segment.size_bytes for segment in segments),
        len(files),
        sum(file.size_bytes for file in files),
    )


def oldest_first(segments: Sequence[HistorySegment], files: Sequence[SealedFile]) -> list[HistorySegment | SealedFile]:
    """Return all that is kept in the order in which it goes.

    A file goes before the segment that it was made from, should that still be there: what is left has no gap then.
    """
    firsts = [segment_number(segment.path.name) or 0 for segment in segments]
    found: list[tuple[tuple[float, int], HistorySegment | SealedFile]] = [
        ((file.last_number, 0), file) for file in files
    ]
    # A segment ends where the next one begins.
    lasts = [*(first - 1.0 for first in firsts[1:]), float("inf")]
    found += [((last, 1), segment) for last, segment in zip(lasts, segments, strict=False)]
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def choose(
    kept: Sequence[K],
    newest_ms: Callable[[K], int | None],
    *,
    now_ms: int,
    retention_ms: int,
    retention_bytes: int,
) -> list[K]:
    """Return what to remove: the oldest that is too old, or too much.

    Args:
        kept: all of it, oldest first.
        newest_ms: the newest time in a segment or a file, None if it has none. Asked only where the answer matters.
        now_ms: the time that age is measured from.
        retention_ms: how old the newest batch of what is kept may be.
        retention_bytes: how much may be kept.
    """
    total = sum(each.size_bytes for each in kept)
    chosen: list[K] = []
    timeless: list[K] = []
    for each in kept:
        if total <= retention_bytes:
            moment = newest_ms(each)
            if moment is None:
                # Empty or unreadable: it goes when the one after it goes.
                timeless.append(each)
                continue
            if now_ms - moment <= retention_ms:
                break
        chosen += (*timeless, each)
        total -= sum(gone.size_bytes for gone in (*timeless, each))
        timeless.clear()
    return chosen


def newest_kept_ms(kept: HistorySegment | SealedFile) -> int | None:
    """Return the newest batch time in a segment, None if no batch of it can be read; of a sealed file its day's end."""
    if isinstance(kept, SealedFile):
        return kept.newest_ms
    newest: int | None = None
    try:
        for batch in read_batches(kept.path):
            newest = batch.time_ms if newest is None else max(newest, batch.time_ms)
    except (Damage, NewerFormat, OSError):
        return newest
    return newest


def trim(
    directory: Path, sealed: Path | None = None, *, now_ms: int, retention_ms: int, retention_bytes: int
) -> HistorySize:
    """Remove what is not to be kept any longer, and return how much that was."""
    if not directory.is_dir():
        return HistorySize(0, 0)
    with changing(directory):
        chosen = choose(
            oldest_first(list_history(directory), [] if sealed is None else list_sealed(sealed)),
            newest_kept_ms,
            now_ms=now_ms,
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
        )
        for each in chosen:
            each.path.unlink(missing_ok=True)
        folders = {each.path.parent for each in chosen if isinstance(each, SealedFile)}
        for folder in folders:
            # A day of which nothing is left.
            with suppress(OSError):
                folder.rmdir()
        for changed in {each.path.parent for each in chosen} | {folder.parent for folder in folders}:
            with suppress(FileNotFoundError):
                sync_directory(OsFiles(), changed)
    segments = [each for each in chosen if isinstance(each, HistorySegment)]
    files = [each for each in chosen if isinstance(each, SealedFile)]
    return HistorySize(
        len(segments),
        sum(segment.size_bytes for segment in segments),
        len(files),
        sum(file.size_bytes for file in files),
    )
