"""What a commit writes: the rules of OffsetCommit, pure. It changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from struct import Struct

from offsetd.coordinator.limits import GROUP_ID_BYTES_MAX, Limits
from offsetd.coordinator.membership import Membership
from offsetd.coordinator.slot import utf16_units
from offsetd.coordinator.topics import Topics, is_legal
from offsetd.group import ABSENT_MS, ROW_BYTES, Group
from offsetd.record import TopicOffsets
from offsetd.table import run_start
from protocol.errors import Code
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

#: A repeated commit writes nothing until the stored commit time is this old; then one `touch` keeps it from expiring.
TOUCH_AFTER_MS = 60_000


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write (nothing if every partition was refused), and the reply for when it is settled."""

    topics: tuple[TopicOffsets, ...]
    reply: OffsetCommitResponse
    refused: bool


def refuse_commit(request: OffsetCommitRequest, code: Code) -> OffsetCommitResponse:
    """Answer every partition with one code."""
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
            if topic.partitions
        )
    )


def decide_commit(
    request: OffsetCommitRequest,
    *,
    version: int,
    group: Group | None,
    membership: Membership | None = None,
    topics: Topics,
    limits: Limits,
    now_ms: int,
) -> Decision:
    """Turn one commit into columns to append; leave everything as it is."""
    refusal = _refuse_group(request, version, group, membership)
    misplaced: dict[str, list[OffsetCommitResponsePartition]] = {}
    answers: list[tuple[str, list[OffsetCommitResponsePartition]]] = []
    accepted: list[TopicOffsets] = []
    refused = False
    for topic in request.topics:
        kept: list[OffsetCommitRequestPartition] = []
        placed: list[OffsetCommitResponsePartition] = []
        unknown = _refuse_topic(topic.name, topics, limits)
        if unknown is not Code.NONE:
            # Kafka lists such a topic also when no partition of it was named.
            misplaced.setdefault(topic.name, [])
        for partition in topic.partitions:
            code = unknown
            if code is Code.NONE:
                code = _refuse_partition(topic.name, partition.partition_index, topics, limits)
            rows = placed if code is Code.NONE else misplaced.setdefault(topic.name, [])
            if code is Code.NONE:
                code = refusal if refusal is not Code.NONE else _refuse_metadata(partition, limits)
            if code is Code.NONE:
                kept.append(partition)
            else:
                refused = True
            rows.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code))
        if placed:
            answers.append((topic.name, placed))
        if kept:
            accepted.append(_columns(topic, kept, request.retention_time_ms, now_ms))
    if misplaced:
        # Kafka lists what it refused for the topic's sake first, and adds the rest to the topics that are there by
        # then; where it refused nothing so, a topic that was named twice is answered twice.
        for name, placed in answers:
            misplaced.setdefault(name, []).extend(placed)
        answers = list(misplaced.items())
    reply = OffsetCommitResponse(
        topics=tuple(OffsetCommitResponseTopic(name=name, partitions=tuple(partitions)) for name, partitions in answers)
    )
    return Decision(tuple(accepted), reply, refused)


def _refuse_group(
    request: OffsetCommitRequest, version: int, group: Group | None, membership: Membership | None
) -> Code:
    if len(request.group_id.encode()) > GROUP_ID_BYTES_MAX:
        return Code.INVALID_GROUP_ID
    if membership is not None:
        return membership.refuse_commit(
            request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
        )
    if request.generation_id_or_member_epoch < 0:
        return Code.NONE
    if group is not None:
        return Code.UNKNOWN_MEMBER_ID
    return Code.GROUP_ID_NOT_FOUND if version >= 9 else Code.ILLEGAL_GENERATION


def _refuse_topic(name: str, topics: Topics, limits: Limits) -> Code:
    if limits.strict:
        return Code.NONE if topics.exists(name) else Code.UNKNOWN_TOPIC_OR_PARTITION
    # Code 3 would make several clients retry for ever; 17 is final, and no Kafka could hold such a topic.
    return Code.NONE if is_legal(name) else Code.INVALID_TOPIC_EXCEPTION


def _refuse_partition(name: str, partition: int, topics: Topics, limits: Limits) -> Code:
    exists = topics.has(name, partition) if limits.strict else partition >= 0
    return Code.NONE if exists else Code.UNKNOWN_TOPIC_OR_PARTITION


