"""Rebuilding a lost checkpoint from history, where that and the journal reach back to batch 1 without a gap.

For `offsetd journal repair`. The old checkpoint is put aside and never deleted; the new one takes its place when it is
whole.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.compact import fold_segments
from offsetd.journal.files import OsFiles, sync_directory
from offsetd.journal.fold import FoldRefused, Place, follows
from offsetd.journal.segment import Damage, NewerFormat, read_batches, segment_number


class RebuildRefused(Exception):
    """A checkpoint cannot be rebuilt from what there is."""


@dataclass(frozen=True, slots=True)
class Rebuildable:
    """Whether a checkpoint can be rebuilt, from which segments of history, up to which batch; or why it cannot be."""

    segments: tuple[Path, ...]
    last_number: int
    obstacle: str | None


def can_rebuild(history: Sequence[Path], journal: Sequence[Path]) -> Rebuildable:
    """Look whether the segments of history lead from batch 1 to the first segment of the journal. Reads all of them.

    Args:
        history: the paths of released segments, in any order.
        journal: the paths of the journal's segments; what they hold is left to a start's recovery.
    """
    first = min((_number(path) for path in journal), default=None)
    if first is None:
        return Rebuildable((), 0, "the journal has no segment, so where history should lead to cannot be told")
    needed = tuple(sorted((path for path in history if _number(path) < first), key=_number))
    place = Place()
    for path in needed:
        try:
            for batch in read_batches(path):
                follows(place, batch)
                place = Place(number=batch.number, crc=batch.crc, epoch=batch.epoch, time_ms=batch.time_ms)
        except FoldRefused as refused:
            gap = f"{path} holds batch {refused.found_number} where batch {place.number + 1} is needed"
            return Rebuildable(needed, place.number, gap)
        except (Damage, NewerFormat, OSError) as error:
            return Rebuildable(needed, place.number, str(error))
    if place.number != first - 1:
        return Rebuildable(
            needed, place.number, f"history ends with batch {place.number}, the journal begins with batch {first}"
        )
    return Rebuildable(needed, place.number, None)


def rebuild(
    checkpoint: Path,
    history: Sequence[Path],
    journal: Sequence[Path],
    *,
    cluster_id: str,
    made_by: str,
    keep_in: Path,
) -> Place:
    """Make the checkpoint anew from history; return up to where it then holds the journal.

    Args:
        checkpoint: its directory; what stands there is moved into `keep_in` first.
        history: the paths of released segments.
        journal: the paths of the journal's segments.
        cluster_id: whose data it is.
        made_by: noted in the checkpoint.
        keep_in: an existing directory for the old checkpoint, the quarantine.

    Raises:
        RebuildRefused: there is a gap or damage; nothing was changed.
        SegmentRefused: a segment belongs to another cluster; nothing was changed.
        CheckpointRefused: LevelDB could not be written, or the old checkpoint is in use.
    """
    answer = can_rebuild(history, journal)
    if answer.obstacle is not None:
        raise RebuildRefused(f"the checkpoint {checkpoint} cannot be rebuilt: {answer.obstacle}.")
    fresh = checkpoint.with_name(checkpoint.name + ".rebuilt")
    shutil.rmtree(fresh, ignore_errors=True)
    with Checkpoint.create(fresh, cluster_id=cluster_id, made_by=made_by) as rebuilt:
        fold_segments(rebuilt, answer.segments, cluster_id=cluster_id, on_folded=lambda _: None)
        place = rebuilt.place
    files = OsFiles()
    if checkpoint.exists():
        checkpoint.rename(_free_name(keep_in, checkpoint.name))
        sync_directory(files, keep_in)
    fresh.rename(checkpoint)
    sync_directory(files, checkpoint.parent)
    return place


def _number(path: Path) -> int:
    number = segment_number(path.name)
    if number is None:
        raise RebuildRefused(f"{path} does not have the name of a segment.")
    return number


def _free_name(directory: Path, stem: str) -> Path:
    turn = 1
    while (path := directory / f"{stem}.{turn}").exists():
        turn += 1
    return path
