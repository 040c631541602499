"""The seam to the file system: the few calls that the journal makes, so that tests can lose power between any two.

`OsFiles` is the real one. Nothing here knows what the bytes mean.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

_FILE_MODE: Final = 0o640
_DIRECTORY_MODE: Final = 0o750


@dataclass(frozen=True, slots=True)
class Listed:
    """One name in a directory."""

    name: str
    is_file: bool
    is_link: bool
    size: int


class Files(Protocol):
    """What the journal asks of a file system. Every call may raise OSError; descriptors are plain integers."""

    def create(self, path: Path, *, replace: bool = False) -> int:
        """Create a file to append to; an existing one is an error, or emptied if `replace`."""

    def open_append(self, path: Path) -> int:
        """Open an existing file to append to, never through a symbolic link."""

    def open_directory(self, path: Path) -> int:
        """Open a directory, to be synced."""

    def write(self, descriptor: int, data: bytes) -> int:
        """Append in one call; return how many bytes were taken."""

    def size(self, descriptor: int) -> int:
        """Return the length of an open file."""

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut an open file to this length."""

    def sync(self, descriptor: int) -> None:
        """Make an open file (or directory) durable with all that belongs to it."""

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""

    def read(self, path: Path, position: int, size: int) -> bytes:
        """Return up to `size` bytes at a position; fewer only at the end of the file."""

    def overwrite(self, path: Path, position: int, data: bytes) -> None:
        """Write bytes inside an existing file. Durable only after a sync."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, over an older file if there is one."""

    def unlink(self, path: Path) -> None:
        """Remove a name."""

    def list(self, path: Path) -> list[Listed]:
        """Return what stands in a directory, sorted by name."""

    def make_directory(self, path: Path) -> None:
        """Create a directory; an existing one is an error."""

    def free_bytes(self, path: Path) -> int:
        """Return how many bytes an ordinary user may still allocate on this path's file system."""

    def allocate(self, path: Path, size: int) -> None:
        """Create a file whose space is taken at once."""


def read_at(descriptor: int, position: int, size: int) -> bytes:
    """Return the bytes at a place of an open file, fewer only at its end."""
    pieces = []
    while size > 0 and (piece := os.pread(descriptor, size, position)):
        pieces.append(piece)
        position += len(piece)
        size -= len(piece)
    return b"".join(pieces)


class OsFiles:
    """The operating system's file system."""

    def create(self, path: Path, *, replace: bool = False) -> int:
        how = os.O_TRUNC if replace else os.O_EXCL
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | how
        return os.open(path, flags, _FILE_MODE)

    def open_append(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)

    def open_directory(self, path: Path) -> int:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def write(self, descriptor: int, data: bytes) -> int:
        return os.write(descriptor, data)

    def size(self, descriptor: int) -> int:
        return os.fstat(descriptor).st_size

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def read(self, path: Path, position: int, size: int) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return read_at(descriptor, position, size)
        finally:
            os.close(descriptor)

    def overwrite(self, path: Path, position: int, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            while data:
                written = os.pwrite(descriptor, data, position)
                data, position = data[written:], position + written
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def list(self, path: Path) -> list[Listed]:
        found = []
        with os.scandir(path) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                is_file = stat.S_ISREG(status.st_mode)
                found.append(Listed(entry.name, is_file, entry.is_symlink(), status.st_size))
        return sorted(found, key=lambda listed: listed.name)

    def make_directory(self, path: Path) -> None:
        path.mkdir(mode=_DIRECTORY_MODE)

    def free_bytes(self, path: Path) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def allocate(self, path: Path, size: int) -> None:
        descriptor = self.create(path)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)


def sync_path(files: Files, path: Path) -> None:
    """Make a file durable by its path."""
    descriptor = files.open_append(path)
    try:
        files.sync(descriptor)
    finally:
        files.close(descriptor)


def sync_directory(files: Files, path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = files.open_directory(path)
    try:
        files.sync(descriptor)
    finally:
        files.close(descriptor)


def write_new(files: Files, path: Path, data: bytes, *, replace: bool = False) -> None:
    """Create a file with these bytes and sync it; its name is not durable before the directory is synced."""
    descriptor = files.create(path, replace=replace)
    try:
        while data:
            data = data[files.write(descriptor, data) :]
        files.sync(descriptor)
    finally:
        files.close(descriptor)


def replace_file(files: Files, path: Path, data: bytes) -> None:
    """Put a file in the place of an older one so that a crash leaves the one or the other, whole."""
    temporary = path.with_name(path.name + ".tmp")
    write_new(files, temporary, data, replace=True)
    files.rename(temporary, path)
    sync_directory(files, path.parent)
