"""Arithmetic of measurements, pure: percentiles, medians with their spread, ratios."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of an ascending sequence does not exceed; 0.0 of nothing."""
    if not ordered:
        return 0.0
    rank = -(-len(ordered) * share // 1)
    return ordered[min(len(ordered), max(1, int(rank))) - 1]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and what lay to both sides of it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of at least one value."""
        return cls(median(values), min(values), max(values))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Return ours over theirs, round by round: only figures of the same minute are comparable."""
    return Spread.of([mine / other if other else 0.0 for mine, other in zip(ours, theirs, strict=True)])
