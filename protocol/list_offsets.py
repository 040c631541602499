"""ListOffsets (key 2): where a partition's log begins and ends."""

from typing import NamedTuple

from protocol.schema import array, int8, int16, int32, int64, message, string, struct


@struct
class ListOffsetsRequestPartition(NamedTuple):
    """A partition, and a time or one of the special negative ones."""

    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1)
    timestamp: int = int64()
    max_num_offsets: int = int32("0", default=1)


@struct
class ListOffsetsRequestTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string()
    partitions: tuple[ListOffsetsRequestPartition, ...] = array(ListOffsetsRequestPartition)


@message(api_key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest(NamedTuple):
    """Asks for offsets by time; consumers send -1 as replica id."""

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: tuple[ListOffsetsRequestTopic, ...] = array(ListOffsetsRequestTopic)
    timeout_ms: int = int32("10+")


@struct
class ListOffsetsResponsePartition(NamedTuple):
    """The found offset; version 0 answered with a list of them."""

    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: tuple[int, ...] = array(int64(), "0")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@struct
class ListOffsetsResponseTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string()
    partitions: tuple[ListOffsetsResponsePartition, ...] = array(ListOffsetsResponsePartition)


@message(api_key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse(NamedTuple):
    """One answer per partition."""

    throttle_time_ms: int = int32("2+")
    topics: tuple[ListOffsetsResponseTopic, ...] = array(ListOffsetsResponseTopic)
