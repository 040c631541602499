"""Sealing: released segments become files of Parquet, then go. Safe to be killed anywhere and done again.

A record stands in exactly one sealed file, and in its segment until that file is durable under its name. This is the
work itself; the process it runs in is `sealer`, when it runs is `sealing`.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa

from offsetd.failpoint import failpoint
from offsetd.history.columns import ROWS, Columns, open_segment
from offsetd.history.parquet import encode
from offsetd.journal.batch import Batch
from offsetd.journal.directory import BrokerDirectory, Identity
from offsetd.journal.files import Files, OsFiles, sync_directory, write_new
from offsetd.journal.history import HistorySegment, changing, list_history
from offsetd.journal.sealed import SealedFile, day_of, list_sealed, sealed_path
from offsetd.journal.segment import Damage, NewerFormat, segment_number
from offsetd.record import UnknownEntry

#: A file ends with the batch that makes it so large, so that memory is bounded whatever the size of segments.
FILE_ROWS: Final = 1 << 19
FILE_BODY_BYTES: Final = 64 * 1024 * 1024

#: What readers of a folder of Parquet pass over. One is enough: only one process seals at a time.
TEMPORARY: Final = "_sealing.tmp"


class SegmentRefused(Exception):
    """A released segment is not of this journal, so neither it nor what follows it is sealed."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the segment {path} {reason}. It and those after it were not sealed; put it aside if it is not wanted."
        )
        self.path = path
        self.reason = reason


class SealedByAnother(Exception):
    """Another process is sealing this history."""

    def __init__(self, directory: Path) -> None:
        super().__init__(f"another process is sealing {directory}, the daemon's own or another command's.")


#: What keeps a segment, and those behind it, from being sealed.
REFUSALS: Final = (Damage, NewerFormat, SegmentRefused, UnknownEntry)


@dataclass(slots=True)
class Done:
    """What a run did, also one that did not end well."""

    files: int = 0
    bytes: int = 0
    batches: int = 0
    records: int = 0
    segments: int = 0
    segment_bytes: int = 0


@dataclass(slots=True)
class _Making:
    """A file in the making: batches of one day, one after the other."""

    day: date
    first_number: int
    last_number: int
    rows: int = 0
    body_bytes: int = 0
    pieces: list[pa.RecordBatch] = field(default_factory=list)
    # What it is made from, which must still be there when it is published.
    sources: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Read:
    """A segment that was read to its end."""

    path: Path
    last_number: int
    size_bytes: int


class _Overtaken(Exception):
    """Retention has taken away what was being read."""


def seal(
    directory: BrokerDirectory,
    identity: Identity,
    *,
    done: Done,
    on_published: Callable[[SealedFile, int], None] = lambda _file, _records: None,
    file_rows: int = FILE_ROWS,
    files: Files | None = None,
) -> None:
    """Seal all segments that have been released, oldest first.

    Args:
        directory: the broker's; a daemon may be at work in it.
        identity: whose segments they must be.
        done: what is done is counted here, also by a run that fails.
        on_published: hears of each file when it is durable, and how many records it holds.
        file_rows: a file ends with the batch that makes it so large.
        files: the file system that is changed.

    Raises:
        Damage: at the first place where a segment cannot be read; all that stands whole before it is sealed. The
            segment and those after it are kept.
        SegmentRefused, NewerFormat, UnknownEntry: a segment is another's, or of a newer offsetd.
        SealedByAnother: another process is at it.
        OSError: something could not be read or written; most often the disk is full.
    """
    files = files or OsFiles()
    if not directory.sealed.is_dir():
        with suppress(FileExistsError):
            files.make_directory(directory.sealed)
    # Always: a run that was killed may have made it and not come to this.
    sync_directory(files, directory.sealed.parent)
    with alone(directory.sealed):
        with suppress(FileNotFoundError):
            files.unlink(directory.sealed / TEMPORARY)
        with suppress(_Overtaken):
            _Run(directory, identity, done, on_published, file_rows, files).run()


