"""The sealed files of history: what they are called, and which are there. What stands in them is `offsetd.history`'s.

A file's name says exactly which batches it holds, of one segment, a part of one, or several; no two files hold the same
batch. So the names alone answer up to where a segment has been sealed.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

_DAY: Final = re.compile(r"^day=(\d{4}-\d{2}-\d{2})$")
_FILE: Final = re.compile(r"^(\d{20})-(\d{20})\.parquet$")
_FIRST_MS: Final = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """One file of Parquet: all records of these batches, which were all written on this day (UTC)."""

    path: Path
    day: date
    first_number: int
    last_number: int
    size_bytes: int

    @property
    def newest_ms(self) -> int:
        """The last moment that can stand in it: its day's."""
        return (self.day.toordinal() - _FIRST_MS.toordinal() + 1) * DAY_MS - 1


def day_of(time_ms: int) -> date:
    """Return the day of a batch, UTC; the last one that calendars have for a time beyond it."""
    try:
        return (_FIRST_MS + timedelta(milliseconds=time_ms)).date()
    except OverflowError:
        return date.max


def sealed_path(directory: Path, day: date, first_number: int, last_number: int) -> Path:
    """Return where the records of these batches stand."""
    return directory / f"day={day.isoformat()}" / f"{first_number:020d}-{last_number:020d}.parquet"


def list_sealed(directory: Path) -> list[SealedFile]:
    """Return the sealed files in a directory, oldest batch first; none if there is no directory."""
    found = []
    for folder in _names(directory):
        named = _DAY.match(folder.name)
        if named is None:
            continue
        with suppress(ValueError):
            day = date.fromisoformat(named[1])
            found += [file for path in _names(folder) if (file := _sealed_file(path, day)) is not None]
    return sorted(found, key=lambda file: (file.first_number, file.last_number))


def _sealed_file(path: Path, day: date) -> SealedFile | None:
    named = _FILE.match(path.name)
    if named is None:
        return None
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return None  # retention has taken it away while we looked
    return SealedFile(path=path, day=day, first_number=int(named[1]), last_number=int(named[2]), size_bytes=size)


def _names(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def sealed_through(files: Iterable[SealedFile], first_number: int) -> int:
    """Return the last batch that is sealed of the run that begins with this one; the one before it if none is.

    A segment is sealed from its first batch on, so this is up to where a reader of both passes over a segment. Whoever
    lists segments first and sealed files after them misses nothing, because a segment goes only when its files are
    there; a segment that is then gone has been sealed or taken away meanwhile.
    """
    number = first_number - 1
    for file in sorted(files, key=lambda file: file.first_number):
        if file.first_number <= number + 1 <= file.last_number:
            number = file.last_number
    return number
