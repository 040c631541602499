"""Metadata (key 3): brokers, topics and who leads their partitions."""

from typing import Final, NamedTuple

from protocol.schema import (
    array,
    boolean,
    int16,
    int32,
    message,
    nullable_array,
    nullable_string,
    string,
    struct,
    uuid,
)

OPERATIONS_UNASKED: Final = -0x80000000
"""Authorised operations that nobody asked for."""


@struct
class MetadataRequestTopic(NamedTuple):
    """A topic by its name, or from version 12 on by its id."""

    topic_id: bytes = uuid("10+")
    name: str | None = nullable_string(nullable="10+")


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataRequest(NamedTuple):
    """Asks for some topics, or for all: by an empty list in version 0, by null later."""

    topics: tuple[MetadataRequestTopic, ...] | None = nullable_array(MetadataRequestTopic, nullable="1+")
    # Before version 4 a client could not say no.
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@struct
class MetadataResponseBroker(NamedTuple):
    """Where a broker listens."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = nullable_string("1+", nullable="1+", default=None)


@struct
class MetadataResponsePartition(NamedTuple):
    """Who leads a partition and who copies it."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1)
    replica_nodes: tuple[int, ...] = array(int32())
    isr_nodes: tuple[int, ...] = array(int32())
    offline_replicas: tuple[int, ...] = array(int32(), "5+")


@struct
class MetadataResponseTopic(NamedTuple):
    """A topic, or why there is none."""

    error_code: int = int16()
    name: str | None = nullable_string(nullable="12+")
    topic_id: bytes = uuid("10+")
    is_internal: bool = boolean("1+")
    partitions: tuple[MetadataResponsePartition, ...] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=OPERATIONS_UNASKED)


@message(api_key=3, versions="0-13", flexible="9+")
class MetadataResponse(NamedTuple):
    """The cluster as clients see it."""

    throttle_time_ms: int = int32("3+")
    brokers: tuple[MetadataResponseBroker, ...] = array(MetadataResponseBroker)
    cluster_id: str | None = nullable_string("2+", nullable="2+", default=None)
    controller_id: int = int32("1+", default=-1)
    topics: tuple[MetadataResponseTopic, ...] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=OPERATIONS_UNASKED)
    error_code: int = int16("13+")
