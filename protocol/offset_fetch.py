"""OffsetFetch (key 9): a group's committed positions. One group to version 7, many from version 8 on."""

from typing import NamedTuple

from protocol.schema import (
    array,
    boolean,
    int16,
    int32,
    int64,
    message,
    nullable_array,
    nullable_string,
    string,
    struct,
)


@struct
class OffsetFetchRequestTopic(NamedTuple):
    """The asked partitions of one topic."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(int32())


@struct
class OffsetFetchRequestGroup(NamedTuple):
    """One group; its topics are null when all are asked for."""

    group_id: str = string("8+")
    member_id: str | None = nullable_string("9+", nullable="9+", default=None)
    member_epoch: int = int32("9+", default=-1)
    topics: tuple[OffsetFetchRequestTopic, ...] | None = nullable_array(OffsetFetchRequestTopic, "8+", nullable="8+")


@message(api_key=9, versions="0-9", flexible="6+")
class OffsetFetchRequest(NamedTuple):
    """Asks for offsets; from version 2 on null topics ask for all of the group."""

    group_id: str = string("0-7")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = nullable_array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@struct
class OffsetFetchResponsePartition(NamedTuple):
    """A committed offset; -1 with error 0 means that there is none."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("5+", default=-1)
    metadata: str | None = nullable_string()
    error_code: int = int16()


@struct
class OffsetFetchResponseTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string()
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(OffsetFetchResponsePartition)


@struct
class OffsetFetchResponseGroup(NamedTuple):
    """The offsets of one group, or why there are none."""

    group_id: str = string("8+")
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "8+")
    error_code: int = int16("8+")


@message(api_key=9, versions="0-9", flexible="6+")
class OffsetFetchResponse(NamedTuple):
    """The committed offsets."""

    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7")
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, "8+")
