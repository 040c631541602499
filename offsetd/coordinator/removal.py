"""What an operator may remove: single offsets of a group, and whole groups. Pure; whether it is wise is not asked."""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from offsetd.coordinator.membership import Membership, State
from offsetd.coordinator.subscription import CONSUMER
from offsetd.coordinator.topics import Topics
from offsetd.group import Group
from protocol.errors import Code
from protocol.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


class Removal(NamedTuple):
    """The reply, and the partitions whose offsets go, packed by topic."""

    reply: OffsetDeleteResponse
    topics: tuple[tuple[str, bytes], ...] = ()


def refuse_group_removal(*, exists: bool, membership: Membership | None) -> Code:
    """Tell why a whole group may not be removed, if it may not."""
    if not exists:
        return Code.GROUP_ID_NOT_FOUND
    if membership is not None and membership.state is not State.EMPTY:
        return Code.NON_EMPTY_GROUP
    return Code.NONE


def decide_offset_delete(
    request: OffsetDeleteRequest,
    *,
    exists: bool,
    membership: Membership | None,
    held: Callable[[str, int], bool],
    pending: bool,
    topics: Topics,
) -> Removal:
    """Decide which offsets go: those that are held, and while something is pending those that may come to be."""
    code = _refuse_offset_delete(request, exists=exists, membership=membership)
    if code is not Code.NONE:
        return Removal(OffsetDeleteResponse(error_code=code))
    unknown: dict[str, list[OffsetDeleteResponsePartition]] = {}
    known: list[tuple[str, list[OffsetDeleteResponsePartition]]] = []
    removed: dict[str, list[int]] = {}
    for topic in request.topics:
        read = membership is not None and membership.subscribes(topic.name)
        placed: list[OffsetDeleteResponsePartition] = []
        for row in topic.partitions:
            partition = row.partition_index
            answers = placed
            stored = held(topic.name, partition)
            # A topic shows only so many partitions, but an offset may be of any.
            if not stored and not topics.has(topic.name, partition):
                refusal = Code.UNKNOWN_TOPIC_OR_PARTITION
                answers = unknown.setdefault(topic.name, [])
            elif read:
                refusal = Code.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                refusal = Code.NONE
                if stored or pending:
                    removed.setdefault(topic.name, []).append(partition)
            answers.append(OffsetDeleteResponsePartition(partition_index=partition, error_code=refusal))
        if placed:
            known.append((topic.name, placed))
    if unknown:
        # Kafka lists what it refused for the topic's sake first, and adds the rest to the topics that are there by
        # then; where it refused nothing so, a topic that was named twice is answered twice.
        for name, placed in known:
            unknown.setdefault(name, []).extend(placed)
        known = list(unknown.items())
    results = tuple(OffsetDeleteResponseTopic(name=name, partitions=tuple(rows)) for name, rows in known)
    packed = tuple((name, Struct(f">{len(some)}i").pack(*some)) for name, some in removed.items())
    return Removal(OffsetDeleteResponse(topics=results), packed)


def _refuse_offset_delete(request: OffsetDeleteRequest, *, exists: bool, membership: Membership | None) -> Code:
    if not request.group_id:
        return Code.INVALID_GROUP_ID
    if not exists:
        return Code.GROUP_ID_NOT_FOUND
    if membership is not None and membership.state is not State.EMPTY and membership.protocol_type != CONSUMER:
        # What members of another kind read is not known here, so nothing of theirs is touched.
        return Code.NON_EMPTY_GROUP
    return Code.NONE


def has_offset(group: Group | None) -> Callable[[str, int], bool]:
    """Return the question whether a group, as it is applied, has an offset of a partition."""
    if group is None:
        return lambda _topic, _partition: False
    return lambda topic, partition: group.get(topic, partition) is not None
