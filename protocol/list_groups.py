"""ListGroups (key 16): the groups of one broker."""

from typing import NamedTuple

from protocol.schema import array, int16, int32, message, string, struct


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsRequest(NamedTuple):
    """Asks for all groups, or for those in some states or of some types."""

    states_filter: tuple[str, ...] = array(string(), "4+")
    types_filter: tuple[str, ...] = array(string(), "5+")


@struct
class ListGroupsResponseGroup(NamedTuple):
    """One group."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+")
    group_type: str = string("5+")


@message(api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse(NamedTuple):
    """The groups, in no order."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16()
    groups: tuple[ListGroupsResponseGroup, ...] = array(ListGroupsResponseGroup)
