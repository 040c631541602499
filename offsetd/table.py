"""The table of offsets of one slot, and `apply`, the only place where it changes.

Live traffic, replay and compaction all go through `apply`. Pure: no clock, no file, no wire.
"""

from struct import Struct
from sys import intern
from typing import Any

from offsetd.group import ABSENT, ABSENT_MS, INT32, INT64, ROW_BYTES, Group
from offsetd.record import Entry, Kind, UnknownEntry, Who, read_generation

_NO_EPOCH = b"\xff\xff\xff\xff"

#: A topic's column may have about as many holes as rows before its far partitions go to the side table.
_DENSE_SLACK_ROWS = 16


class TopicIndex:
    """Which groups have offsets of a topic, over all slots: for ListOffsets' latest and an operator's questions."""

    __slots__ = ("changes", "groups", "partitions", "touched")

    def __init__(self) -> None:
        self.groups: dict[str, set[Group]] = {}
        # How many partitions a topic's groups have named; missing where a group lost some, until somebody counts.
        self.partitions: dict[str, int] = {}
        # Moves when a topic comes or goes, or has another number of partitions.
        self.changes = 0
        # Of topics whose ends somebody asks for: the groups that have changed since they were last looked at.
        self.touched: dict[str, set[Group]] = {}

    def add(self, topic: str, group: Group, partitions: int) -> None:
        """Remember that `group` has offsets of `topic`, in partitions below a number."""
        groups = self.groups.get(topic)
        if groups is None:
            groups = self.groups[topic] = set()
            self.partitions[topic] = 0
            self.changes += 1
        groups.add(group)
        known = self.partitions.get(topic)
        if known is not None and partitions > known:
            self.partitions[topic] = partitions
            self.changes += 1

    def lower(self, topic: str, group: Group) -> None:
        """Hear that `group` has fewer offsets of `topic` than before."""
        self.partitions.pop(topic, None)
        self.changes += 1
        if topic in self.touched:
            self.touched[topic].add(group)

    def remove(self, topic: str, group: Group) -> None:
        """Forget that `group` has offsets of `topic`."""
        groups = self.groups.get(topic)
        if groups is not None:
            self.lower(topic, group)
            groups.discard(group)
            if not groups:
                del self.groups[topic]
                self.touched.pop(topic, None)


class SlotTable:
    """All groups of one slot."""

    __slots__ = ("groups", "index", "live", "newest_ms", "sequence", "slot", "version")

    def __init__(self, slot: int, index: TopicIndex, *, sequence: int = 0) -> None:
        self.slot = slot
        self.index = index
        self.groups: dict[str, Group] = {}
        self.live = 0
        # The sequence that the next record gets: counted here and nowhere else, so that replay counts alike.
        self.sequence = sequence
        self.version = 0
        # The newest time that the log has shown us: expiry measures from it, not from a clock that may have jumped.
        self.newest_ms = 0


# Two bounded memories of things that repeat: what packed partition numbers mean, and who commits. Without the second,
# each group would hold its own copy of the same three strings.
_runs: dict[bytes, int] = {}
_RUNS_MAX = 20_000
_whos: dict[tuple[str, str, str], Who] = {}
WHOS_MAX = 20_000


def known_who(who: tuple[str, str, str]) -> Who:
    """Return the one object that stands for a client, so that its groups share it."""
    if len(_whos) >= WHOS_MAX:
        _whos.clear()
    return _whos.setdefault(who, Who(*who))


def run_start(partitions: bytes) -> int:
    """Return the first of packed partition numbers if they ascend by one, else -1."""
    start = _runs.get(partitions)
    if start is None:
        numbers = Struct(f">{len(partitions) // 4}i").unpack(partitions)
        start = numbers[0] if numbers and numbers == tuple(range(numbers[0], numbers[0] + len(numbers))) else -1
        if start < 0:
            start = -1
        if len(_runs) >= _RUNS_MAX:
            _runs.clear()
        _runs[partitions] = start
    return start


def apply(table: SlotTable, entry: Entry) -> None:
    """Change a slot's table by one entry of the log. Live traffic, replay and compaction share this line."""
    kind = entry[0]
    if kind == Kind.COMMIT:
        apply_commit(table, entry[3], entry[4], entry[5], entry[6])
    elif kind == Kind.TOUCH:
        _touch(table, entry)
    elif kind == Kind.TOMBSTONE:
        _tombstone(table, entry)
    elif kind == Kind.GROUP:
        _generation(table, entry)
    elif kind == Kind.GROUP_TOMBSTONE:
        _group_tombstone(table, entry)
    else:
        raise UnknownEntry(kind=kind, version=entry[1])


