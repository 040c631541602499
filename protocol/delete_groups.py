"""DeleteGroups (key 42): groups that nobody is a member of, with all their offsets."""

from typing import NamedTuple

from protocol.schema import array, int16, int32, message, string, struct


@message(api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest(NamedTuple):
    """Names the groups."""

    groups_names: tuple[str, ...] = array(string())


@struct
class DeleteGroupsResponseResult(NamedTuple):
    """What became of one of them."""

    group_id: str = string()
    error_code: int = int16()


@message(api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse(NamedTuple):
    """One code per group."""

    throttle_time_ms: int = int32()
    results: tuple[DeleteGroupsResponseResult, ...] = array(DeleteGroupsResponseResult)
