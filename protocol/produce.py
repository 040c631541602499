"""Produce (key 0): records for partitions. They travel as opaque bytes here."""

from typing import NamedTuple

from protocol.schema import (
    array,
    int16,
    int32,
    int64,
    message,
    nested,
    nullable_bytes,
    nullable_string,
    string,
    struct,
    uuid,
)


@struct
class ProduceRequestPartition(NamedTuple):
    """The records of one partition."""

    # Kafka's name for it; nobody searches a message as a tuple.
    index: int = int32()  # type: ignore[assignment]
    records: bytes | None = nullable_bytes()


@struct
class ProduceRequestTopic(NamedTuple):
    """The partitions of one topic, by name or from version 13 on by id."""

    name: str = string("0-12")
    topic_id: bytes = uuid("13+")
    partition_data: tuple[ProduceRequestPartition, ...] = array(ProduceRequestPartition)


@message(api_key=0, versions="0-13", flexible="9+")
class ProduceRequest(NamedTuple):
    """Records to append, and how many copies must be made before the answer."""

    transactional_id: str | None = nullable_string("3+", nullable="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: tuple[ProduceRequestTopic, ...] = array(ProduceRequestTopic)


@struct
class ProduceResponseRecordError(NamedTuple):
    """Why one record of a batch was refused."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = nullable_string("8+", nullable="8+", default=None)


@struct
class ProduceResponseLeaderIdAndEpoch(NamedTuple):
    """Who leads now."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


@struct
class ProduceResponsePartition(NamedTuple):
    """Where the records of one partition went."""

    index: int = int32()  # type: ignore[assignment]
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    record_errors: tuple[ProduceResponseRecordError, ...] = array(ProduceResponseRecordError, "8+")
    error_message: str | None = nullable_string("8+", nullable="8+", default=None)
    current_leader: ProduceResponseLeaderIdAndEpoch = nested(ProduceResponseLeaderIdAndEpoch, "10+", tag=0)


@struct
class ProduceResponseTopic(NamedTuple):
    """The partitions of one topic."""

    name: str = string("0-12")
    topic_id: bytes = uuid("13+")
    partition_responses: tuple[ProduceResponsePartition, ...] = array(ProduceResponsePartition)


@struct
class ProduceResponseNodeEndpoint(NamedTuple):
    """Where a leader named above listens."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = nullable_string("10+", nullable="10+", default=None)


@message(api_key=0, versions="0-13", flexible="9+")
class ProduceResponse(NamedTuple):
    """One answer per partition."""

    responses: tuple[ProduceResponseTopic, ...] = array(ProduceResponseTopic)
    throttle_time_ms: int = int32("1+")
    node_endpoints: tuple[ProduceResponseNodeEndpoint, ...] = array(ProduceResponseNodeEndpoint, "10+", tag=0)
