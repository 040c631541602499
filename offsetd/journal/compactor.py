"""The compactor: `python -m offsetd.journal.compactor`, a low-priority process of its own that the daemon starts.

It ends when its parent does, whatever it is doing. One JSON line on stdout says what was done; a failure is a sentence
on stderr and exit code 1.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import structlog

from offsetd.journal import history
from offsetd.journal.checkpoint import Checkpoint, CheckpointRefused
from offsetd.journal.compact import SegmentRefused, compact
from offsetd.journal.fold import RUN_BYTES_MAX, FoldRefused
from offsetd.journal.segment import Damage, NewerFormat
from offsetd.journal.worker import end_with_parent, step_back
from offsetd.record import UnknownEntry

#: What may go wrong with data or disk; anything else is a fault of ours and shows its traceback.
_REFUSALS: Final = (CheckpointRefused, FoldRefused, SegmentRefused, Damage, NewerFormat, UnknownEntry, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compact as the command line says; return the exit code."""
    options = _parse(arguments)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    if options.parent is not None:
        end_with_parent(options.parent)
    step_back()
    started = time.monotonic()
    try:
        told = _run(options)
    except _REFUSALS as error:
        sys.stderr.write(f"{error}\n")
        return 1
    told["seconds"] = round(time.monotonic() - started, 6)
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    return 0


def _run(options: argparse.Namespace) -> dict[str, float]:
    keep: Path | None = options.history
    sealed: Path | None = options.sealed
    with Checkpoint.open(options.checkpoint, cluster_id=options.cluster_id) as checkpoint:
        done = compact(
            checkpoint,
            options.segments,
            cluster_id=options.cluster_id,
            history=keep,
            run_bytes_max=options.run_bytes_max,
        )
        place = checkpoint.place
    told: dict[str, float] = {**asdict(done), "folded_number": place.number}
    if keep is not None:
        limit = options.history_bytes
        if options.disk_full:
            # History gives way before commits are refused: half of it now, half of the rest should that not do.
            limit = min(limit, history.size(keep, sealed).total_bytes // 2)
        # Measured from the log's own time, so that a clock that jumped does not take the history with it.
        gone = history.trim(keep, sealed, now_ms=place.time_ms, retention_ms=options.history_ms, retention_bytes=limit)
        told |= {
            "history_segments_removed": gone.segments,
            "history_files_removed": gone.sealed_files,
            "history_bytes_removed": gone.total_bytes,
        }
    return told


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="offsetd.journal.compactor", description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--cluster-id", required=True)
    parser.add_argument("--history", type=Path, help="where released segments go; without it they are deleted")
    parser.add_argument("--sealed", type=Path, help="where sealed history stands, which counts as history too")
    parser.add_argument("--history-ms", type=int, default=7 * 24 * 3_600_000)
    parser.add_argument("--history-bytes", type=int, default=1 << 30)
    parser.add_argument("--disk-full", action="store_true", help="let history give way")
    parser.add_argument("--run-bytes-max", type=int, default=RUN_BYTES_MAX, help="state folded in one write")
    parser.add_argument("--parent", type=int, help="end when this process does, or when stdin closes")
    parser.add_argument("segments", type=Path, nargs="*")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
