"""Random histories of a slot's entries, and a plain dict that says what must come out of them."""

from dataclasses import dataclass, field
from struct import pack
from typing import TypeAlias

from hypothesis import strategies as st

from offsetd.group import Group, Offset
from offsetd.record import (
    Generation,
    GenerationMember,
    Reason,
    TopicOffsets,
    Who,
    encode_commit,
    encode_generation,
    encode_group_tombstone,
    encode_tombstone,
    encode_touch,
)
from offsetd.table import SlotTable, TopicIndex

INT64_MIN = -(1 << 63)
SLOTS = 3


@dataclass(frozen=True)
class Row:
    """One partition of a commit."""

    partition: int
    offset: int
    epoch: int
    time_ms: int | None
    metadata: str


@dataclass(frozen=True)
class Commit:
    group: str
    time_ms: int
    who: Who
    topics: tuple[tuple[str, tuple[Row, ...], int | None], ...]


@dataclass(frozen=True)
class Touch:
    group: str
    time_ms: int
    who: Who
    topics: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Tombstone:
    group: str
    time_ms: int
    who: Who
    topics: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class GroupTombstone:
    group: str
    time_ms: int
    who: Who


@dataclass(frozen=True)
class Completed:
    """A generation of members is complete, or the last of them has left."""

    group: str
    time_ms: int
    who: Who
    generation: Generation


Step: TypeAlias = Commit | Touch | Tombstone | GroupTombstone | Completed


def slot_of(group: str) -> int:
    """Spread groups over the slots of these tests; any rule does."""
    return sum(group.encode()) % SLOTS


def encode(step: Step) -> bytes:
    """Return the entry of one step."""
    slot = slot_of(step.group)
    match step:
        case Commit(group, time_ms, who, topics):
            return encode_commit(slot, group, time_ms, who, [_columns(time_ms, *topic) for topic in topics])
        case Touch(group, time_ms, who, names):
            return encode_touch(slot, group, time_ms, who, [(name, _packed(numbers)) for name, numbers in names])
        case Tombstone(group, time_ms, who, names):
            topics_gone = [(name, _packed(numbers)) for name, numbers in names]
            return encode_tombstone(slot, group, time_ms, who, Reason.DELETED, topics_gone)
        case GroupTombstone(group, time_ms, who):
            return encode_group_tombstone(slot, group, time_ms, who, Reason.EXPIRED)
        case Completed(group, time_ms, who, generation):
            return encode_generation(slot, group, time_ms, who, generation)


def _packed(numbers: tuple[int, ...]) -> bytes:
    return pack(f">{len(numbers)}i", *numbers)


def _columns(time_ms: int, name: str, rows: tuple[Row, ...], expiry_ms: int | None) -> TopicOffsets:
    count = len(rows)
    own_times = any(row.time_ms is not None for row in rows)
    texts = tuple((place, row.metadata) for place, row in enumerate(rows) if row.metadata)
    return TopicOffsets(
        name=name,
        partitions=_packed(tuple(row.partition for row in rows)),
        offsets=pack(f">{count}q", *(row.offset for row in rows)),
        epochs=pack(f">{count}i", *(row.epoch for row in rows)) if any(row.epoch != -1 for row in rows) else None,
        times=pack(f">{count}q", *(time_ms if row.time_ms is None else row.time_ms for row in rows))
        if own_times
        else None,
        expiries=None if expiry_ms is None else pack(f">{count}q", *[expiry_ms] * count),
        metadata=texts or None,
    )


@dataclass
class Model:
    """What one slot must hold, the slow and obvious way."""

    groups: dict[str, dict[tuple[str, int], Offset]] = field(default_factory=dict)
    who: dict[str, Who] = field(default_factory=dict)
    generations: dict[str, tuple[int, Generation]] = field(default_factory=dict)
    sequence: int = 0
    newest_ms: int = 0

    def apply(self, step: Step) -> None:
        self.newest_ms = max(self.newest_ms, step.time_ms)
        match step:
            case Commit():
                self._commit(step)
            case Touch():
                self._touch(step)
            case Tombstone(group, _, _, names):
                self.sequence += sum(len(numbers) for _, numbers in names)
                for name, numbers in names:
                    for number in numbers:
                        self.groups.get(group, {}).pop((name, number), None)
                if not self.groups.get(group) and group not in self.generations:
                    self._forget(group)
            case GroupTombstone(group, _, _):
                self.sequence += 1
                self._forget(group)
            case Completed(group, time_ms, who, generation):
                self.sequence += 1
                self.groups.setdefault(group, {})
                self.who.setdefault(group, who)
                self.generations[group] = time_ms, generation

    def _commit(self, step: Commit) -> None:
        held = self.groups.setdefault(step.group, {})
        self.who[step.group] = step.who
        for name, rows, expiry_ms in step.topics:
            for row in rows:
                self.sequence += 1
                time_ms = step.time_ms if row.time_ms is None else max(row.time_ms, INT64_MIN + 1)
                held[name, row.partition] = Offset(row.offset, row.epoch, row.metadata, time_ms, expiry_ms)

    def _touch(self, step: Touch) -> None:
        self.sequence += sum(len(numbers) for _, numbers in step.topics)
        held = self.groups.get(step.group)
        if held is None:
            return
        self.who[step.group] = step.who
        for name, numbers in step.topics:
            for number in numbers:
                if (name, number) in held:
                    held[name, number] = held[name, number]._replace(time_ms=step.time_ms)

    def _forget(self, group: str) -> None:
        self.groups.pop(group, None)
        self.who.pop(group, None)
        self.generations.pop(group, None)


