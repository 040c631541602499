"""Readers who do not want to be disturbed: a shared lock that any program can hold, and that compaction waits for.

    flock --shared OUT/_readers spark-submit report.py

A query lists files first and opens them later. One that holds the lock finds them all; one that does not may find a
file gone that was folded in between, which is an error and never a wrong answer: folded files have names of their own.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NAME: Final = "_readers"
_LOOK_SECONDS: Final = 0.05


@contextmanager
def undisturbed(out: Path) -> Iterator[None]:
    """Read a table, from listing to the last row, without a load being folded meanwhile."""
    with (out / NAME).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def without_readers(out: Path, *, wait_seconds: float) -> Iterator[bool]:
    """Keep readers waiting for the moment of a block; give False, and do not, if some are still there after a time."""
    with (out / NAME).open("a") as lock:
        until = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(_LOOK_SECONDS)
            else:
                yield True
                return
