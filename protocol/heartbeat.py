"""Heartbeat (key 12): a member is alive, and learns whether a rebalance is under way."""

from typing import NamedTuple

from protocol.schema import int16, int32, message, nullable_string, string


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatRequest(NamedTuple):
    """A member's sign of life."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = nullable_string("3+", nullable="3+", default=None)


@message(api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse(NamedTuple):
    """REBALANCE_IN_PROGRESS asks the member to join again."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
