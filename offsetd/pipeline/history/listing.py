"""What there is of a broker's history at one moment, by the names of its files and the journal's end."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from offsetd.journal.sealed import SealedFile, list_sealed
from offsetd.journal.segment import segment_number
from offsetd.pipeline.history.ending import Reached, find_end
from offsetd.pipeline.history.places import Places
from offsetd.pipeline.history.refusal import BatchesGone, HistoryRefused
from offsetd.pipeline.history.span import Span, format_spans, missing, segment_spans, unsealed

_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Listing:
    """The sealed files, and every batch that stands in a segment, sealed or not."""

    sealed: tuple[SealedFile, ...]
    segments: tuple[Span, ...]

    @property
    def unsealed(self) -> list[Span]:
        """What has to be read from segments, a run of batches for each of them."""
        return unsealed(self.segments, self.sealed)

    @property
    def spans(self) -> list[Span]:
        """Every batch once, in runs as they stand in files."""
        return sorted([*(Span(file.first_number, file.last_number) for file in self.sealed), *self.unsealed])

    @property
    def first(self) -> int | None:
        """The oldest batch; None if there is none."""
        return self.spans[0].first if self.spans else None

    @property
    def last(self) -> int | None:
        """The newest batch; None if there is none."""
        return self.spans[-1].last if self.spans else None

    def check_whole(self) -> None:
        """Refuse a history with a hole.

        Raises:
            BatchesGone: batches are missing between others.
        """
        if gaps := missing(self.spans):
            raise BatchesGone(
                f"the batches {format_spans(gaps)} are missing between others, as after `offsetd journal repair`. "
                "failOnDataLoss=false reads what there is"
            )


class Lister:
    """Lists a history again and again, and reads the journal's end no further than to what is new in it."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._reached: Reached | None = None

    def look(self, sealed: Callable[[Path], list[SealedFile]] = list_sealed) -> Listing:
        """Return what there is now.

        Args:
            sealed: lists the sealed files.

        Raises:
            Damage, NewerFormat: the journal's last segment cannot be read.
            HistoryRefused: the files moved all the time, or the journal cannot be read.
        """
        for _ in range(_TRIES):
            # In the order in which batches move on, so that whatever moves meanwhile is seen, once or twice.
            written = _numbers(self.places.journal)
            released = _numbers(self.places.segments)
            files = tuple(sealed(self.places.sealed))
            firsts = sorted({*written, *released})
            if not firsts:
                return Listing(files, ())
            try:
                last = self._end(firsts[-1], growing=firsts[-1] in written)
            except FileNotFoundError:
                continue  # moved on since it was listed
            return Listing(files, tuple(segment_spans(firsts, last)))
        raise HistoryRefused(f"the segments of {self.places.journal} moved faster than they could be listed; try again")

    def _end(self, first_number: int, *, growing: bool) -> int:
        known = self._reached
        if known is not None and known.header.first_number != first_number:
            known = None
        for path in self.places.of_segment(first_number):
            if path.exists():
                self._reached = find_end(path, growing=growing, known=known)
                return first_number - 1 if self._reached is None else self._reached.settled_number
        raise FileNotFoundError(first_number)


def _numbers(directory: Path) -> set[int]:
    try:
        return {number for path in directory.iterdir() if (number := segment_number(path.name)) is not None}
    except FileNotFoundError:
        return set()