def _refuse_metadata(partition: OffsetCommitRequestPartition, limits: Limits) -> Code:
    text = partition.committed_metadata
    if text and utf16_units(text) > limits.metadata_units_max:
        return Code.OFFSET_METADATA_TOO_LARGE
    return Code.NONE


def _columns(
    topic: OffsetCommitRequestTopic, kept: Sequence[OffsetCommitRequestPartition], retention_ms: int, now_ms: int
) -> TopicOffsets:
    count = len(kept)
    wide = Struct(f">{count}q")
    narrow = Struct(f">{count}i")
    epochs = [partition.committed_leader_epoch for partition in kept]
    moments = [partition.commit_timestamp for partition in kept]
    texts = tuple(
        (place, partition.committed_metadata)
        for place, partition in enumerate(kept)
        # null is stored and returned as the empty text, as Kafka does.
        if partition.committed_metadata
    )
    own_times = any(moment != -1 for moment in moments)
    return TopicOffsets(
        name=topic.name,
        partitions=narrow.pack(*(partition.partition_index for partition in kept)),
        offsets=wide.pack(*(partition.committed_offset for partition in kept)),
        epochs=narrow.pack(*epochs) if any(epoch != -1 for epoch in epochs) else None,
        times=wide.pack(*(now_ms if moment == -1 else max(moment, ABSENT_MS + 1) for moment in moments))
        if own_times
        else None,
        # A retention beyond the end of time is for ever; the sum must not wrap into the past.
        expiries=wide.pack(*([min(now_ms + retention_ms, (1 << 63) - 1)] * count)) if retention_ms != -1 else None,
        metadata=texts or None,
    )


def unchanged_since(group: Group, topics: Sequence[TopicOffsets]) -> int | None:
    """Return the oldest stored commit time if the commit would change nothing but times, else None."""
    oldest: int | None = None
    for name, partitions, offsets, epochs, times, expiries, metadata in topics:
        if times is not None or expiries is not None:
            return None
        cells = group.topics.get(name)
        start = run_start(partitions)
        end = start + len(partitions) // 4
        if cells is None or start < 0 or end > len(cells) // ROW_BYTES:
            moment = _rows_unchanged_since(group, name, partitions, offsets, epochs, metadata)
            if moment is None:
                return None
            oldest = moment if oldest is None else min(oldest, moment)
            continue
        size = len(cells) // ROW_BYTES
        if cells[8 * start : 8 * end] != offsets:
            return None
        if cells[16 * size + 4 * start : 16 * size + 4 * end] != (epochs or b"\xff" * 4 * (end - start)):
            return None
        if group.expiries is not None and any(start <= place < end for place in group.expiries.get(name, ())):
            return None
        if group.metadata is not None or metadata is not None:
            stored = {} if group.metadata is None else group.metadata.get(name, {})
            held = {place - start: text for place, text in stored.items() if start <= place < end}
            if held != dict(metadata or ()):
                return None
        moment = min(Struct(f">{end - start}q").unpack_from(cells, 8 * (size + start)))
        oldest = moment if oldest is None else min(oldest, moment)
    return None if oldest == ABSENT_MS else oldest


def _rows_unchanged_since(
    group: Group,
    name: str,
    partitions: bytes,
    offsets: bytes,
    epochs: bytes | None,
    metadata: tuple[tuple[int, str], ...] | None,
) -> int | None:
    """Do the same for partitions that are not neighbours, row by row; most differ in their first."""
    count = len(partitions) // 4
    leaders = repeat(-1) if epochs is None else Struct(f">{count}i").unpack(epochs)
    texts = dict(metadata or ())
    oldest: int | None = None
    rows = zip(Struct(f">{count}i").unpack(partitions), Struct(f">{count}q").unpack(offsets), leaders, strict=False)
    for place, (partition, offset, leader) in enumerate(rows):
        stored = group.get(name, partition)
        if stored is None or stored.expiry_ms is not None:
            return None
        if (stored.offset, stored.leader_epoch, stored.metadata) != (offset, leader, texts.get(place, "")):
            return None
        oldest = stored.time_ms if oldest is None else min(oldest, stored.time_ms)
    return oldest
