"""What each segment of a journal holds, taken by itself: how much of it is whole, and what stands behind a defect.

For people who look at a journal. What a defect means for a start is decided in `examine`.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from offsetd.journal.examine import Candidate, JournalRefused, Question, later_batches
from offsetd.journal.files import Files, Listed
from offsetd.journal.segment import Damage, NewerFormat, segment_number, walk


@dataclass(frozen=True, slots=True)
class Defect:
    """Where a segment is not whole, and why."""

    position: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One segment: its whole batches from the first on, and the whole ones behind a defect."""

    path: Path
    number: int
    size: int
    batches: int = 0
    last_number: int
    end: int = 0
    newest_ms: int | None = None
    defect: Defect | None = None
    behind: tuple[int, ...] = ()


def list_names(files: Files, journal: Path) -> Iterator[tuple[Listed, int]]:
    """Yield what has a segment's name, by number, whatever it is."""
    numbered = ((listed, segment_number(listed.name)) for listed in files.list(journal))
    found = [(listed, number) for listed, number in numbered if number is not None]
    yield from sorted(found, key=lambda each: each[1])


def survey_segments(question: Question) -> list[Survey]:
    """Read every segment to its end, also those that a start would pass over."""
    return [_survey(question, listed, number) for listed, number in list_names(question.files, question.journal)]


def _survey(question: Question, listed: Listed, number: int) -> Survey:
    path = question.journal / listed.name
    if not listed.is_file:
        no_file = Defect(0, "it is a symbolic link" if listed.is_link else "it is no plain file")
        return Survey(path=path, number=number, size=listed.size, last_number=number - 1, defect=no_file)
    batches, last_number, end, newest_ms = 0, number - 1, 0, None
    defect: Defect | None = None
    try:
        header, found = walk(partial(question.files.read, path), path=path)
        defect = _misplaced(question, number, header.cluster, header.first_number)
        end = header.length
        for batch in found:
            batches, last_number, end = batches + 1, batch.number, batch.end
            newest_ms = max(newest_ms or 0, batch.time_ms)
    except Damage as damage:
        defect = Defect(damage.position, damage.reason)
    except NewerFormat as newer:
        defect = Defect(0, f"it is of journal format {newer.version}")
    except OSError as error:
        defect = Defect(end, f"it cannot be read: {error.strerror}")
    return Survey(
        path=path,
        number=number,
        size=listed.size,
        batches=batches,
        last_number=last_number,
        end=end,
        newest_ms=newest_ms,
        defect=defect,
        behind=() if defect is None else _behind(question, path, number, defect.position, last_number + 1),
    )


def _misplaced(question: Question, number: int, cluster: bytes, first_number: int) -> Defect | None:
    if cluster != question.cluster:
        return Defect(0, "it belongs to another cluster")
    if first_number != number:
        return Defect(0, f"it begins with batch {first_number}, its name says {number}")
    return None


def _behind(question: Question, path: Path, number: int, position: int, number_min: int) -> tuple[int, ...]:
    candidate = Candidate(path, number, 0, None, None)
    found: list[int] = []
    # A disk that cannot be read any further is the defect itself, or a start will name it.
    with suppress(JournalRefused):
        found.extend(batch.number for batch in later_batches(question, candidate, position, number_min))
    return tuple(found)
