"""A disk that remembers every call and can lose power after any of them.

Fault model: what was not synced may be lost, kept in part, torn at sectors, or leave zeros behind; a name is durable
only when its directory has been synced. What was synced stays.
"""

import errno
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from offsetd.journal.files import Listed
from offsetd.journal.syncer import SyncerGone

SECTOR_BYTES = 512
SUBSET_BITS_MAX = 4


@dataclass
class Inode:
    """A file's bytes: as every process sees them, and as the platters have them."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, position: int, data: bytes) -> None:
        self.pending.append((position, data))
        _put(self.data, position, data)

    def truncate(self, size: int) -> None:
        self.pending.append((size, None))
        del self.data[size:]

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.pending = []


def _nothing() -> None:
    """Take no notice of a call."""


def _put(target: bytearray, position: int, data: bytes) -> None:
    if len(target) < position:
        target.extend(bytes(position - len(target)))
    target[position : position + len(data)] = data


def _apply(target: bytearray, change: tuple[int, bytes | None]) -> None:
    position, data = change
    if data is None:
        del target[position:]
    else:
        _put(target, position, data)


class FakeDisk:
    """Files in memory behind the journal's seam."""

    def __init__(self, files: dict[Path, bytes] | None = None, directories: set[Path] | None = None) -> None:
        self.names: dict[Path, Inode] = {}
        self.durable_names: dict[Path, Inode] = {}
        self.name_changes: list[tuple[Path, dict[Path, Inode | None]]] = []
        self.directories = directories or set()
        self.descriptors: dict[int, Inode | Path] = {}
        self.next_descriptor = 1000
        self.free = 1 << 40
        self.reserved: dict[Path, int] = {}
        self.write_faults: list[tuple[int, int]] = []
        self.fail_truncate = 0
        self.on_call: Callable[[], None] = _nothing
        for path, data in (files or {}).items():
            self.names[path] = self.durable_names[path] = Inode(bytearray(data), data)

    # What tests ask

    def content(self) -> dict[Path, bytes]:
        """Return the bytes of every file as running processes see them."""
        return {path: bytes(inode.data) for path, inode in self.names.items()}

    def after_crash(self) -> Iterator["FakeDisk"]:
        """Yield the disks that a power loss at this moment may leave."""
        seen = set()
        for names in self._name_states():
            paths = sorted(names)
            states = [list(_contents(names[path])) for path in paths]
            # One file at a time takes all its states, the others are all lost or all kept: crash states of two
            # files at once only matter where one was synced between, and then it is not pending.
            for chosen in _combinations(states):
                image = tuple(zip(paths, chosen, strict=True))
                if image not in seen:
                    seen.add(image)
                    yield FakeDisk(dict(image), set(self.directories))

    def power_cut(self) -> "FakeDisk":
        """Return the disk with nothing but what was synced."""
        return FakeDisk({path: node.durable for path, node in self.durable_names.items()}, set(self.directories))

    def _name_states(self) -> Iterator[dict[Path, Inode]]:
        for kept in range(len(self.name_changes) + 1):
            names = dict(self.durable_names)
            for _, change in self.name_changes[:kept]:
                _rename(names, change)
            yield names

    def _change_names(self, parent: Path, change: dict[Path, Inode | None]) -> None:
        _rename(self.names, change)
        self.name_changes.append((parent, change))
        self.on_call()

    # The seam

    def create(self, path: Path, *, replace: bool = False) -> int:
        if path in self.names and not replace:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        if path in self.names:
            self.names[path].truncate(0)
        else:
            self._change_names(path.parent, {path: Inode()})
        return self._open(self.names[path])

    def open_append(self, path: Path) -> int:
        return self._open(self._inode(path))

    def open_directory(self, path: Path) -> int:
        return self._open(path)

    def write(self, descriptor: int, data: bytes) -> int:
        inode = self._file(descriptor)
        if self.write_faults:
            taken, code = self.write_faults.pop(0)
            if taken:
                inode.write(len(inode.data), data[:taken])
                return taken
            if code:
                raise OSError(code, os.strerror(code))
        inode.write(len(inode.data), data)
        self.on_call()
        return len(data)

    def size(self, descriptor: int) -> int:
        return len(self._file(descriptor).data)

    def truncate(self, descriptor: int, size: int) -> None:
        if self.fail_truncate:
            raise OSError(self.fail_truncate, os.strerror(self.fail_truncate))
        self._file(descriptor).truncate(size)
        self.on_call()

    def sync(self, descriptor: int) -> None:
        opened = self.descriptors[descriptor]
        self.on_call()
        if isinstance(opened, Inode):
            opened.sync()
            return
        for parent, change in self.name_changes:
            if parent == opened:
                _rename(self.durable_names, change)
        self.name_changes = [each for each in self.name_changes if each[0] != opened]

    def close(self, descriptor: int) -> None:
        del self.descriptors[descriptor]

    def read(self, path: Path, position: int, size: int) -> bytes:
        return bytes(self._inode(path).data[position : position + size])

    def overwrite(self, path: Path, position: int, data: bytes) -> None:
        self._inode(path).write(position, data)
        self.on_call()

    def rename(self, old: Path, new: Path) -> None:
        self._change_names(old.parent, {new: self._inode(old), old: None})

    def unlink(self, path: Path) -> None:
        if self.reserved.pop(path, None) is not None:
            return
        self._inode(path)
        self._change_names(path.parent, {path: None})

    def list(self, path: Path) -> list[Listed]:
        sizes = {each: len(node.data) for each, node in self.names.items()} | self.reserved
        return [Listed(each.name, True, False, sizes[each]) for each in sorted(sizes) if each.parent == path]

    def make_directory(self, path: Path) -> None:
        self.directories.add(path)

    def free_bytes(self, path: Path) -> int:
        return self.free - sum(self.reserved.values())

    def allocate(self, path: Path, size: int) -> None:
        if self.free_bytes(path) < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.reserved[path] = size

    def _open(self, opened: Inode | Path) -> int:
        self.next_descriptor += 1
        self.descriptors[self.next_descriptor] = opened
        return self.next_descriptor

    def _file(self, descriptor: int) -> Inode:
        opened = self.descriptors[descriptor]
        assert isinstance(opened, Inode)
        return opened

    def _inode(self, path: Path) -> Inode:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return self.names[path]


