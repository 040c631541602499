"""A checkpoint seen without touching it.

LevelDB changes a directory by opening it, so it is given one of its own: a temporary one that has the small files as
copies and the tables, which are never changed once they are written, as links.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from offsetd.journal.checkpoint import Checkpoint, CheckpointRefused

_TABLES: Final = frozenset({".ldb", ".sst"})
_NOT_NEEDED: Final = frozenset({"LOCK", "LOG", "LOG.old"})


@contextmanager
def viewed(directory: Path, *, cluster_id: str) -> Iterator[Checkpoint]:
    """Open a checkpoint for reading and leave it as it is; nobody may be working in it meanwhile.

    Raises:
        CheckpointRefused: as `Checkpoint.open`, also from within the block; it names the real directory.
    """
    with TemporaryDirectory(prefix="offsetd-") as scratch:
        copy = Path(scratch) / directory.name
        try:
            with _left_alone(directory):
                if directory.is_dir():
                    _mirror(directory.absolute(), copy)
                with Checkpoint.open(copy, cluster_id=cluster_id) as checkpoint:
                    yield checkpoint
        except CheckpointRefused as refused:
            reason = refused.reason.replace(str(copy), str(directory))
            raise type(refused)(directory, reason, refused.advice) from None


def read_through(checkpoint: Checkpoint, slots: int) -> None:
    """Read every row, so that damage anywhere in it shows.

    Raises:
        CheckpointRefused: a block of it is damaged.
    """
    for slot in range(slots):
        for _ in checkpoint.rows(slot):
            pass


def _mirror(directory: Path, copy: Path) -> None:
    copy.mkdir()
    for path in directory.iterdir():
        if path.suffix in _TABLES:
            (copy / path.name).symlink_to(path)
        elif path.name not in _NOT_NEEDED and path.is_file():
            shutil.copyfile(path, copy / path.name)


@contextmanager
def _left_alone(directory: Path) -> Iterator[None]:
    """Keep out a compactor that has not yet noticed the end of its daemon, by LevelDB's own lock."""
    try:
        descriptor = os.open(directory / "LOCK", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield  # no lock, so nobody who could hold it
        return
    try:
        _share(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _share(descriptor: int, directory: Path) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        advice = "Wait for that compaction to end, and try again"
        raise CheckpointRefused(directory, "is in use by another process", advice) from None
