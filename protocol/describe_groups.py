"""DescribeGroups (key 15): groups with their members."""

from typing import Final, NamedTuple

from protocol.schema import array, binary, boolean, int16, int32, message, nullable_string, string, struct

OPERATIONS_UNASKED: Final = -(1 << 31)


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest(NamedTuple):
    """Asks for groups by their ids."""

    groups: tuple[str, ...] = array(string())
    include_authorized_operations: bool = boolean("3+")


@struct
class DescribeGroupsResponseMember(NamedTuple):
    """One member: who it is, what it said, what it was assigned."""

    member_id: str = string()
    group_instance_id: str | None = nullable_string("4+", nullable="4+", default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@struct
class DescribeGroupsResponseGroup(NamedTuple):
    """One group; one that is not known is Dead."""

    error_code: int = int16()
    error_message: str | None = nullable_string("6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: tuple[DescribeGroupsResponseMember, ...] = array(DescribeGroupsResponseMember)
    authorized_operations: int = int32("3+", default=OPERATIONS_UNASKED)


@message(api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse(NamedTuple):
    """The groups in the order of the request."""

    throttle_time_ms: int = int32("1+")
    groups: tuple[DescribeGroupsResponseGroup, ...] = array(DescribeGroupsResponseGroup)
