"""LeaveGroup (key 13): members go without making the others wait for their sessions to end."""

from typing import NamedTuple

from protocol.schema import array, int16, int32, message, nullable_string, string, struct


@struct
class LeaveGroupRequestMember(NamedTuple):
    """Who goes, by its id or its instance id."""

    member_id: str = string("3+")
    group_instance_id: str | None = nullable_string("3+", nullable="3+", default=None)
    reason: str | None = nullable_string("5+", nullable="5+", default=None)


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest(NamedTuple):
    """One member, or from version 3 on several."""

    group_id: str = string()
    member_id: str = string("0-2")
    members: tuple[LeaveGroupRequestMember, ...] = array(LeaveGroupRequestMember, "3+")


@struct
class LeaveGroupResponseMember(NamedTuple):
    """What became of one of them."""

    member_id: str = string("3+")
    group_instance_id: str | None = nullable_string("3+", nullable="3+", default=None)
    error_code: int = int16("3+")


@message(api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse(NamedTuple):
    """One code, or from version 3 on one per member."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    members: tuple[LeaveGroupResponseMember, ...] = array(LeaveGroupResponseMember, "3+")
