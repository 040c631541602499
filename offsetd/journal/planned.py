"""A journal as it would be after a repair: the files as they are, with cuts and one new segment laid over them.

Read through it, a plan can be judged by the very examination that a start makes, before anything is changed.
"""

from dataclasses import dataclass, field
from pathlib import Path

from offsetd.journal.files import Listed, OsFiles


@dataclass(frozen=True, slots=True)
class Cut:
    """What a repair puts into quarantine: a segment's bytes from a position on, or all of it."""

    path: Path
    position: int
    size: int
    reason: str

    @property
    def whole(self) -> bool:
        """Whether the file itself goes."""
        return self.position == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """A segment that begins right after the checkpoint: a header, and batches of an older segment if any are left."""

    path: Path
    header: bytes
    source: Path | None = None
    start: int = 0
    end: int = 0

    @property
    def size(self) -> int:
        """How long it is."""
        return len(self.header) + self.end - self.start


@dataclass(slots=True)
class PlannedFiles(OsFiles):
    """The file system with a plan laid over it. Only what reads is; nothing is written through it."""

    cuts: dict[Path, Cut] = field(default_factory=dict)
    new: NewSegment | None = None

    def read(self, path: Path, position: int, size: int) -> bytes:
        if self.new is not None and path == self.new.path:
            return self._read_new(self.new, position, size)
        cut = self.cuts.get(path)
        if cut is not None:
            size = min(size, cut.position - position)
        return OsFiles.read(self, path, position, size)

    def _read_new(self, new: NewSegment, position: int, size: int) -> bytes:
        head = new.header[position : position + size]
        at = new.start + max(position - len(new.header), 0)
        left = min(size - len(head), new.end - at)
        if new.source is None or left <= 0:
            return head
        return head + OsFiles.read(self, new.source, at, left)

    def list(self, path: Path) -> list[Listed]:
        try:
            found = OsFiles.list(self, path)
        except FileNotFoundError:
            found = []  # a start makes the directory
        planned = []
        for listed in found:
            cut = self.cuts.get(path / listed.name)
            if cut is None:
                planned.append(listed)
            elif not cut.whole:
                planned.append(Listed(listed.name, listed.is_file, listed.is_link, cut.position))
        if self.new is not None and self.new.path.parent == path:
            planned.append(Listed(self.new.path.name, is_file=True, is_link=False, size=self.new.size))
        return sorted(planned, key=lambda listed: listed.name)
