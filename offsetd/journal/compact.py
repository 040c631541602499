"""Compacting: fold sealed segments into the checkpoint, then release them. Safe to be killed anywhere and done again.

A segment is released only when the synced write of its last batch's fold has returned. This is the work itself; the
process it runs in is `compactor`, when it runs is `compaction`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offsetd.failpoint import failpoint
from offsetd.journal.batch import Batch
from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.directory import decode_cluster_id
from offsetd.journal.files import OsFiles, sync_directory
from offsetd.journal.fold import RUN_BYTES_MAX, fold_runs
from offsetd.journal.segment import load_header, read_batches, segment_number


class SegmentRefused(Exception):
    """A segment is missing or is not of this journal, so nothing after it may be folded."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the segment {path} {reason}. It and those after it were not folded; "
            "`offsetd journal verify` shows what is there."
        )
        self.path = path
        self.reason = reason


@dataclass(slots=True)
class Done:
    """What a compaction did."""

    folds: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    keys_written: int = 0
    keys_deleted: int = 0


def fold_segments(
    checkpoint: Checkpoint,
    segments: Sequence[Path],
    *,
    cluster_id: str,
    on_folded: Callable[[Path], None],
    run_bytes_max: int = RUN_BYTES_MAX,
) -> Done:
    """Fold whole segments in order; `on_folded` hears of each when all of it is durable in the checkpoint.

    Raises:
        SegmentRefused: a segment is missing or of another cluster.
        Damage: a segment cannot be read to its end.
        FoldRefused: the segments do not follow the checkpoint or one another.
        CheckpointRefused: LevelDB could not be read or written.
    """
    done = Done()
    # Read to their end, and waiting for the fold that holds their last batch.
    read: list[tuple[Path, int]] = []

    def batches() -> Iterator[Batch]:
        last = checkpoint.place.number
        for path in segments:
            for batch in read_sealed(path, decode_cluster_id(cluster_id), after_number=checkpoint.place.number):
                last = batch.number
                yield batch
            read.append((path, last))

    def release() -> None:
        while read and read[0][1] <= checkpoint.place.number:
            on_folded(read.pop(0)[0])
            done.segments += 1

    for fold in fold_runs(batches(), checkpoint.place, checkpoint.group_rows, run_bytes_max=run_bytes_max):
        checkpoint.fold(fold)
        done.folds += 1
        done.batches += fold.batches
        done.records += fold.records
        done.keys_written += len(fold.puts)
        done.keys_deleted += len(fold.deletes)
        release()
    release()
    return done


def read_sealed(path: Path, cluster: bytes, *, after_number: int) -> Iterator[Batch]:
    """Yield the batches of a sealed segment above a number, after a look at whose it is.

    Raises:
        SegmentRefused: it is missing, misnamed or of another cluster.
        Damage: it cannot be read to its end.
        NewerFormat: a later offsetd wrote it.
    """
    number = segment_number(path.name)
    if number is None:
        raise SegmentRefused(path, "does not have the name of a segment")
    files = OsFiles()
    try:
        header = load_header(lambda position, size: files.read(path, position, size), path=path)
    except FileNotFoundError:
        # An earlier run that was killed may have released it; that nothing is missing shows in the chain of batches.
        if number <= after_number:
            return
        raise SegmentRefused(path, "is missing") from None
    if header.cluster != cluster:
        raise SegmentRefused(path, "belongs to another cluster")
    if header.first_number != number:
        raise SegmentRefused(path, f"begins with batch {header.first_number}, which is not what its name says")
    yield from read_batches(path, after_number)


def compact(
    checkpoint: Checkpoint,
    segments: Sequence[Path],
    *,
    cluster_id: str,
    history: Path | None,
    run_bytes_max: int = RUN_BYTES_MAX,
) -> Done:
    """Fold sealed segments, and move each to `history`, or delete it if that is None.

    Raises:
        OSError: a segment could not be moved or deleted. Else as `fold_segments`.
    """
    moved_bytes = 0

    def on_folded(path: Path) -> None:
        nonlocal moved_bytes
        moved_bytes += _release(path, history)

    ordered = sorted(segments, key=lambda path: path.name)
    done = fold_segments(checkpoint, ordered, cluster_id=cluster_id, on_folded=on_folded, run_bytes_max=run_bytes_max)
    done.bytes = moved_bytes
    return done


def _release(path: Path, history: Path | None) -> int:
    """Take one segment out of the journal, durably, before the next one may go: a gap would look like a loss."""
    files = OsFiles()
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return 0
    failpoint("release_before_rename")
    if history is None:
        path.unlink()
    else:
        path.rename(history / path.name)
        sync_directory(files, history)
    sync_directory(files, path.parent)
    failpoint("release_after_rename")
    return size
