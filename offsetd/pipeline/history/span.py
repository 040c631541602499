"""Runs of batches, pure: what one task reads, and what is missing between them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from offsetd.journal.sealed import SealedFile, sealed_through

_SPAN: Final = re.compile(r"^\s*(\d{1,20})\s*(?:-\s*(\d{1,20})\s*)?$")


class Span(NamedTuple):
    """The batches from the first to the last, both included; none if the last is below the first."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    @property
    def batches(self) -> int:
        """How many they are."""
        return max(0, self.last - self.first + 1)

    def within(self, other: "Span") -> "Span":
        """Return what both have."""
        return Span(max(self.first, other.first), min(self.last, other.last))


def parse_spans(text: str) -> tuple[Span, ...]:
    """Read `1-500,501-812,900`.

    Raises:
        ValueError: it is not of this form, or a run of batches ends before it begins.
    """
    spans = []
    for part in text.split(","):
        found = _SPAN.match(part)
        span = Span(int(found[1]), int(found[2] or found[1])) if found else Span(0, 0)
        if not span.batches or span.first < 1:
            raise ValueError(f"{part.strip()!r} is no run of batches, want FIRST-LAST, several joined by commas")
        spans.append(span)
    return tuple(spans)


def format_spans(spans: Iterable[Span]) -> str:
    """Return the text of spans, as `parse_spans` reads it."""
    return ",".join(map(str, spans))


def segment_spans(firsts: Sequence[int], last: int) -> list[Span]:
    """Return what segments hold that begin with these batches, in order, and end with that one."""
    ends = [*(first - 1 for first in firsts[1:]), last]
    return [Span(first, end) for first, end in zip(firsts, ends, strict=True) if end >= first]


def unsealed(segments: Iterable[Span], sealed: Sequence[SealedFile]) -> list[Span]:
    """Return what of segments is not sealed; the files are in order, and no two hold the same batch."""
    firsts = [file.first_number for file in sealed]
    lasts = [file.last_number for file in sealed]
    rest = []
    for span in segments:
        files = sealed[bisect_left(lasts, span.first) : bisect_right(firsts, span.last)]
        left = Span(sealed_through(files, span.first) + 1, span.last)
        if left.batches:
            rest.append(left)
    return rest


def missing(spans: Iterable[Span]) -> list[Span]:
    """Return what is missing between spans."""
    gaps = []
    reached: int | None = None
    for first, last in sorted(spans):
        if reached is not None and first > reached + 1:
            gaps.append(Span(reached + 1, first - 1))
        reached = last if reached is None else max(reached, last)
    return gaps
