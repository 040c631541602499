"""OffsetCommit (key 8): a group's new positions."""

from typing import NamedTuple

from protocol.schema import array, int16, int32, int64, message, nullable_string, string, struct


@struct
class OffsetCommitRequestPartition(NamedTuple):
    """A partition's new offset."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1)
    # Only version 1 let a client say when the commit was made.
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = nullable_string()


@struct
class OffsetCommitRequestTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string()
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@message(api_key=8, versions="0-9", flexible="8+")
class OffsetCommitRequest(NamedTuple):
    """The offsets of one group, and from version 1 on the member that commits them."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1)
    member_id: str = string("1+")
    group_instance_id: str | None = nullable_string("7+", nullable="7+", default=None)
    # Brokers stopped honouring a retention per request in version 5.
    retention_time_ms: int = int64("2-4", default=-1)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition(NamedTuple):
    """What became of one partition's offset."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string()
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@message(api_key=8, versions="0-9", flexible="8+")
class OffsetCommitResponse(NamedTuple):
    """One code per partition."""

    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)
