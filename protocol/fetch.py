"""Fetch (key 1): records of partitions. They travel as opaque bytes here."""

from typing import Final, NamedTuple

from protocol.schema import (
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    nullable_array,
    nullable_bytes,
    nullable_string,
    string,
    struct,
    uuid,
)

NO_BYTES_LIMIT: Final = 0x7FFFFFFF


@struct
class FetchRequestReplicaState(NamedTuple):
    """The asking broker, where a broker asks."""

    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


@struct
class FetchRequestPartition(NamedTuple):
    """From where on to read a partition."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    partition_max_bytes: int = int32()


@struct
class FetchRequestTopic(NamedTuple):
    """The partitions of one topic, by name or from version 13 on by id."""

    topic: str = string("0-12")
    topic_id: bytes = uuid("13+")
    partitions: tuple[FetchRequestPartition, ...] = array(FetchRequestPartition)


@struct
class FetchRequestForgottenTopic(NamedTuple):
    """Partitions to leave out of the session from now on."""

    topic: str = string("7-12")
    topic_id: bytes = uuid("13+")
    partitions: tuple[int, ...] = array(int32(), "7+")


@message(api_key=1, versions="4-16", flexible="12+")
class FetchRequest(NamedTuple):
    """Asks for records, and says how long to wait for them."""

    cluster_id: str | None = nullable_string("12+", nullable="12+", default=None, tag=0)
    replica_id: int = int32("0-14", default=-1)
    replica_state: FetchRequestReplicaState = nested(FetchRequestReplicaState, "15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=NO_BYTES_LIMIT)
    isolation_level: int = int8("4+")
    session_id: int = int32("7+")
    session_epoch: int = int32("7+", default=-1)
    topics: tuple[FetchRequestTopic, ...] = array(FetchRequestTopic)
    forgotten_topics_data: tuple[FetchRequestForgottenTopic, ...] = array(FetchRequestForgottenTopic, "7+")
    rack_id: str = string("11+")


@struct
class FetchResponseEpochEndOffset(NamedTuple):
    """Where the reader's copy of the log parts from the leader's."""

    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


@struct
class FetchResponseLeaderIdAndEpoch(NamedTuple):
    """Who leads now."""

    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


@struct
class FetchResponseSnapshotId(NamedTuple):
    """The snapshot to read in place of the log."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@struct
class FetchResponseAbortedTransaction(NamedTuple):
    """A transaction whose records do not count."""

    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


@struct
class FetchResponsePartition(NamedTuple):
    """The records of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64("4+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    diverging_epoch: FetchResponseEpochEndOffset = nested(FetchResponseEpochEndOffset, "12+", tag=0)
    current_leader: FetchResponseLeaderIdAndEpoch = nested(FetchResponseLeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: FetchResponseSnapshotId = nested(FetchResponseSnapshotId, "12+", tag=2)
    aborted_transactions: tuple[FetchResponseAbortedTransaction, ...] | None = nullable_array(
        FetchResponseAbortedTransaction, "4+", nullable="4+"
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: bytes | None = nullable_bytes()


@struct
class FetchResponseTopic(NamedTuple):
    """The partitions of one topic."""

    topic: str = string("0-12")
    topic_id: bytes = uuid("13+")
    partitions: tuple[FetchResponsePartition, ...] = array(FetchResponsePartition)


@struct
class FetchResponseNodeEndpoint(NamedTuple):
    """Where a leader named above listens."""

    node_id: int = int32("16+")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = nullable_string("16+", nullable="16+", default=None)


@message(api_key=1, versions="4-16", flexible="12+")
class FetchResponse(NamedTuple):
    """Records, and the session they belong to."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16("7+")
    session_id: int = int32("7+")
    responses: tuple[FetchResponseTopic, ...] = array(FetchResponseTopic)
    node_endpoints: tuple[FetchResponseNodeEndpoint, ...] = array(FetchResponseNodeEndpoint, "16+", tag=0)
