"""DescribeCluster (key 60): the brokers, as admin clients ask for them."""

from typing import NamedTuple

from protocol.metadata import OPERATIONS_UNASKED
from protocol.schema import array, boolean, int8, int16, int32, message, nullable_string, string, struct


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest(NamedTuple):
    """Asks for brokers (endpoint type 1) or controllers (2)."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


@struct
class DescribeClusterResponseBroker(NamedTuple):
    """Where a broker listens."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = nullable_string(default=None)
    is_fenced: bool = boolean("2+")


@message(api_key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(NamedTuple):
    """The cluster and its brokers."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = nullable_string(default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: tuple[DescribeClusterResponseBroker, ...] = array(DescribeClusterResponseBroker)
    cluster_authorized_operations: int = int32(default=OPERATIONS_UNASKED)
