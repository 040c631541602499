"""What the daemon says of a group and its members, read without a client library between."""

import asyncio
from dataclasses import dataclass
from typing import cast

from offsetd.client.consumer_protocol import read_assignment
from protocol.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.leave_group import LeaveGroupRequest, LeaveGroupRequestMember, LeaveGroupResponse
from tests.clients.process import Place
from tests.fakes.daemon import Daemon
from tests.fakes.wire import connected


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member as the coordinator knows it."""

    member_id: str
    instance: str | None
    client_id: str
    owned: frozenset[Place]


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group as the coordinator knows it."""

    state: str
    protocol: str
    members: tuple[DescribedMember, ...]

    def member(self, client_id: str) -> DescribedMember:
        """Return the one member of a client."""
        (found,) = (each for each in self.members if each.client_id == client_id)
        return found


def described(daemon: Daemon, group: str) -> DescribedGroup:
    """Describe a group."""
    return asyncio.run(_described(daemon.port, group))


async def _described(port: int, group: str) -> DescribedGroup:
    async with connected(port) as client:
        response = cast("DescribeGroupsResponse", await client.call(DescribeGroupsRequest(groups=(group,)), 5))
    (found,) = response.groups
    assert found.error_code == 0, response
    return DescribedGroup(
        found.group_state,
        found.protocol_data,
        tuple(
            DescribedMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                frozenset((one.topic, one.partition) for one in read_assignment(member.member_assignment)),
            )
            for member in found.members
        ),
    )


def remove_member(daemon: Daemon, group: str, *, member_id: str = "", instance: str | None = None) -> None:
    """Take a member out of its group, as an administrator can, by its id or its instance."""
    asyncio.run(_remove_member(daemon.port, group, LeaveGroupRequestMember(member_id, instance)))


async def _remove_member(port: int, group: str, member: LeaveGroupRequestMember) -> None:
    async with connected(port) as client:
        request = LeaveGroupRequest(group_id=group, members=(member,))
        response = cast("LeaveGroupResponse", await client.call(request))
    assert [row.error_code for row in response.members] == [0], response
