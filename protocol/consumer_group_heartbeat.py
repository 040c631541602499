"""ConsumerGroupHeartbeat (key 68): the one request of a member of the newer group protocol (KIP-848)."""

from typing import NamedTuple

from protocol.schema import (
    array,
    int16,
    int32,
    message,
    nullable_array,
    nullable_nested,
    nullable_string,
    string,
    struct,
    uuid,
)


@struct
class ConsumerGroupHeartbeatRequestTopic(NamedTuple):
    """Partitions of one topic that the member owns."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array(int32())


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(NamedTuple):
    """A sign of life, and what has changed since the last one: null stands for what has not."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = nullable_string(default=None)
    rack_id: str | None = nullable_string(default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: tuple[str, ...] | None = nullable_array(string())
    subscribed_topic_regex: str | None = nullable_string("1+", nullable="1+", default=None)
    server_assignor: str | None = nullable_string(default=None)
    topic_partitions: tuple[ConsumerGroupHeartbeatRequestTopic, ...] | None = nullable_array(
        ConsumerGroupHeartbeatRequestTopic
    )


@struct
class ConsumerGroupHeartbeatResponseTopic(NamedTuple):
    """Partitions of one topic that the member may own."""

    topic_id: bytes = uuid()
    partitions: tuple[int, ...] = array(int32())


@struct
class ConsumerGroupHeartbeatResponseAssignment(NamedTuple):
    """What the member may own from now on."""

    topic_partitions: tuple[ConsumerGroupHeartbeatResponseTopic, ...] = array(ConsumerGroupHeartbeatResponseTopic)


@message(api_key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(NamedTuple):
    """The member's epoch, and its assignment if that has changed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = nullable_string(default=None)
    member_id: str | None = nullable_string(default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = nullable_nested(
        ConsumerGroupHeartbeatResponseAssignment
    )
