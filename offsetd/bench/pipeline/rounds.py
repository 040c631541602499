"""Rounds: contestants do the same work in turn, so that all figures of a round are of one minute."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from offsetd.bench.numbers import Spread, ratios

#: The first time through, a JVM compiles and caches fill: not counted.
_WARM_ROUNDS: Final = 1


@dataclass(slots=True, kw_only=True)
class Contest:
    """What each contestant took, round by round."""

    work: str
    records: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def rate(self, name: str) -> Spread:
        """Return the records per second of a contestant."""
        return Spread.of([self.records / taken for taken in self.seconds[name]])

    def ratio(self, name: str, anchor: str) -> Spread:
        """Return how many times as fast a contestant was as another, round by round."""
        return ratios(self.seconds[anchor], self.seconds[name])


def contest(
    work: str,
    contestants: Mapping[str, Callable[[], None]],
    *,
    records: int,
    rounds: int,
    told: Callable[[str], None],
) -> Contest:
    """Let each do the work, uncounted once and then in every round."""
    found = Contest(work=work, records=records, seconds={name: [] for name in contestants})
    for number in range(-_WARM_ROUNDS, rounds):
        names = list(contestants)
        for name in names if number % 2 == 0 else reversed(names):
            began = time.monotonic()
            contestants[name]()
            taken = time.monotonic() - began
            if number >= 0:
                found.seconds[name].append(taken)
            told(f"{work}: {name}, {'warm-up' if number < 0 else f'round {number + 1}/{rounds}'}, {taken:.2f} s")
    return found
