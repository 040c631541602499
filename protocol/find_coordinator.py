"""FindCoordinator (key 10): which broker holds a group's offsets."""

from typing import NamedTuple

from protocol.schema import array, int8, int16, int32, message, nullable_string, string, struct


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest(NamedTuple):
    """Asks for one key, or from version 4 on for many."""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: tuple[str, ...] = array(string(), "4+")


@struct
class FindCoordinatorResponseCoordinator(NamedTuple):
    """The coordinator of one key."""

    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = nullable_string("4+", nullable="4+")


@message(api_key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse(NamedTuple):
    """The coordinators in the order of their keys; before version 4 the only one."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16("0-3")
    error_message: str | None = nullable_string("1-3", nullable="1-3")
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: tuple[FindCoordinatorResponseCoordinator, ...] = array(FindCoordinatorResponseCoordinator, "4+")
