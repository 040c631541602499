"""SyncGroup (key 14): the leader hands in everybody's part, and everybody gets its own."""

from typing import NamedTuple

from protocol.schema import array, binary, int16, int32, message, nullable_string, string, struct


@struct
class SyncGroupRequestAssignment(NamedTuple):
    """One member's part."""

    member_id: str = string()
    assignment: bytes = binary()


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupRequest(NamedTuple):
    """Held by the broker until the leader's has come and is in the log."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = nullable_string("3+", nullable="3+", default=None)
    protocol_type: str | None = nullable_string("5+", nullable="5+", default=None)
    protocol_name: str | None = nullable_string("5+", nullable="5+", default=None)
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)


@message(api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse(NamedTuple):
    """The member's own part."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    protocol_type: str | None = nullable_string("5+", nullable="5+", default=None)
    protocol_name: str | None = nullable_string("5+", nullable="5+", default=None)
    assignment: bytes = binary()
