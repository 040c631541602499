"""The highest live offset of each partition, from any group: kept for the topics that are asked for.

Finding it anew would mean looking at every group of a topic, and there may be a hundred thousand. So the table notes
which groups have changed since somebody last asked, and only they are looked at. Pure, as all rules.
"""

from collections.abc import Iterator
from struct import Struct

from offsetd.table import ABSENT_MS, ROW_BYTES, Group, TopicIndex

#: Metadata lists at most this many partitions of a topic, whatever number a commit has named; ends need no more either.
LISTED_PARTITIONS_MAX = 10_000

#: 2^63-1 is what some tools commit to mean "the end"; it says nothing about where a log ends.
_NO_END = (1 << 63) - 1
_NOTHING = -1

#: Others get their turn after about so many offsets were looked at: less than a millisecond.
_SLICE_ROWS = 2000


class _Ends:
    """What is known of one topic: the highest offset of each partition, and a group that holds it."""

    __slots__ = ("highest", "holders")

    def __init__(self) -> None:
        self.highest: list[int] = []
        self.holders: list[Group | None] = []


class Latest:
    """Answers where partitions seem to end."""

    def __init__(self, index: TopicIndex) -> None:
        self._index = index
        self._known: dict[str, _Ends] = {}

    def behind(self, name: str) -> int:
        """Return how many groups must be looked at before the topic's ends are known; from now on it is watched."""
        return len(self._touched(name))

    def catch_up(self, name: str) -> Iterator[None]:
        """Look at them; yields whenever it is time for others."""
        rows = 0
        while touched := self._touched(name):
            rows += self._look(name, self._known[name], touched.pop())
            if rows >= _SLICE_ROWS:
                rows = 0
                yield

    def get(self, name: str, partition: int) -> int:
        """Return the highest offset of a partition, -1 if no group has one that means something."""
        for _ in self.catch_up(name):
            pass
        highest = self._known[name].highest if name in self._known else []
        return highest[partition] if partition < len(highest) else _NOTHING

    def _touched(self, name: str) -> set[Group]:
        index = self._index
        touched = index.touched.get(name)
        if touched is None:
            # Never asked for, or it has gone since: look at all.
            self._known.pop(name, None)
            if len(self._known) > 2 * len(index.touched):
                self._known = {known: ends for known, ends in self._known.items() if known in index.touched}
            touched = set(index.groups.get(name, ()))
            if touched:
                index.touched[name] = touched
                self._known[name] = _Ends()
        return touched

    def _look(self, name: str, ends: _Ends, group: Group) -> int:
        """Take what a group holds now into account; return how much work that was."""
        highest, holders = ends.highest, ends.holders
        rows = _offsets(group, name) if group in self._index.groups.get(name, ()) else {}
        if rows and (missing := max(rows) + 1 - len(highest)) > 0:
            highest += [_NOTHING] * missing
            holders += [None] * missing
        if group in holders:
            held = [place for place, holder in enumerate(holders) if holder is group]
            lowered = [place for place in held if rows.get(place, _NOTHING) < highest[place]]
            if lowered:
                # Nobody knows who comes next, so all groups are looked at once more.
                for place in lowered:
                    highest[place], holders[place] = _NOTHING, None
                self._index.touched[name].update(self._index.groups[name])
        for partition, offset in rows.items():
            if offset > highest[partition]:
                highest[partition], holders[partition] = offset, group
        return 1 + len(rows)


def _offsets(group: Group, name: str) -> dict[int, int]:
    """Return a group's offsets by partition, but for those that say nothing of where a log ends."""
    cells = group.topics.get(name, b"")
    size = len(cells) // ROW_BYTES
    listed = min(size, LISTED_PARTITIONS_MAX)
    rows = dict(enumerate(Struct(f">{listed}q").unpack_from(cells)))
    if group.holes is not None and name in group.holes:
        times = Struct(f">{listed}q").unpack_from(cells, 8 * size)
        rows = {partition: offset for partition, offset in rows.items() if times[partition] != ABSENT_MS}
    if group.sparse is not None:
        for partition, row in group.sparse.get(name, {}).items():
            if 0 <= partition < LISTED_PARTITIONS_MAX:
                rows[partition] = row[0]
    return {partition: offset for partition, offset in rows.items() if 0 <= offset < _NO_END}