def apply_commit(table: SlotTable, group_id: str, time_ms: int, who: Any, topics: Any) -> None:
    """Write one commit: the rows of all its topics, under one version."""
    group = table.groups.get(group_id)
    if group is None:
        group = table.groups[group_id] = Group()
    table.version = group.version = table.version + 1
    group.who = _whos.get(who) or known_who(who)
    if time_ms > table.newest_ms:
        table.newest_ms = time_ms
    time = INT64.pack(time_ms)
    touched = table.index.touched
    for name, partitions, offsets, epochs, times, expiries, metadata in topics:
        count = len(partitions) // 4
        table.sequence += count
        start = run_start(partitions)
        cells = group.topics.get(name)
        size = 0 if cells is None else len(cells) // ROW_BYTES
        if (
            cells is not None
            and 0 <= start <= size - count
            and times is None
            and (group.holes is None or name not in group.holes)
        ):
            at = 8 * start
            cells[at : at + 8 * count] = offsets
            at += 8 * size
            cells[at : at + 8 * count] = time * count
            at = 16 * size + 4 * start
            cells[at : at + 4 * count] = _NO_EPOCH * count if epochs is None else epochs
        elif cells is None and start == 0 and times is None and (group.sparse is None or name not in group.sparse):
            # The first commit of a topic, from its first partition on: the columns are these very bytes.
            columns = b"".join((offsets, time * count, _NO_EPOCH * count if epochs is None else epochs))
            shared = intern(name)
            group.topics[shared] = bytearray(columns)
            group.live += count
            table.live += count
            table.index.add(shared, group, count)
        else:
            _place(table, group, name, partitions, offsets, epochs, times, time_ms)
        if touched and name in touched:
            touched[name].add(group)
        if group.metadata is not None or metadata is not None:
            _set_metadata(group, name, partitions, metadata)
        if group.expiries is not None or expiries is not None:
            _set_expiries(group, name, partitions, expiries)


def _place(
    table: SlotTable,
    group: Group,
    name: str,
    partitions: bytes,
    offsets: bytes,
    epochs: bytes | None,
    times: bytes | None,
    time_ms: int,
) -> None:
    """Write rows one by one: new ones, scattered ones, ones with times of their own."""
    count = len(partitions) // 4
    if count == 0:
        return
    numbers = Struct(f">{count}i").unpack(partitions)
    values = Struct(f">{count}q").unpack(offsets)
    moments = [time_ms] * count if times is None else Struct(f">{count}q").unpack(times)
    leaders = [-1] * count if epochs is None else Struct(f">{count}i").unpack(epochs)
    name = intern(name)
    table.index.add(name, group, max(numbers) + 1)
    _grow(group, name, numbers)
    cells = group.topics.get(name)
    size = 0 if cells is None else len(cells) // ROW_BYTES
    added = 0
    for partition, value, moment, leader in zip(numbers, values, moments, leaders, strict=True):
        clamped = max(moment, ABSENT_MS + 1)
        if cells is not None and 0 <= partition < size:
            added += cells[8 * (size + partition) : 8 * (size + partition + 1)] == ABSENT
            INT64.pack_into(cells, 8 * partition, value)
            INT64.pack_into(cells, 8 * (size + partition), clamped)
            INT32.pack_into(cells, 16 * size + 4 * partition, leader)
        else:
            if group.sparse is None:
                group.sparse = {}
            far = group.sparse.setdefault(name, {})
            added += partition not in far
            far[partition] = (value, clamped, leader)
    group.live += added
    table.live += added


def _grow(group: Group, name: str, numbers: tuple[int, ...]) -> None:
    """Make the topic's columns as long as the new partitions need, unless that would be mostly holes."""
    cells = group.topics.get(name)
    size = 0 if cells is None else len(cells) // ROW_BYTES
    far = {} if group.sparse is None else group.sparse.get(name, {})
    outside = sorted({number for number in numbers if number >= size} | far.keys())
    rows = size
    for seen, number in enumerate(outside, start=1):
        if 0 <= number < 2 * (size + seen) + _DENSE_SLACK_ROWS:
            rows = number + 1
    if rows > size:
        old = bytes(cells or b"")
        more = rows - size
        grown = bytearray(old[: 8 * size] + bytes(8 * more) + old[8 * size : 16 * size] + ABSENT * more)
        grown += old[16 * size :] + _NO_EPOCH * more
        group.topics[name] = grown
        filled = set(numbers)
        moved = [partition for partition in far if 0 <= partition < rows]
        for partition in moved:
            value, moment, leader = far.pop(partition)
            INT64.pack_into(grown, 8 * partition, value)
            INT64.pack_into(grown, 8 * (rows + partition), moment)
            INT32.pack_into(grown, 16 * rows + 4 * partition, leader)
        filled.update(moved)
        if group.sparse is not None and name in group.sparse and not group.sparse[name]:
            del group.sparse[name]
            group.sparse = group.sparse or None
        if not filled.issuperset(range(size, rows)):
            group.holes = (group.holes or set()) | {name}


def _numbers(partitions: bytes) -> tuple[int, ...]:
    return Struct(f">{len(partitions) // 4}i").unpack(partitions)


def _set_metadata(group: Group, name: str, partitions: bytes, metadata: Any) -> None:
    table = group.metadata = {} if group.metadata is None else group.metadata
    texts = table.setdefault(name, {})
    numbers = _numbers(partitions)
    for partition in numbers:
        texts.pop(partition, None)
    for place, text in metadata or ():
        texts[numbers[place]] = text
    if metadata:
        # A partition named twice keeps what its last mention says, which may be nothing.
        said = dict(metadata)
        for partition, place in {number: place for place, number in enumerate(numbers)}.items():
            if place not in said:
                texts.pop(partition, None)
    if not texts:
        del table[name]
        group.metadata = table or None


