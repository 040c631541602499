"""What admin tools are told of groups: ListGroups and DescribeGroups. Pure answers over what a group looks like now."""

from collections.abc import Callable
from typing import Final, NamedTuple

from offsetd.coordinator.member import Member
from offsetd.coordinator.membership import Membership, State
from offsetd.group import Group
from protocol.describe_groups import (
    OPERATIONS_UNASKED,
    DescribeGroupsRequest,
    DescribeGroupsResponseGroup,
    DescribeGroupsResponseMember,
)
from protocol.errors import Code
from protocol.list_groups import ListGroupsRequest, ListGroupsResponseGroup

#: The only kind of group there is: the other kinds have protocols of their own.
CLASSIC: Final = "classic"
#: What Kafka answers for the operations that somebody may do where no ACLs are set.
_GROUP_OPERATIONS: Final = 3400
#: The first version in which a group that is not there is an error, and not only Dead.
_NOT_FOUND_SINCE: Final = 6


class GroupView(NamedTuple):
    """A group as it is shown: its membership in memory, or what the log holds of one that has no members."""

    state: State
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[Member, ...] = ()


def view_of(membership: Membership | None, group: Group | None) -> GroupView:
    """Return how a group that exists is shown."""
    if membership is None:
        stored = None if group is None else group.generation
        return GroupView(State.EMPTY, "" if stored is None else stored[1].protocol_type)
    return GroupView(
        membership.state,
        membership.protocol_type or "",
        membership.protocol or "",
        tuple(membership.roster.members.values()),
    )


def listed_by(request: ListGroupsRequest) -> Callable[[str, GroupView], ListGroupsResponseGroup | None]:
    """Return how a group is listed, None where a filter keeps it out; a filter without entries lets all through."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}
    none_of_them = bool(types) and CLASSIC not in types

    def listed(group_id: str, view: GroupView) -> ListGroupsResponseGroup | None:
        if none_of_them or (states and view.state.value.lower() not in states):
            return None
        return ListGroupsResponseGroup(
            group_id=group_id,
            protocol_type=view.protocol_type,
            group_state=view.state.value,
            group_type=CLASSIC,
        )

    return listed


def described_by(
    request: DescribeGroupsRequest, *, version: int
) -> Callable[[str, Code, GroupView | None], DescribeGroupsResponseGroup]:
    """Return how a group is described, or refused, or not there."""
    operations = _GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_UNASKED
    return lambda group_id, code, view: _describe(group_id, code, view, version, operations)


def _describe(
    group_id: str, code: Code, view: GroupView | None, version: int, operations: int
) -> DescribeGroupsResponseGroup:
    if code is not Code.NONE:
        return DescribeGroupsResponseGroup(error_code=code, group_id=group_id)
    if view is None:
        missing = version >= _NOT_FOUND_SINCE
        return DescribeGroupsResponseGroup(
            error_code=Code.GROUP_ID_NOT_FOUND if missing else Code.NONE,
            error_message=f"Group {group_id} not found." if missing else None,
            group_id=group_id,
            group_state=State.DEAD.value,
            authorized_operations=OPERATIONS_UNASKED if missing else operations,
        )
    stable = view.state is State.STABLE
    return DescribeGroupsResponseGroup(
        group_id=group_id,
        group_state=view.state.value,
        protocol_type=view.protocol_type,
        protocol_data=view.protocol if stable else "",
        members=tuple(
            DescribeGroupsResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Between two generations nothing has been chosen that this could be the metadata for.
                member_metadata=member.metadata(view.protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in view.members
        ),
        authorized_operations=operations,
    )