def _rename(names: dict[Path, Inode], change: dict[Path, Inode | None]) -> None:
    for path, inode in change.items():
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode


def _contents(inode: Inode) -> Iterator[bytes]:
    """Yield what a power loss may leave of a file; first the durable bytes, then all bytes, then the rest."""
    yield inode.durable
    yield bytes(inode.data)
    pending = inode.pending
    if not pending:
        return
    # Writes may reach the platters in any order; of many, the oldest are taken as kept.
    certain, open_ones = pending[:-SUBSET_BITS_MAX], pending[-SUBSET_BITS_MAX:]
    for kept in product((False, True), repeat=len(open_ones)):
        image = bytearray(inode.durable)
        for change in certain:
            _apply(image, change)
        for keep, change in zip(kept, open_ones, strict=True):
            if keep:
                _apply(image, change)
        yield bytes(image)
    image = bytearray(inode.durable)
    for change in pending[:-1]:
        _apply(image, change)
    position, data = pending[-1]
    if data is None:
        return
    for cut in {1, 7, 8, 55, 56, 57, len(data) // 2, len(data) - 1, *range(SECTOR_BYTES, len(data), SECTOR_BYTES)}:
        if 0 < cut < len(data):
            torn, late, grown = bytearray(image), bytearray(image), bytearray(image)
            _put(torn, position, data[:cut])
            yield bytes(torn)
            # The end arrived, the beginning did not: it is what was there before, or zeros.
            _put(late, position + cut, data[cut:])
            yield bytes(late)
            # The size arrived, some data did not.
            _put(grown, position, data[:cut])
            yield bytes(grown.ljust(position + len(data), b"\0"))
    yield bytes(image.ljust(position + len(data) + 4096, b"\0"))


def _combinations(states: list[list[bytes]]) -> Iterator[tuple[bytes, ...]]:
    for base in (0, 1):
        yield tuple(each[base] for each in states)
        for place, options in enumerate(states):
            for option in options[2:]:
                chosen = [each[base] for each in states]
                chosen[place] = option
                yield tuple(chosen)


class FakeSyncer:
    """A syncer in this process, over a fake disk; it can be held, fail, or die."""

    def __init__(self, disk: FakeDisk) -> None:
        self._disk = disk
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._current = 0
        self.held = False
        self.waiting = 0
        self.requests = 0
        self.error_at: dict[int, int] = {}

    def use(self, descriptor: int) -> None:
        self._current = descriptor

    def request(self) -> None:
        self.requests += 1
        if self.held:
            self.waiting += 1
        else:
            self._sync()

    def request_roll(self, descriptor: int, others: list[int]) -> None:
        for each in (descriptor, *others):
            self._disk.sync(each)
        self._current = descriptor
        self._theirs.send(b"\0")

    def release(self) -> None:
        """Do the syncs that were asked for while held."""
        self.held = False
        while self.waiting:
            self.waiting -= 1
            self._sync()

    def die(self) -> None:
        """End like a killed helper."""
        self._theirs.close()

    def _sync(self) -> None:
        code = self.error_at.get(self.requests, 0)
        if not code:
            self._disk.sync(self._current)
        self._theirs.send(bytes((code,)))

    def fileno(self) -> int:
        return self._ours.fileno()

    def read_answer(self) -> int:
        answer = self._ours.recv(1)
        if not answer:
            raise SyncerGone("the sync helper has ended")
        return answer[0]

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()
