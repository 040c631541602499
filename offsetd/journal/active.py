"""The segment that is being appended to: its descriptor, where it ends, and how a failed append is taken back."""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from offsetd.failpoint import failpoint
from offsetd.journal.files import Files, sync_directory
from offsetd.journal.marker import DURABLE, Marker, encode_marker
from offsetd.journal.segment import encode_header, segment_name

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


class AppendFailed(Exception):
    """A write failed in a way that leaves the journal's end unknown: only a fresh start can tell it."""


@dataclass(slots=True)
class ActiveSegment:
    """An open segment. `position` is the end of its last whole batch."""

    files: Files
    path: Path
    descriptor: int
    first_number: int
    created_ms: int
    position: int

    def append(self, frame: bytes) -> None:
        """Append one frame in one write.

        Raises:
            OSError: the disk takes nothing more; the segment ends where it ended before.
            AppendFailed: the write failed otherwise, or its traces could not be removed.
        """
        try:
            failpoint("before_write")
            written = self.files.write(self.descriptor, frame)
            failpoint("after_write")
        except OSError as error:
            if error.errno not in FULL:
                raise AppendFailed(f"{self.path} could not be written: {error.strerror}") from error
            self._cut_back()
            raise
        if written != len(frame):
            self._cut_back()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self.position += written

    def close(self) -> None:
        """Close the descriptor."""
        self.files.close(self.descriptor)

    def _cut_back(self) -> None:
        try:
            # A file system that has become read-only wrote nothing, and would refuse the cut.
            if self.files.size(self.descriptor) != self.position:
                self.files.truncate(self.descriptor, self.position)
                self.files.sync(self.descriptor)
        except OSError as error:
            raise AppendFailed(
                f"{self.path} could not be cut back to byte {self.position} after a failed write: {error.strerror}"
            ) from error


@dataclass(slots=True, kw_only=True)
class Creation:
    """A new segment, and the durable marker that goes with it, written but not yet synced."""

    segment: ActiveSegment
    directory: Path
    directory_descriptor: int
    marker_descriptor: int

    @property
    def others(self) -> list[int]:
        """What must be durable besides the segment, before it is used."""
        return [self.marker_descriptor, self.directory_descriptor]

    def finish(self) -> ActiveSegment:
        """Put the marker in its place, now that all is durable, and return the segment for use."""
        files = self.segment.files
        files.close(self.marker_descriptor)
        files.close(self.directory_descriptor)
        # Not followed by a sync of the directory: should the rename be undone, the older marker only promises less.
        files.rename(self.directory / (DURABLE + ".tmp"), self.directory / DURABLE)
        failpoint("after_segment_created")
        return self.segment


def create_segment(
    files: Files,
    directory: Path,
    *,
    cluster: bytes,
    marker: Marker,
    epoch: int,
    created_ms: int,
    next_sequences: Sequence[int],
) -> Creation:
    """Write a new segment's header beside the durable marker; both still have to be synced.

    Args:
        marker: the end of what is durable: the last batch before the new segment.

    Raises:
        OSError: there is no room; nothing is left behind.
    """
    header = encode_header(
        cluster=cluster,
        first_number=marker.number + 1,
        previous_crc=marker.crc,
        epoch=epoch,
        created_ms=created_ms,
        next_sequences=next_sequences,
    )
    path = directory / segment_name(marker.number + 1)
    descriptor = files.create(path)
    opened = [descriptor]
    try:
        _write_whole(files, descriptor, header, path)
        opened.append(files.create(directory / (DURABLE + ".tmp"), replace=True))
        _write_whole(files, opened[1], encode_marker(marker), directory / DURABLE)
        opened.append(files.open_directory(directory))
    except OSError:
        for each in opened:
            files.close(each)
        files.unlink(path)
        raise
    segment = ActiveSegment(files, path, descriptor, marker.number + 1, created_ms, len(header))
    return Creation(segment=segment, directory=directory, marker_descriptor=opened[1], directory_descriptor=opened[2])


def create_first_segment(
    files: Files,
    directory: Path,
    *,
    cluster: bytes,
    epoch: int,
    created_ms: int,
    next_sequences: Sequence[int],
) -> ActiveSegment:
    """Create the segment that begins a journal, durably, before the loop has anything else to do."""
    creation = create_segment(
        files,
        directory,
        cluster=cluster,
        marker=Marker(number=0, first_number=0, position=0, crc=0),
        epoch=epoch,
        created_ms=created_ms,
        next_sequences=next_sequences,
    )
    files.sync(creation.segment.descriptor)
    files.sync(creation.marker_descriptor)
    files.sync(creation.directory_descriptor)
    segment = creation.finish()
    sync_directory(files, directory)
    return segment


def _write_whole(files: Files, descriptor: int, data: bytes, path: Path) -> None:
    if files.write(descriptor, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
