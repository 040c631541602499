"""Entries and checkpoint rows as plain values for JSON, and which of them somebody asked for. Changes nothing.

Reading a journal beside a running daemon is safe: batches are only ever appended, and a segment that compaction takes
away meanwhile is looked for in history.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from struct import Struct
from typing import Any, Final, TypeAlias

from offsetd.group import Group
from offsetd.journal.batch import Batch
from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.segment import walk
from offsetd.record import Entry, Generation, Kind, Reason, Who, decode_entries, read_generation, record_count
from offsetd.rows import restore
from offsetd.table import SlotTable, TopicIndex

Line: TypeAlias = dict[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_REASONS: Final = {int(reason): reason.name.lower() for reason in Reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody asked for; None asks for all."""

    group: str | None = None
    topic: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def at(self, time_ms: int) -> bool:
        """Whether a time is asked for: from `since` on, and before `until`."""
        return (self.since_ms is None or time_ms >= self.since_ms) and (
            self.until_ms is None or time_ms < self.until_ms
        )

    def named(self, group: str) -> bool:
        """Whether a group is asked for."""
        return self.group is None or group == self.group


def iso(time_ms: int) -> str | None:
    """Return a time as people write it, None for one that no calendar has."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dump_segment(path: Path, wanted: Wanted) -> Iterator[Line]:
    """Yield the entries of a segment, each with its place and sequence.

    Raises:
        Damage: at the first place where the next batch cannot be read.
        NewerFormat, UnknownEntry: a newer offsetd wrote it.
        OSError: it cannot be read.
    """
    # Held open, because compaction may give it another name while it is read.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        header, batches = walk(lambda position, size: os.pread(descriptor, size, position), path=path)
        sequences = list(header.next_sequences)
        for batch in batches:
            yield from _dump_batch(path, batch, sequences, wanted)
    finally:
        os.close(descriptor)


def _dump_batch(path: Path, batch: Batch, sequences: list[int], wanted: Wanted) -> Iterator[Line]:
    for entry in decode_entries(batch.body):
        kind, slot, count = entry[0], entry[2], record_count(entry)
        sequence = 0 if kind == Kind.OPENING else sequences[slot]
        if kind != Kind.OPENING:
            sequences[slot] += count
        facts = _entry_facts(entry, sequence, count, wanted)
        if facts is not None:
            time_ms = entry[4]
            place = {"batch": batch.number, "epoch": batch.epoch, "segment": path.name, "position": batch.position}
            yield {"time": iso(time_ms), "time_ms": time_ms, **place, "kind": Kind(kind).name.lower(), **facts}


def _entry_facts(entry: Entry, sequence: int, count: int, wanted: Wanted) -> Line | None:
    """Return what an entry says beside its place, None if it was not asked for."""
    kind = entry[0]
    if not wanted.at(entry[4]):
        return None
    if kind == Kind.OPENING:
        asked = wanted.group is None and wanted.topic is None
        return {"opened_epoch": entry[3], "release": entry[5]} if asked else None
    _, _, slot, group, time_ms, who, *rest = entry
    if not wanted.named(group):
        return None
    facts: Line = {"slot": slot, "sequence": sequence, "records": count, "group": group, **_who(who)}
    if kind in (Kind.TOMBSTONE, Kind.GROUP_TOMBSTONE):
        number = rest.pop(0)
        facts["reason"] = _REASONS.get(number, number)
    if kind == Kind.GROUP_TOMBSTONE:
        return facts  # it takes every topic with it, so it answers a question about any of them
    if kind == Kind.GROUP:
        return {**facts, **_generation(read_generation(rest[0]))} if wanted.topic is None else None
    topics = []
    for topic in rest[0]:
        size = len(topic[1]) // 4
        if wanted.topic in (None, topic[0]):
            rows = _commit_rows(topic, time_ms) if kind == Kind.COMMIT else _plain_rows(topic)
            numbered = [{"partition": row.pop("partition"), "sequence": sequence + at, **row} for at, row in rows]
            topics.append({"topic": topic[0], "partitions": numbered})
        sequence += size
    return {**facts, "topics": topics} if topics or wanted.topic is None else None


def _commit_rows(topic: Sequence[Any], time_ms: int) -> Iterator[tuple[int, Line]]:
    _, partitions, offsets, epochs, times, expiries, metadata = topic
    size = len(partitions) // 4
    columns = zip(
        _unpack("i", partitions),
        _unpack("q", offsets),
        [-1] * size if epochs is None else _unpack("i", epochs),
        [time_ms] * size if times is None else _unpack("q", times),
        [None] * size if expiries is None else _unpack("q", expiries),
        strict=True,
    )
    texts = dict(metadata or ())
    for at, (partition, offset, epoch, moment, expiry) in enumerate(columns):
        yield at, _row(partition, offset, epoch, texts.get(at, ""), moment, expiry)


def _plain_rows(topic: Sequence[Any]) -> Iterator[tuple[int, Line]]:
    for at, partition in enumerate(_unpack("i", topic[1])):
        yield at, {"partition": partition}


def dump_checkpoint(checkpoint: Checkpoint, slots: int, wanted: Wanted) -> Iterator[Line]:
    """Yield the live rows of a checkpoint, a line for each group.

    Raises:
        CheckpointRefused: a block of it is damaged.
    """
    for slot in range(slots):
        table = SlotTable(slot, TopicIndex())
        for group_id, topic, value in checkpoint.rows(slot):
            # A group's rows are neighbours, so that one group at a time is held.
            if group_id not in table.groups:
                yield from _group_lines(table, wanted)
                table = SlotTable(slot, TopicIndex())
            restore(table, group_id, topic, value)
        yield from _group_lines(table, wanted)


def _group_lines(table: SlotTable, wanted: Wanted) -> Iterator[Line]:
    for group_id, group in table.groups.items():
        if not wanted.named(group_id):
            continue
        topics = _live_topics(group, wanted)
        members: Line = {}
        if group.generation is not None and wanted.topic is None and wanted.at(group.generation[0]):
            time_ms, generation = group.generation
            members = {"time": iso(time_ms), "time_ms": time_ms, **_generation(generation)}
        if topics or members:
            facts: Line = {"kind": "rows", "slot": table.slot, "group": group_id, **_who(group.who)}
            yield {**facts, **members, "topics": topics}


def _live_topics(group: Group, wanted: Wanted) -> list[Line]:
    topics = []
    for name in sorted(group.names()):
        if wanted.topic not in (None, name):
            continue
        rows = [
            _row(partition, row.offset, row.leader_epoch, row.metadata, row.time_ms, row.expiry_ms)
            for partition, row in group.rows(name)
            if wanted.at(row.time_ms)
        ]
        if rows:
            topics.append({"topic": name, "partitions": rows})
    return topics


def _row(partition: int, offset: int, epoch: int, metadata: str, time_ms: int, expiry_ms: int | None) -> Line:
    return {
        "partition": partition,
        "offset": offset,
        "leader_epoch": None if epoch < 0 else epoch,
        "metadata": metadata,
        "time": iso(time_ms),
        "time_ms": time_ms,
        "expiry_ms": expiry_ms,
    }


def _generation(generation: Generation) -> Line:
    """Return a generation for people: what members say to one another is theirs, and shown by its size."""
    members = [
        {**row._asdict(), "metadata": f"{len(row.metadata)} bytes", "assignment": f"{len(row.assignment)} bytes"}
        for row in generation.members
    ]
    return {**generation._asdict(), "members": members}


def _who(who: Sequence[str] | None) -> Line:
    return {"who": None if who is None else Who(*who)._asdict()}


def _unpack(form: str, column: bytes) -> tuple[int, ...]:
    size = len(column) // (4 if form == "i" else 8)
    return Struct(f">{size}{form}").unpack(column)
