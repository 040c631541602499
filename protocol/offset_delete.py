"""OffsetDelete (key 47): single offsets of a group."""

from typing import NamedTuple

from protocol.schema import array, int16, int32, message, string, struct


@struct
class OffsetDeleteRequestPartition(NamedTuple):
    """A partition whose offset is to go."""

    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string()
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@message(api_key=47, versions="0", flexible="")
class OffsetDeleteRequest(NamedTuple):
    """The offsets to delete, of one group."""

    group_id: str = string()
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@struct
class OffsetDeleteResponsePartition(NamedTuple):
    """What became of one partition's offset."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string()
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@message(api_key=47, versions="0", flexible="")
class OffsetDeleteResponse(NamedTuple):
    """A code for the group, which wins, and one per partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)
