"""What a fetch shows: the rules of OffsetFetch over the applied state, pure."""

from collections.abc import Callable, Iterable, Iterator

from offsetd.group import Group, Offset
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
    answers = []
    for group_id, asked in groups_asked(request, version=version):
        code, group = lookup(group_id)
        rows = each_topic(group, asked, code)
        topics = tuple(OffsetFetchResponseTopic(name=name, partitions=tuple(partitions)) for name, partitions in rows)
        answers.append(OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=code))
    if version >= 8:
        return OffsetFetchResponse(groups=tuple(answers))
    (only,) = answers
    return OffsetFetchResponse(topics=only.topics, error_code=only.error_code)


def groups_asked(
    request: OffsetFetchRequest, *, version: int
) -> list[tuple[str, tuple[OffsetFetchRequestTopic, ...] | None]]:
    """Return each group asked for, with its topics, or None for all."""
    if version >= 8:
        return [(one.group_id, one.topics) for one in request.groups]
    return [(request.group_id, request.topics)]


def is_longer(request: OffsetFetchRequest, rows_max: int, *, version: int, lookup: Lookup) -> bool:
    """Tell beforehand whether the answer will have more rows than that, and must be made in slices."""
    count = 0
    for group_id, topics in groups_asked(request, version=version):
        count += 1 + rows_of(lookup(group_id)[1] if topics is None else None, topics)
        if count > rows_max:
            return True
    return False


def rows_of(group: Group | None, asked: tuple[OffsetFetchRequestTopic, ...] | None) -> int:
    """Return how many rows are answered for one group."""
    if asked is None:
        return 0 if group is None else group.live
    return sum(1 + len(topic.partition_indexes) for topic in asked)


def each_topic(
    group: Group | None, asked: Iterable[OffsetFetchRequestTopic] | None, code: Code
) -> Iterator[tuple[str, Iterator[OffsetFetchResponsePartition]]]:
    """Yield what is answered for each topic, row by row; the code stands on each row too: aiokafka reads only there."""
    shown = group if code is Code.NONE else None
    if asked is None:
        if shown is not None:
            for name in shown.names():
                yield name, _all_rows(shown, name)
    else:
        for topic in asked:
            yield topic.name, _asked_rows(shown, topic, code)


def _all_rows(group: Group, name: str) -> Iterator[OffsetFetchResponsePartition]:
    for partition, found in group.rows(name):
        yield _row(partition, found, Code.NONE)


def _asked_rows(
    group: Group | None, topic: OffsetFetchRequestTopic, code: Code
) -> Iterator[OffsetFetchResponsePartition]:
    for partition in topic.partition_indexes:
        yield _row(partition, None if group is None else group.get(topic.name, partition), code)


def _row(partition: int, found: Offset | None, code: Code) -> OffsetFetchResponsePartition:
    offset = found or _NOTHING
    return OffsetFetchResponsePartition(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=code,
    )
