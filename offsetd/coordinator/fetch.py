"""What a fetch shows: the rules of OffsetFetch over the applied state, pure."""

from collections.abc import Callable, Iterable

from offsetd.table import Group, Offset
from protocol.errors import Code
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

#: Finds a group: the code that refuses it (none if its slot is ready), and the group if there is one.
Lookup = Callable[[str], tuple[Code, Group | None]]

_NOTHING = Offset(offset=-1, leader_epoch=-1, metadata="", time_ms=-1, expiry_ms=None)


def answer_fetch(request: OffsetFetchRequest, *, version: int, lookup: Lookup) -> OffsetFetchResponse:
    """Answer from memory; an unknown group or partition has offset -1 and no error, as in Kafka."""
    if version >= 8:
        groups = []
        for asked in request.groups:
            code, group = lookup(asked.group_id)
            topics = _topics(group, asked.topics, code)
            groups.append(OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=code))
        return OffsetFetchResponse(groups=tuple(groups))
    code, group = lookup(request.group_id)
    return OffsetFetchResponse(topics=_topics(group, request.topics, code), error_code=code)


def rows_asked(request: OffsetFetchRequest, *, version: int, lookup: Lookup) -> int:
    """Return how many rows the answer will have, to know beforehand whether it must be made in slices."""
    asked = (
        [(one.group_id, one.topics) for one in request.groups] if version >= 8 else [(request.group_id, request.topics)]
    )
    count = 0
    for group_id, topics in asked:
        if topics is None:
            group = lookup(group_id)[1]
            count += 0 if group is None else group.live
        else:
            count += sum(len(topic.partition_indexes) for topic in topics)
    return count


def _topics(
    group: Group | None, asked: Iterable[OffsetFetchRequestTopic] | None, code: Code
) -> tuple[OffsetFetchResponseTopic, ...]:
    if asked is None:
        if group is None or code is not Code.NONE:
            return ()
        return tuple(
            OffsetFetchResponseTopic(
                name=name, partitions=tuple(_row(partition, found, code) for partition, found in group.rows(name))
            )
            for name in group.names()
        )
    # The code stands on each partition as well as above them: aiokafka reads it only there.
    return tuple(
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                _row(
                    partition,
                    None if group is None or code is not Code.NONE else group.get(topic.name, partition),
                    code,
                )
                for partition in topic.partition_indexes
            ),
        )
        for topic in asked
    )


def _row(partition: int, found: Offset | None, code: Code) -> OffsetFetchResponsePartition:
    offset = found or _NOTHING
    return OffsetFetchResponsePartition(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=code,
    )
