"""History: released segments, kept for as long as the settings say. Nothing that is served depends on them.

The oldest go first, so that what is left has no gap. Age is told by the newest batch in a segment and never by a file's
time, which a copy or a backup changes.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from offsetd.journal.files import OsFiles, sync_directory
from offsetd.journal.segment import Damage, NewerFormat, read_batches, segment_number


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


def list_history(directory: Path) -> list[HistorySegment]:
    """Return the segments in a directory, oldest first; none if there is no directory."""
    try:
        paths = [path for path in directory.iterdir() if segment_number(path.name) is not None]
    except FileNotFoundError:
        return []
    found = []
    for path in sorted(paths):
        # The compactor, another process, may take it away while we look.
        with suppress(FileNotFoundError):
            found.append(HistorySegment(path, path.stat().st_size))
    return found


def size(directory: Path) -> HistorySize:
    """Return how much the segments in a directory take; the journal's own may be asked about too."""
    segments = list_history(directory)
    return HistorySize(len(segments), sum(segment.size_bytes for segment in segments))


def choose(
    segments: Sequence[HistorySegment],
    newest_ms: Callable[[HistorySegment], int | None],
    *,
    now_ms: int,
    retention_ms: int,
    retention_bytes: int,
) -> list[HistorySegment]:
    """Return the segments to remove: the oldest ones that are too old, or too much.

    Args:
        segments: all of them, oldest first.
        newest_ms: the newest time in a segment, None if it has none. Asked only where the answer matters.
        now_ms: the time that age is measured from.
        retention_ms: how old the newest batch of a kept segment may be.
        retention_bytes: how much may be kept.
    """
    total = sum(segment.size_bytes for segment in segments)
    chosen: list[HistorySegment] = []
    timeless: list[HistorySegment] = []
    for segment in segments:
        if total <= retention_bytes:
            moment = newest_ms(segment)
            if moment is None:
                # Empty or unreadable: it goes when the one after it goes.
                timeless.append(segment)
                continue
            if now_ms - moment <= retention_ms:
                break
        chosen += (*timeless, segment)
        total -= sum(gone.size_bytes for gone in (*timeless, segment))
        timeless.clear()
    return chosen


def newest_batch_ms(segment: HistorySegment) -> int | None:
    """Return the newest batch time in a segment, None if no batch of it can be read."""
    newest: int | None = None
    try:
        for batch in read_batches(segment.path):
            newest = batch.time_ms if newest is None else max(newest, batch.time_ms)
    except (Damage, NewerFormat, OSError):
        return newest
    return newest


def trim(directory: Path, *, now_ms: int, retention_ms: int, retention_bytes: int) -> HistorySize:
    """Remove what is not to be kept any longer, and return how much that was."""
    chosen = choose(
        list_history(directory),
        newest_batch_ms,
        now_ms=now_ms,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
    )
    for segment in chosen:
        segment.path.unlink(missing_ok=True)
    if chosen:
        sync_directory(OsFiles(), directory)
    return HistorySize(len(chosen), sum(segment.size_bytes for segment in chosen))