def seen(group: Group) -> dict[tuple[str, int], Offset]:
    """Return all that a table's group holds."""
    return {(name, partition): offset for name in group.names() for partition, offset in group.rows(name)}


def check_slot(table: SlotTable, model: Model) -> None:
    """Hold a table against its model, in all that it answers."""
    assert table.groups.keys() == model.groups.keys()
    for group_id, held in model.groups.items():
        group = table.groups[group_id]
        assert seen(group) == held
        assert group.who == model.who[group_id]
        assert group.generation == model.generations.get(group_id)
        assert group.live == len(held)
        assert group.newest_ms() == max((offset.time_ms for offset in held.values()), default=None)
        assert sorted(group.names()) == sorted({name for name, _ in held})
        for (name, partition), offset in held.items():
            assert group.get(name, partition) == offset
            assert group.get(name, partition ^ 1) == held.get((name, partition ^ 1))
        for name in group.names():
            partitions = [partition for partition, _ in group.rows(name)]
            dense = [partition for partition in partitions if 0 <= partition < group.partitions(name)]
            assert group.partitions(name) > max(partitions)
            assert dense == sorted(dense)
    assert table.live == sum(len(held) for held in model.groups.values())
    assert table.sequence == model.sequence
    assert table.newest_ms == model.newest_ms


def check_index(index: TopicIndex, tables: list[SlotTable]) -> None:
    """The index must name every group that has rows of a topic, and no other."""
    expected: dict[str, set[Group]] = {}
    for table in tables:
        for group in table.groups.values():
            for name in group.names():
                expected.setdefault(name, set()).add(group)
    assert index.groups == expected


# --- strategies ---------------------------------------------------------------------------------------------------

GROUPS = ("billing", "b", "b\u00fcro", "", "audit")
TOPICS = ("orders", "o", "\u03a9")
WHOS = (Who("rdkafka", "/10.0.0.1", ""), Who("sarama", "/10.0.0.2", "m-1"))
_times = st.integers(1 << 32, (1 << 32) + 500)
_partitions = st.one_of(
    st.integers(0, 6),
    st.integers(0, 60),
    st.sampled_from((-1, -(1 << 31), (1 << 31) - 1, 1000, 1001)),
)
_offsets = st.one_of(st.integers(0, 100), st.sampled_from((INT64_MIN, (1 << 63) - 1, -1)))
_scattered = st.lists(
    st.builds(
        Row,
        partition=_partitions,
        offset=_offsets,
        epoch=st.sampled_from((-1, -1, 0, 7)),
        time_ms=st.sampled_from((None, None, 5, INT64_MIN, INT64_MIN + 1, (1 << 63) - 1)),
        metadata=st.sampled_from(("", "", "at 14:05", "\U0001f40c")),
    ),
    max_size=5,
).map(tuple)


@st.composite
def _run(draw: st.DrawFn) -> tuple[Row, ...]:
    """Neighbouring partitions with nothing special: what nearly every commit is."""
    start, count, offset = draw(st.integers(0, 4)), draw(st.integers(1, 20)), draw(_offsets)
    epoch = draw(st.sampled_from((-1, -1, 3)))
    return tuple(Row(partition, offset, epoch, None, "") for partition in range(start, start + count))


_rows = st.one_of(_run(), _scattered)
_named = st.lists(
    st.tuples(st.sampled_from(TOPICS), st.lists(_partitions, max_size=8).map(tuple)), min_size=1, max_size=3
).map(tuple)
_everything = st.tuples(st.tuples(st.sampled_from(TOPICS), st.just(tuple(range(64)))))
_whos = st.sampled_from(WHOS)
_groups = st.sampled_from(GROUPS)
_topics = st.lists(
    st.tuples(st.sampled_from(TOPICS), _rows, st.sampled_from((None, None, None, 99))), min_size=1, max_size=3
).map(tuple)
_commits = st.builds(Commit, group=_groups, time_ms=_times, who=_whos, topics=_topics)

_bytes = st.sampled_from((b"", b"\0", b"\xc0\x93", bytes(300)))
_members = st.lists(
    st.builds(
        GenerationMember,
        member_id=st.sampled_from(("m-1", "m-2", "\u03a9-3", "")),
        instance_id=st.sampled_from((None, None, "", "blue")),
        client_id=st.sampled_from(("rdkafka", "")),
        client_host=st.just("/10.0.0.1"),
        rebalance_timeout_ms=st.sampled_from((-1, 0, 60_000, (1 << 31) - 1)),
        session_timeout_ms=st.sampled_from((6_000, 1_800_000)),
        metadata=_bytes,
        assignment=_bytes,
    ),
    max_size=3,
).map(tuple)
_generations = st.builds(
    Generation,
    protocol_type=st.sampled_from(("consumer", "connect", "")),
    generation=st.sampled_from((0, 1, 2, (1 << 31) - 1)),
    protocol=st.sampled_from((None, "range", "")),
    leader=st.sampled_from((None, "m-1")),
    members=_members,
)

steps: st.SearchStrategy[Step] = st.one_of(
    _commits,
    _commits,
    _commits,
    st.builds(Touch, group=_groups, time_ms=_times, who=_whos, topics=_named),
    st.builds(Tombstone, group=_groups, time_ms=_times, who=_whos, topics=st.one_of(_named, _everything)),
    st.builds(GroupTombstone, group=_groups, time_ms=_times, who=_whos),
    st.builds(Completed, group=_groups, time_ms=_times, who=_whos, generation=_generations),
)
