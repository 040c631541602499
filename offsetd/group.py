"""A group's offsets in memory: packed columns per topic, and how they are read. Who changes them is the table.

A group keeps, per topic, one bytearray of packed big-endian columns, dense by partition number: all offsets, then all
commit times, then all leader epochs. So a commit of neighbouring partitions is three slice assignments, a checkpoint
stores the very bytes, and an offset costs 20 bytes and not an object. Partition numbers far above the rest, metadata
and expiry times live in side tables that most groups do not have. Pure.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from offsetd.record import Generation, Who

ROW_BYTES = 20
INT64 = Struct(">q")
INT32 = Struct(">i")

#: The commit time of a row that is not there. A client's own timestamp of this value is moved up by one.
ABSENT_MS = -(1 << 63)
ABSENT = INT64.pack(ABSENT_MS)

#: So many rows of a column are unpacked at once.
_PART_ROWS = 1024


class Offset(NamedTuple):
    """One committed offset with all that is kept of it."""

    offset: int
    leader_epoch: int
    metadata: str
    time_ms: int
    expiry_ms: int | None


class Group:
    """What one group has committed. Only `offsetd.table` changes it."""

    __slots__ = ("expiries", "generation", "holes", "live", "metadata", "sparse", "topics", "version", "who")

    def __init__(self) -> None:
        self.topics: dict[str, bytearray] = {}
        # Topics whose columns have absent rows; None for the common case that none has.
        self.holes: set[str] | None = None
        self.sparse: dict[str, dict[int, tuple[int, int, int]]] | None = None
        self.metadata: dict[str, dict[int, str]] | None = None
        self.expiries: dict[str, dict[int, int]] | None = None
        self.who: Who | None = None
        # The last generation of members that was completed, and when; None for a group that never had any.
        self.generation: tuple[int, Generation] | None = None
        # Moves with every change and never returns to a value it had: replies cached for a version are safe to send.
        self.version = 0
        self.live = 0

    def get(self, topic: str, partition: int) -> Offset | None:
        """Return the offset of one partition, or None where there is none."""
        cells = self.topics.get(topic)
        if cells is not None:
            size = len(cells) // ROW_BYTES
            if 0 <= partition < size:
                time_ms = INT64.unpack_from(cells, 8 * (size + partition))[0]
                if time_ms != ABSENT_MS:
                    offset = INT64.unpack_from(cells, 8 * partition)[0]
                    epoch = INT32.unpack_from(cells, 16 * size + 4 * partition)[0]
                    return self._offset(topic, partition, offset, time_ms, epoch)
        if self.sparse is not None:
            row = self.sparse.get(topic, {}).get(partition)
            if row is not None:
                return self._offset(topic, partition, *row)
        return None

    def names(self) -> list[str]:
        """Return the topics that the group has offsets of."""
        if self.sparse is None:
            return list(self.topics)
        return list(dict.fromkeys((*self.topics, *self.sparse)))

    def rows(self, topic: str) -> Iterator[tuple[int, Offset]]:
        """Yield each partition of a topic with its offset, partitions ascending."""
        cells = self.topics.get(topic, b"")
        size = len(cells) // ROW_BYTES
        # In parts, as the caller may stop in between, and a million rows at once would be a moment too long.
        for start in range(0, size, _PART_ROWS):
            count = min(_PART_ROWS, size - start)
            offsets = Struct(f">{count}q").unpack_from(cells, 8 * start)
            times = Struct(f">{count}q").unpack_from(cells, 8 * (size + start))
            epochs = Struct(f">{count}i").unpack_from(cells, 16 * size + 4 * start)
            for place, time_ms in enumerate(times):
                if time_ms != ABSENT_MS:
                    partition = start + place
                    yield partition, self._offset(topic, partition, offsets[place], time_ms, epochs[place])
        if self.sparse is not None:
            for partition, row in sorted(self.sparse.get(topic, {}).items()):
                yield partition, self._offset(topic, partition, *row)

    def copy(self) -> "Group":
        """Return the offsets as they are now, for whoever needs more than a moment to read them."""
        made = Group()
        made.topics = {name: cells[:] for name, cells in self.topics.items()}
        made.sparse = None if self.sparse is None else {name: rows.copy() for name, rows in self.sparse.items()}
        made.metadata = None if self.metadata is None else {name: one.copy() for name, one in self.metadata.items()}
        made.live = self.live
        return made

    def partitions(self, topic: str) -> int:
        """Return one more than the highest partition that has, or had, an offset here."""
        size = len(self.topics.get(topic, b"")) // ROW_BYTES
        if self.sparse is not None and topic in self.sparse:
            return max(size, *(partition + 1 for partition in self.sparse[topic]))
        return size

    def newest_ms(self) -> int | None:
        """Return the time of the newest commit among the rows that are there, without an object for each of them."""
        times = [row[1] for rows in (self.sparse or {}).values() for row in rows.values()]
        for cells in self.topics.values():
            size = len(cells) // ROW_BYTES
            times.append(max(Struct(f">{size}q").unpack_from(cells, 8 * size)))
        newest = max(times, default=ABSENT_MS)
        return None if newest == ABSENT_MS else newest

    def _offset(self, topic: str, partition: int, offset: int, time_ms: int, epoch: int) -> Offset:
        metadata = "" if self.metadata is None else self.metadata.get(topic, {}).get(partition, "")
        expiry = None if self.expiries is None else self.expiries.get(topic, {}).get(partition)
        return Offset(offset, epoch, metadata, time_ms, expiry)