@contextmanager
def alone(sealed: Path) -> Iterator[None]:
    """Keep others from sealing the same history for the length of a block.

    Raises:
        SealedByAnother: another process is at it.
    """
    descriptor = os.open(sealed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise SealedByAnother(sealed) from None
    try:
        yield
    finally:
        os.close(descriptor)


class _Run:
    """Reads segment after segment, and ends a file wherever one must end."""

    def __init__(
        self,
        directory: BrokerDirectory,
        identity: Identity,
        done: Done,
        on_published: Callable[[SealedFile, int], None],
        file_rows: int,
        files: Files,
    ) -> None:
        self._history = directory.history
        self._sealed = directory.sealed
        self._identity = identity
        self._done = done
        self._on_published = on_published
        self._file_rows = file_rows
        self._files = files
        self._covered = _Covered(list_sealed(directory.sealed))
        self._columns = Columns(())
        self._making: _Making | None = None
        self._waiting: list[_Read] = []

    def run(self) -> None:
        segments = list_history(self._history)
        self._sync_names(segments)
        try:
            for segment in segments:
                self._read(segment.path, segment.size_bytes)
        except REFUSALS:
            # What stands whole in front of it is sealed, so that the segment can be put aside without losing that.
            self._end_file()
            raise
        self._end_file()

    def _sync_names(self, segments: Sequence[HistorySegment]) -> None:
        """Have the disk keep the names of files that stand for segments still there.

        A run that was killed may have given them and not come to this, and the segments go now.
        """
        first = next((number for each in segments if (number := segment_number(each.path.name)) is not None), None)
        if first is None:
            return
        days = {file.path.parent for file in list_sealed(self._sealed) if file.last_number >= first}
        for day in sorted(days):
            sync_directory(self._files, day)
        if days:
            sync_directory(self._files, self._sealed)

    def _read(self, path: Path, size_bytes: int) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise _Overtaken from None
        try:
            header, batches = open_segment(descriptor, path)
            if header.cluster != self._identity.cluster:
                raise SegmentRefused(path, "belongs to another cluster")
            if header.first_number != segment_number(path.name):
                raise SegmentRefused(path, f"begins with batch {header.first_number}, which its name does not say")
            last = header.first_number - 1
            self._columns = Columns(header.next_sequences)
            for batch in batches:
                self._take(batch, path)
                last = batch.number
        finally:
            os.close(descriptor)
        # The next segment's sequences are its header's, so what was collected ends here.
        self._collect()
        self._waiting.append(_Read(path, last, size_bytes))
        if self._making is None:
            with changing(self._history):
                self._release()

    def _take(self, batch: Batch, path: Path) -> None:
        if batch.number in self._covered:
            # By a run that was killed before it could take the segment away.
            self._end_file()
            self._columns.skip(batch)
            return
        day = day_of(batch.time_ms)
        making = self._making
        if making is not None and (making.day != day or making.last_number + 1 != batch.number):
            self._end_file()
            making = None
        if making is None:
            making = self._making = _Making(day, batch.number, batch.number)
        before = self._columns.rows
        self._columns.add(batch)
        making.last_number = batch.number
        making.rows += self._columns.rows - before
        making.body_bytes += len(batch.body)
        if making.sources[-1:] != [path]:
            making.sources.append(path)
        if self._columns.rows >= ROWS:
            self._collect()
        if making.rows >= self._file_rows or making.body_bytes >= FILE_BODY_BYTES:
            self._end_file()

    def _collect(self) -> None:
        if self._columns.rows:
            assert self._making is not None, "rows are collected for a file"
            self._making.pieces.append(self._columns.take())

    def _end_file(self) -> None:
        """Publish what was collected, durably, and only then release the segments that are wholly sealed by it."""
        self._collect()
        making, self._making = self._making, None
        if making is None or not making.sources:
            return
        data = encode(making.pieces, cluster_id=self._identity.cluster_id)
        temporary = self._sealed / TEMPORARY
        path = sealed_path(self._sealed, making.day, making.first_number, making.last_number)
        try:
            self._write(temporary, data)
            with changing(self._history):
                self._publish(temporary, path, making.sources)
                self._release()
        except (OSError, _Overtaken):
            with suppress(OSError):
                self._files.unlink(temporary)
            raise
        self._done.files += 1
        self._done.bytes += len(data)
        self._done.batches += making.last_number - making.first_number + 1
        self._done.records += making.rows
        file = SealedFile(
            path=path,
            day=making.day,
            first_number=making.first_number,
            last_number=making.last_number,
            size_bytes=len(data),
        )
        self._on_published(file, making.rows)

    def _write(self, temporary: Path, data: bytes) -> None:
        # The last of a disk's room is for commits.
        if self._files.free_bytes(self._sealed) < 2 * len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(temporary))
        failpoint("seal_before_write")
        write_new(self._files, temporary, data, replace=True)
        failpoint("seal_after_write")

    def _publish(self, temporary: Path, path: Path, sources: Sequence[Path]) -> None:
        if not all(source.exists() for source in sources):
            raise _Overtaken
        files = self._files
        with suppress(FileExistsError):
            files.make_directory(path.parent)
        files.rename(temporary, path)
        failpoint("seal_after_rename")
        sync_directory(files, path.parent)
        sync_directory(files, self._sealed)
        failpoint("seal_after_sync")

    def _release(self) -> None:
        """Take away the segments of which every record stands in a durable file."""
        released = False
        while self._waiting:
            read = self._waiting.pop(0)
            with suppress(FileNotFoundError):
                self._files.unlink(read.path)
            released = True
            self._done.segments += 1
            self._done.segment_bytes += read.size_bytes
            failpoint("seal_after_unlink")
        if released:
            sync_directory(self._files, self._history)


class _Covered:
    """Which batches are sealed already. Asked about in rising order."""

    def __init__(self, files: Sequence[SealedFile]) -> None:
        self._ranges = [(file.first_number, file.last_number) for file in files]
        self._at = 0

    def __contains__(self, number: int) -> bool:
        while self._at < len(self._ranges) and self._ranges[self._at][1] < number:
            self._at += 1
        return self._at < len(self._ranges) and self._ranges[self._at][0] <= number
