"""Bringing a checkpoint back from history: made anew from batch 1, or carried on from where an older copy of it ends.

For `offsetd journal repair`. An old checkpoint is put aside and never deleted; a new one takes its place when it is
whole. Whether it is needed is not decided here.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from offsetd.failpoint import failpoint
from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.compact import SegmentRefused, fold_segments, read_sealed
from offsetd.journal.files import OsFiles, sync_directory
from offsetd.journal.fold import FoldRefused, Place, follows
from offsetd.journal.segment import Damage, NewerFormat, load_header, segment_number


@dataclass(frozen=True, slots=True)
class Bridge:
    """The segments of history that lead from a checkpoint's place to the journal, or what stands in the way."""

    segments: tuple[Path, ...]
    place: Place
    obstacle: str | None


def find_bridge(history: Sequence[Path], journal: Sequence[Path], *, cluster: bytes, after: Place) -> Bridge:
    """Look whether history leads from a place to the journal's first segment without a gap. Reads all that is needed.

    Args:
        history: the paths of released segments, in any order; all named as segments are.
        journal: the paths of the journal's segments; what they hold is left to a start's recovery.
        cluster: the cluster's uuid.
        after: where the checkpoint ends; `Place()` asks for a checkpoint made anew.
    """
    first = min(journal, key=_number, default=None)
    if first is None:
        return Bridge((), after, "the journal has no segment, so where history should lead to cannot be told")
    paths = sorted((path for path in history if _number(path) < _number(first)), key=_number)
    nexts = [*map(_number, paths), _number(first)][1:]
    needed = tuple(path for path, following in zip(paths, nexts, strict=True) if following > after.number + 1)
    place = after
    for path in needed:
        try:
            for batch in read_sealed(path, cluster, after_number=after.number):
                follows(place, batch)
                place = Place(number=batch.number, crc=batch.crc, epoch=batch.epoch, time_ms=batch.time_ms)
        except FoldRefused as refused:
            gap = f"{path} begins with batch {refused.found_number}, which does not follow batch {place.number}"
            return Bridge(needed, place, gap)
        except (Damage, NewerFormat, SegmentRefused, OSError) as error:
            return Bridge(needed, place, str(error).rstrip("."))
    return Bridge(needed, place, _missed(place, first))


def _missed(place: Place, first: Path) -> str | None:
    """Return why the journal's first segment does not follow what history leads to, None if it does."""
    if place.number != _number(first) - 1:
        return f"history ends with batch {place.number}, the journal begins with batch {_number(first)}"
    try:
        header = load_header(partial(OsFiles().read, first), path=first)
    except (Damage, NewerFormat, OSError):
        return None  # for the journal's recovery to judge; its name says where it begins
    if header.previous_crc != place.crc:
        return f"{first} follows another batch {place.number} than the one in history"
    return None


def rebuild(checkpoint: Path, bridge: Bridge, *, cluster_id: str, made_by: str, keep_in: Path) -> Place:
    """Make the checkpoint anew; return up to where it then holds the journal. Killed anywhere, it can be run again.

    Args:
        checkpoint: its directory; what stands there is moved into `keep_in`.
        bridge: from `Place()` on, without an obstacle.
        cluster_id: whose data it is.
        made_by: noted in the checkpoint.
        keep_in: an existing directory for the old checkpoint, the quarantine.

    Raises:
        CheckpointRefused: LevelDB could not be written.
    """
    assert bridge.obstacle is None, "whoever asks has looked"
    fresh = checkpoint.with_name(checkpoint.name + ".rebuilt")
    shutil.rmtree(fresh, ignore_errors=True)
    with Checkpoint.create(fresh, cluster_id=cluster_id, made_by=made_by) as rebuilt:
        fold_segments(rebuilt, bridge.segments, cluster_id=cluster_id, on_folded=lambda _: None)
        place = rebuilt.place
    files = OsFiles()
    failpoint("rebuild_before_swap")
    if checkpoint.exists():
        checkpoint.rename(free_name(keep_in, checkpoint.name))
        sync_directory(files, keep_in)
        failpoint("rebuild_within_swap")
    fresh.rename(checkpoint)
    sync_directory(files, checkpoint.parent)
    failpoint("rebuild_after_swap")
    return place


def carry_on(checkpoint: Path, bridge: Bridge, *, cluster_id: str) -> Place:
    """Fold what a checkpoint lacks; return up to where it then holds the journal. Killed anywhere, it can be run again.

    Raises:
        CheckpointRefused: it cannot be opened or written.
    """
    assert bridge.obstacle is None, "whoever asks has looked"
    with Checkpoint.open(checkpoint, cluster_id=cluster_id) as opened:
        fold_segments(opened, bridge.segments, cluster_id=cluster_id, on_folded=lambda _: None)
        return opened.place


def free_name(directory: Path, stem: str) -> Path:
    """Return a path in a directory that nothing stands at yet: the stem with a running number behind it."""
    turn = 1
    while (path := directory / f"{stem}.{turn}").exists():
        turn += 1
    return path


def _number(path: Path) -> int:
    number = segment_number(path.name)
    assert number is not None, "only segments are asked about"
    return number
