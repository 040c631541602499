"""What clients did and saw of one register, and whether one order of single steps explains it all.

Every value is written at most once. That makes the question exact and cheap: all that is known of a value is its zone,
from the first end to the last start of the operations on it. A zone that runs forwards (an operation began after
another had ended) is a time in which the register certainly held that value; so two such zones may not overlap, and a
value whose operations all overlap may not lie inside another's certain time. Gibbons and Korach, "Testing shared
memories".
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

WRITE: Final = "write"
READ: Final = "read"
NEVER: Final = inf


class Operation(NamedTuple):
    """One commit or fetch of one key; an end of `NEVER` is a write of which nobody knows whether it took place."""

    start: float
    end: float
    kind: str
    value: int | None


@dataclass(slots=True)
class _Zone:
    write: Operation
    first_end: float
    last_start: float
    reads: int = 0

    @property
    def low(self) -> float:
        return min(self.first_end, self.last_start)

    @property
    def high(self) -> float:
        return max(self.first_end, self.last_start)


def explain(operations: Sequence[Operation], *, initial: int | None = None) -> str | None:
    """Return why no order of single steps explains a history, or None if one does.

    Args:
        operations: all operations on one key; a read's end is known, as is its value.
        initial: what the register held before the first of them.
    """
    zones = {initial: _Zone(Operation(-inf, -inf, WRITE, initial), -inf, -inf)}
    for each in operations:
        if each.kind == WRITE:
            assert each.value not in zones, f"{each.value} is written twice, so nothing could be told from reading it"
            zones[each.value] = _Zone(each, each.end, each.start)
    for each in operations:
        if each.kind == READ:
            zone = zones.get(each.value)
            if zone is None:
                return f"{each.value} was read and never written"
            if each.end < zone.write.start:
                return f"{each.value} was read before its write began"
            zone.first_end = min(zone.first_end, each.end)
            zone.last_start = max(zone.last_start, each.start)
            zone.reads += 1
    return _conflict(zone for zone in zones.values() if zone.reads or zone.write.end != NEVER)


def _conflict(zones: Iterable[_Zone]) -> str | None:
    certain: list[_Zone] = []
    loose: list[_Zone] = []
    for zone in zones:
        (certain if zone.first_end < zone.last_start else loose).append(zone)
    certain.sort(key=lambda zone: zone.low)
    for before, after in pairwise(certain):
        if after.low < before.high:
            return f"{before.write.value} and {after.write.value} were both there at one time: a lost or a stale value"
    lows = [zone.low for zone in certain]
    for zone in loose:
        place = bisect_right(lows, zone.low) - 1
        if place >= 0 and certain[place].low < zone.low and zone.high < certain[place].high:
            held = certain[place].write.value
            return f"{zone.write.value} was written while the register held {held} before and after: it was lost"
    return None


def explain_by_trying(operations: Sequence[Operation], *, initial: int | None = None) -> bool:
    """Try every order: slow, and simple enough to be believed. For small histories, to check the checker."""
    tried: set[tuple[int, int | None]] = set()
    everything = range(len(operations))

    def order(done: int, value: int | None) -> bool:
        left = [number for number in everything if not done >> number & 1]
        if all(operations[number].end == NEVER for number in left):
            return True
        if (done, value) in tried:
            return False
        tried.add((done, value))
        deadline = min(operations[number].end for number in left)
        for number in left:
            each = operations[number]
            if each.start > deadline or (each.kind == READ and each.value != value):
                continue
            if order(done | 1 << number, each.value):
                return True
        return False

    return order(0, initial)
