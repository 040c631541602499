"""The highest live offset of each partition, from any group: kept for the topics that are asked for.

Finding it anew would mean looking at every group of a topic, and there may be a hundred thousand. So the table notes
which groups have changed since somebody last asked, and only they are looked at. Pure, as all rules.
"""

from collections.abc import Iterator, Sequence
from struct import Struct

from offsetd.group import ABSENT_MS, ROW_BYTES, Group
from offsetd.table import TopicIndex

#: Metadata lists at most this many partitions of a topic, whatever number a commit has named; ends need no more either.
LISTED_PARTITIONS_MAX = 10_000

#: 2^63-1 is what some tools commit to mean "the end"; it says nothing about where a log ends.
_NO_END = (1 << 63) - 1
_NOTHING = -1

#: Others get their turn after about so many offsets were looked at: about a millisecond.
_SLICE_ROWS = 5000
#: What a look at a group costs beside its offsets, in offsets.
_LOOK_ROWS = 10


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
        offsets = _offsets(group, name) if group in self._index.groups[name] else ()
        missing = len(offsets) - len(highest)
        if missing > 0:
            highest += [_NOTHING] * missing
            holders += [None] * missing
        if group in holders:
            held = [place for place, holder in enumerate(holders) if holder is group]
            lowered = [place for place in held if place >= len(offsets) or offsets[place] < highest[place]]
            if lowered:
                # Nobody knows who comes next, so all groups are looked at once more.
                for place in lowered:
                    highest[place], holders[place] = _NOTHING, None
                self._index.touched[name].update(self._index.groups[name])
        for place, (offset, known) in enumerate(zip(offsets, highest, strict=False)):
            if offset > known:
                highest[place], holders[place] = offset, group
        return _LOOK_ROWS + len(offsets)


def _offsets(group: Group, name: str) -> Sequence[int]:
    """Return a group's offsets by partition, less than nothing where it has none that says where a log ends."""
    cells = group.topics.get(name, b"")
    size = len(cells) // ROW_BYTES
    listed = min(size, LISTED_PARTITIONS_MAX)
    offsets: Sequence[int] = Struct(f">{listed}q").unpack_from(cells)
    if group.holes is not None and name in group.holes:
        times = Struct(f">{listed}q").unpack_from(cells, 8 * size)
        offsets = [_NOTHING if time == ABSENT_MS else offset for offset, time in zip(offsets, times, strict=True)]
    if group.sparse is not None and name in group.sparse:
        far = {place: row[0] for place, row in group.sparse[name].items() if 0 <= place < LISTED_PARTITIONS_MAX}
        offsets = [*offsets, *[_NOTHING] * (max(far, default=-1) + 1 - len(offsets))]
        for place, offset in far.items():
            offsets[place] = offset
    return [_NOTHING if offset == _NO_END else offset for offset in offsets] if _NO_END in offsets else offsets
