"""Requests in few words, so that a scenario shows only what it is about."""

from collections.abc import Callable, Sequence
from typing import Final

from protocol.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic
from protocol.list_offsets import ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic
from protocol.metadata import MetadataRequest, MetadataRequestTopic
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from tests.conformance.scenario import Step, id_of

#: From here on OffsetFetch asks for many groups.
MANY_GROUPS: Final = 8
#: From here on Fetch names topics by their ids.
FETCH_BY_ID: Final = 13
#: The version that shows all that is kept of an offset, by which a scenario looks at what it has done.
LOOK: Final = 9

Rows = tuple[str, Sequence[OffsetCommitRequestPartition]]


def row(partition: int, offset: int, *, epoch: int = -1, metadata: str | None = "") -> OffsetCommitRequestPartition:
    """One partition of a commit."""
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        committed_metadata=metadata,
    )


def commit(
    group: str,
    *topics: Rows,
    generation: int = -1,
    member: str = "",
    instance: str | None = None,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    """Make a commit of topics, each a name and its rows; of a simple consumer unless said otherwise."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(rows)) for name, rows in topics),
    )


def fetch(
    group: str,
    *topics: tuple[str, Sequence[int]],
    stable: bool = False,
    member: str | None = None,
    epoch: int = -1,
) -> Callable[[int], OffsetFetchRequest]:
    """Ask for the offsets of named partitions."""
    return _fetch(group, _asked(topics), stable=stable, member=member, epoch=epoch)


def fetch_all(group: str, *, stable: bool = False) -> Callable[[int], OffsetFetchRequest]:
    """Ask for every offset of a group."""
    return _fetch(group, None, stable=stable, member=None, epoch=-1)


def fetch_many(*groups: tuple[str, Sequence[tuple[str, Sequence[int]]] | None]) -> OffsetFetchRequest:
    """Ask for several groups at once, each with its topics or None for all of them."""
    return OffsetFetchRequest(
        groups=tuple(
            OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else _asked(topics))
            for group, topics in groups
        )
    )


def look(group: str, name: str = "what is kept") -> Step:
    """Show all that a group holds, whatever the scenario's own version."""
    return Step(name, fetch_all(group), at=LOOK, unordered=True)


def _asked(topics: Sequence[tuple[str, Sequence[int]]]) -> tuple[OffsetFetchRequestTopic, ...]:
    return tuple(OffsetFetchRequestTopic(name=name, partition_indexes=tuple(rows)) for name, rows in topics)


def _fetch(
    group: str, topics: tuple[OffsetFetchRequestTopic, ...] | None, *, stable: bool, member: str | None, epoch: int
) -> Callable[[int], OffsetFetchRequest]:
    def ask(version: int) -> OffsetFetchRequest:
        if version < MANY_GROUPS:
            return OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)
        asked = OffsetFetchRequestGroup(group_id=group, member_id=member, member_epoch=epoch, topics=topics)
        return OffsetFetchRequest(groups=(asked,), require_stable=stable)

    return ask


def metadata(*names: str | None, create: bool = False, operations: bool = False) -> MetadataRequest:
    """Ask for topics by name; before version 4 nobody can say that none shall be made."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=name) for name in names),
        allow_auto_topic_creation=create,
        include_cluster_authorized_operations=operations,
        include_topic_authorized_operations=operations,
    )


def ends(
    *topics: tuple[str, Sequence[ListOffsetsRequestPartition]], isolation: int = 0, replica: int = -1
) -> ListOffsetsRequest:
    """Ask for offsets by time."""
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=tuple(ListOffsetsRequestTopic(name=name, partitions=tuple(rows)) for name, rows in topics),
    )


def at(partition: int, timestamp: int, *, epoch: int = -1) -> ListOffsetsRequestPartition:
    """One partition of ListOffsets."""
    return ListOffsetsRequestPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)


def records(
    topic: str, *partitions: FetchRequestPartition, session: int = 0, session_epoch: int = -1, isolation: int = 0
) -> Callable[[int], FetchRequest]:
    """Ask for records, without waiting for any."""

    def ask(version: int) -> FetchRequest:
        named = (
            FetchRequestTopic(topic=topic, partitions=partitions)
            if version < FETCH_BY_ID
            else FetchRequestTopic(topic_id=id_of(topic), partitions=partitions)
        )
        return FetchRequest(isolation_level=isolation, session_id=session, session_epoch=session_epoch, topics=(named,))

    return ask


def since(partition: int, offset: int, *, epoch: int = -1) -> FetchRequestPartition:
    """One partition of Fetch."""
    return FetchRequestPartition(
        partition=partition, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1_048_576
    )
