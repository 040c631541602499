"""A table of plain Parquet files on a filesystem of this machine: its loads, how one is staged, published, replaced.

    OUT/load=000001/_offsets.json                  the manifest
    OUT/load=000001/topic=orders/day=2026-01-31/   the data
    OUT/_staging/                                  what is being written, or was when a loader ended
    OUT/_superseded/                               loads that newer ones replaced
    OUT/_lock                                      held for the moment of publishing

Names that begin with `_` are not seen by Spark, pandas and pyarrow when they read OUT.
"""

import errno
import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from offsetd.failpoint import failpoint
from offsetd.pipeline.load import manifest as manifests
from offsetd.pipeline.load.manifest import Manifest
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused, Outrun

_LOAD: Final = re.compile(r"load=(\d{6,})")
_STALE_SECONDS: Final = 24 * 3600


class Table:
    """The table in a directory, which need not be there yet."""

    def __init__(self, out: str) -> None:
        """Make it.

        Raises:
            BadRequest: the place is not a filesystem of this machine.
        """
        scheme, _, rest = out.partition("://")
        if rest and scheme != "file":
            raise BadRequest(
                f"{out} is not a directory of this machine. A Parquet load is published by one atomic rename, which "
                f"{scheme}:// does not offer in the way that is needed: load here, and copy published loads."
            )
        self.out = Path(rest or out).absolute()
        self.staging = self.out / "_staging"
        self.superseded = self.out / "_superseded"

    # --- what is published ------------------------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        """Return the numbers of the published loads, oldest first; some may be superseded and not yet moved away."""
        if not self.out.is_dir():
            return []
        found = (_LOAD.fullmatch(path.name) for path in self.out.iterdir())
        return sorted(int(match[1]) for match in found if match is not None)

    def directory(self, number: int) -> Path:
        """Return where a load is, or will be."""
        return self.out / f"load={number:06d}"

    def manifest(self, number: int) -> Manifest:
        """Return the manifest of a load.

        Raises:
            LoadRefused: it has none that can be read.
        """
        path = self.directory(number) / manifests.NAME
        try:
            return manifests.decode(path.read_text(), str(path))
        except FileNotFoundError:
            raise LoadRefused(
                f"{path} is missing, so nobody knows what the load holds. Was the directory made by another program? "
                "Move it away, or bring the manifest back."
            ) from None

    def newest(self) -> Manifest | None:
        """Return the manifest of the newest load, which carries the positions of all."""
        numbers = self.numbers()
        return self.manifest(numbers[-1]) if numbers else None

    def live(self) -> list[Manifest]:
        """Return the manifests of all loads that no other one replaces, oldest first."""
        found = [self.manifest(number) for number in self.numbers()]
        replaced = {number for manifest in found for number in manifest.supersedes}
        return [manifest for manifest in found if manifest.number not in replaced]

    # --- staging ----------------------------------------------------------------------------------------------------

    @contextmanager
    def stage(self, number: int) -> Iterator[Path]:
        """Give a directory, not yet made, for what will be a load; what is left of it at the end is removed."""
        self.staging.mkdir(parents=True, exist_ok=True)
        path = self.staging / f"{number:06d}-{uuid.uuid4().hex[:12]}"
        lock = path.with_suffix(".lock")
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
                lock.unlink(missing_ok=True)

    def sweep(self) -> int:
        """Remove what loaders that ended left in staging, if it is over a day old; return how many."""
        swept = 0
        for path in self.staging.iterdir() if self.staging.is_dir() else ():
            with suppress(FileNotFoundError):
                if path.suffix != ".lock" and time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    swept += self._sweep(path)
        return swept

    def _sweep(self, path: Path) -> bool:
        lock = path.with_suffix(".lock")
        with lock.open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False  # its loader still runs
            shutil.rmtree(path, ignore_errors=True)
            lock.unlink(missing_ok=True)
        return True

    # --- publishing -------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all others from publishing, replacing or folding loads for the length of a block."""
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / "_lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def publish(self, stage: Path, manifest: Manifest) -> None:
        """Make a staged load part of the table, by one rename.

        Raises:
            Outrun: another loader has published since this one looked.
        """
        stage.mkdir(exist_ok=True)
        (stage / manifests.NAME).write_text(manifests.encode(manifest))
        sync_tree(stage)
        failpoint("load_manifested")
        target = self.directory(manifest.number)
        with self.locked():
            # The rename alone would let a slow loader take a number whose load was replaced and moved away since.
            newest = max(self.numbers(), default=0)
            if newest != manifest.number - 1:
                raise outrun(manifest.number, newest)
            try:
                stage.rename(target)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise outrun(manifest.number, manifest.number) from error
                raise
            failpoint("load_renamed")
            sync(self.out)
        failpoint("load_published")

    def settle(self) -> list[int]:
        """Move away the loads that newer ones replace, and return their numbers; finishes what a crash left undone."""
        numbers = self.numbers()
        replaced = {number for listed in numbers for number in self.manifest(listed).supersedes}
        waiting = [number for number in numbers if number in replaced]
        if not waiting:
            return []
        with self.locked():
            self.superseded.mkdir(exist_ok=True)
            for number in waiting:
                with suppress(FileNotFoundError):
                    self.directory(number).rename(self.superseded / f"{number:06d}")
                failpoint("load_superseded")
            sync(self.superseded)
            sync(self.out)
        return waiting


def outrun(number: int, newest: int) -> Outrun:
    """Return what to raise when another loader has published since a load was planned."""
    return Outrun(
        f"another loader was first: load {newest} stands in the table, and this one would have been load {number}. "
        "What this one wrote was thrown away; run again to go on behind the other."
    )


def delta_directory(out: Path) -> Path:
    """Return where a Delta table has its log; a directory without one is no Delta table."""
    return out / "_delta_log"


def sync_tree(directory: Path) -> None:
    """Have the disk keep all files and directories of a tree."""
    for parent, _, names in os.walk(directory, topdown=False):
        for name in names:
            sync(Path(parent) / name)
        sync(Path(parent))


def sync(path: Path) -> None:
    """Have the disk keep a file's bytes, or a directory's names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