def _set_expiries(group: Group, name: str, partitions: bytes, expiries: bytes | None) -> None:
    table = group.expiries = {} if group.expiries is None else group.expiries
    moments = table.setdefault(name, {})
    numbers = _numbers(partitions)
    if expiries is None:
        for partition in numbers:
            moments.pop(partition, None)
    else:
        moments.update(zip(numbers, Struct(f">{len(numbers)}q").unpack(expiries), strict=True))
    if not moments:
        del table[name]
        group.expiries = table or None


def _touch(table: SlotTable, entry: Entry) -> None:
    _, _, _, group_id, time_ms, who, topics = entry
    table.newest_ms = max(table.newest_ms, time_ms)
    # Counted from the entry alone, whatever the table holds, so that every replay counts alike.
    table.sequence += sum(len(partitions) // 4 for _, partitions in topics)
    group = table.groups.get(group_id)
    if group is None:
        return
    # A reply shows no commit time, so the version stays and cached replies stay good.
    group.who = _whos.get(who) or known_who(who)
    for name, partitions in topics:
        numbers = _numbers(partitions)
        cells = group.topics.get(name)
        size = 0 if cells is None else len(cells) // ROW_BYTES
        far = {} if group.sparse is None else group.sparse.get(name, {})
        for partition in numbers:
            at = 8 * (size + partition)
            if cells is not None and 0 <= partition < size and cells[at : at + 8] != ABSENT:
                INT64.pack_into(cells, at, time_ms)
            elif partition in far:
                offset, _, epoch = far[partition]
                far[partition] = (offset, time_ms, epoch)


def _tombstone(table: SlotTable, entry: Entry) -> None:
    _, _, _, group_id, time_ms, _, _, topics = entry
    table.newest_ms = max(table.newest_ms, time_ms)
    group = table.groups.get(group_id)
    for name, partitions in topics:
        numbers = _numbers(partitions)
        table.sequence += len(numbers)
        if group is not None:
            _remove(table, group, name, numbers)
    if group is not None:
        table.version = group.version = table.version + 1
        if group.live == 0 and group.generation is None:
            group.version = -1
            del table.groups[group_id]


def _remove(table: SlotTable, group: Group, name: str, numbers: tuple[int, ...]) -> None:
    cells = group.topics.get(name)
    size = 0 if cells is None else len(cells) // ROW_BYTES
    far = {} if group.sparse is None else group.sparse.get(name, {})
    removed = 0
    for partition in set(numbers):
        at = 8 * (size + partition)
        if cells is not None and 0 <= partition < size and cells[at : at + 8] != ABSENT:
            cells[at : at + 8] = ABSENT
            removed += 1
            group.holes = (group.holes or set()) | {name}
        elif far.pop(partition, None) is not None:
            removed += 1
        for side in (group.metadata, group.expiries):
            if side is not None and name in side:
                side[name].pop(partition, None)
    group.live -= removed
    table.live -= removed
    table.index.lower(name, group)
    if not any(True for _ in group.rows(name)):
        _forget_topic(table, group, name)
        return
    # An empty side table would be taken for one that has rows.
    for table_of_side in (group.sparse, group.metadata, group.expiries):
        if table_of_side is not None and name in table_of_side and not table_of_side[name]:
            del table_of_side[name]
    _drop_empty_sides(group)


def _forget_topic(table: SlotTable, group: Group, name: str) -> None:
    group.topics.pop(name, None)
    for side in (group.sparse, group.metadata, group.expiries):
        if side is not None:
            side.pop(name, None)
    _drop_empty_sides(group)
    if group.holes is not None:
        group.holes.discard(name)
        group.holes = group.holes or None
    table.index.remove(name, group)


def _drop_empty_sides(group: Group) -> None:
    group.sparse = group.sparse or None
    group.metadata = group.metadata or None
    group.expiries = group.expiries or None


def _generation(table: SlotTable, entry: Entry) -> None:
    _, _, _, group_id, time_ms, who, stored = entry
    table.newest_ms = max(table.newest_ms, time_ms)
    table.sequence += 1
    group = table.groups.get(group_id)
    if group is None:
        table.version += 1
        group = table.groups[group_id] = Group()
        group.version = table.version
        group.who = _whos.get(who) or known_who(who)
    group.generation = time_ms, read_generation(stored)


def _group_tombstone(table: SlotTable, entry: Entry) -> None:
    _, _, _, group_id, time_ms, _, _ = entry
    table.newest_ms = max(table.newest_ms, time_ms)
    table.sequence += 1
    group = table.groups.pop(group_id, None)
    if group is not None:
        drop_group(table, group)


def drop_group(table: SlotTable, group: Group) -> None:
    """Take a removed group out of the counts and the index, and void what was cached of it."""
    group.version = -1
    table.live -= group.live
    for name in group.names():
        table.index.remove(name, group)
