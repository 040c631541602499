"""The reserve: space kept allocated so that compaction can work on a disk that is otherwise full."""

from pathlib import Path
from typing import Final

from offsetd.journal.batch import BODY_BYTES_MAX
from offsetd.journal.files import Files

NAME: Final = "reserve"
RETRY_SECONDS: Final = 0.1
#: Where no reserve is kept, a disk that was full is tried again when this much fits: some hundred commits.
PROBE_BYTES: Final = 64 * 1024


class Reserve:
    """A file that holds space and no data, and what is known of the disk being full."""

    def __init__(self, files: Files, path: Path, size_bytes: int) -> None:
        self._files = files
        self._path = path
        self._size_bytes = size_bytes
        self.held = False
        self.full = False
        self._retry_at = 0.0

    def meet_full_disk(self, now: float) -> None:
        """Give the space away, for compaction; the next try may come a moment later."""
        self.full = True
        self._retry_at = now + RETRY_SECONDS
        self.release()

    def may_try(self, now: float) -> bool:
        """Whether it is time to try a full disk again, and the space could be taken back before."""
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY_SECONDS
        return self.take()

    def take(self) -> bool:
        """Hold the reserve, if there is room for it and for a batch beside it."""
        if self.held:
            return True
        try:
            if self._size_bytes:
                self.held = self._standing() or self._allocate()
            else:
                self.held = not self.full or self._fits()
        except OSError:
            self.release()
        return self.held

    def release(self) -> None:
        """Give the space back to the file system."""
        self.held = False
        try:
            self._files.unlink(self._path)
        except OSError:
            return  # nothing to give back, or a file system that takes no changes at all

    def _standing(self) -> bool:
        for listed in self._files.list(self._path.parent):
            if listed.name == self._path.name:
                if listed.is_file and listed.size == self._size_bytes:
                    return True
                self._files.unlink(self._path)
        return False

    def _fits(self) -> bool:
        """Try whether the disk takes anything, where there is no reserve to tell."""
        self._files.allocate(self._path, PROBE_BYTES)
        self._files.unlink(self._path)
        return True

    def _allocate(self) -> bool:
        beside = min(self._size_bytes, BODY_BYTES_MAX)
        if self._files.free_bytes(self._path.parent) < self._size_bytes + beside:
            return False
        self._files.allocate(self._path, self._size_bytes)
        return True
