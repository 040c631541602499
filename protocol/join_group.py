"""JoinGroup (key 11): become a member, or stay one, of the next generation."""

from typing import NamedTuple

from protocol.schema import array, binary, boolean, int16, int32, message, nullable_string, string, struct


@struct
class JoinGroupRequestProtocol(NamedTuple):
    """A way of assigning that the member knows, and what it says for it."""

    name: str = string()
    metadata: bytes = binary()


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupRequest(NamedTuple):
    """Held by the broker until the join phase is over."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1)
    member_id: str = string()
    group_instance_id: str | None = nullable_string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: tuple[JoinGroupRequestProtocol, ...] = array(JoinGroupRequestProtocol)
    reason: str | None = nullable_string("8+", nullable="8+", default=None)


@struct
class JoinGroupResponseMember(NamedTuple):
    """What the leader is told of a member."""

    member_id: str = string()
    group_instance_id: str | None = nullable_string("5+", nullable="5+", default=None)
    metadata: bytes = binary()


@message(api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse(NamedTuple):
    """The generation; only its leader sees the members."""

    throttle_time_ms: int = int32("2+")
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = nullable_string("7+", nullable="7+", default=None)
    protocol_name: str | None = nullable_string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)
