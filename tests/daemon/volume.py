"""A small file system of its own, in memory: it can be full and it can be read-only. Needs root; skipped elsewhere."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def volume(path: Path, size_bytes: int) -> Iterator[Path]:
    """Mount a file system of this size for the length of a block."""
    path.mkdir()
    mounted = _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "offsetd-test", str(path))
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        # Lazily, so that a process that has not quite ended yet cannot keep it.
        _run("umount", "-l", str(path))


def make_read_only(path: Path) -> None:
    """Let a mounted file system take no more changes."""
    _run("mount", "-o", "remount,ro", str(path)).check_returncode()


def fill(path: Path) -> Path:
    """Take all the space that is left, by one file that grows and may be removed again; return it."""
    filler = path / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)
