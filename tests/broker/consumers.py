"""Members of groups as the broker sees them: each on a connection of its own, remembering what it was told."""

from collections.abc import Mapping
from struct import pack
from typing import Any, cast

from protocol.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse, DescribeGroupsResponseGroup
from protocol.errors import Code
from protocol.heartbeat import HeartbeatRequest
from protocol.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.leave_group import LeaveGroupRequest, LeaveGroupRequestMember
from protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from protocol.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.scene import FakeClient, Scene

ORDERS = ("orders", 0)


def subscription(*topics: str) -> bytes:
    """What a consumer says that reads topics."""
    names = b"".join(pack(">h", len(name)) + name.encode() for name in topics)
    return pack(">hi", 1, len(topics)) + names + pack(">i", -1)


class Consumer:
    """A client that is, or wants to be, a member."""

    def __init__(
        self, scene: Scene, group: str = "g", *, instance: str | None = None, topics: tuple[str, ...] = ()
    ) -> None:
        self.scene = scene
        self.group = group
        self.instance = instance
        self.protocols: list[tuple[str, bytes]] = [("range", subscription(*(topics or ("orders",))))]
        self.kind = "consumer"
        self.session_ms = 10_000
        self.rebalance_ms = 60_000
        self.client = scene.client()
        self.member_id = ""
        self.generation = -1

    def send_join(self, version: int = 3, *, client_id: str = "client", **other: Any) -> int:
        """Ask to be a member; from version 4 on a newcomer's first answer is only an id."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.kind,
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self.protocols),
        )
        chosen = version if self.instance is None else max(version, 5)
        return self.client.send(request._replace(**other), chosen, client_id=client_id)

    def joined(self, number: int) -> JoinGroupResponse:
        """Take the answer to a join."""
        response = cast("JoinGroupResponse", self.client.answer(number))
        if response.error_code in (Code.NONE, Code.MEMBER_ID_REQUIRED):
            self.member_id, self.generation = response.member_id, response.generation_id
        return response

    def join(self, version: int = 3, **other: Any) -> JoinGroupResponse:
        """Join where nobody else is waited for."""
        return self.joined(self.send_join(version, **other))

    def send_sync(self, parts: Mapping[str, bytes] | None = None, version: int = 4, **other: Any) -> int:
        """Ask for one's part; a leader brings all of them."""
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.kind,
            protocol_name=self.protocols[0][0],
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=who, assignment=part) for who, part in (parts or {}).items()
            ),
        )
        return self.client.send(request._replace(**other), version)

    def sync(self, parts: Mapping[str, bytes] | None = None, version: int = 4, **other: Any) -> tuple[int, bytes]:
        """Ask for one's part where it is there, or comes with what one brings; return code and part."""
        number = self.send_sync(parts, version, **other)
        self.scene.log.settle()
        return self.synced(number)

    def synced(self, number: int) -> tuple[int, bytes]:
        """Return code and part of an answered sync."""
        response = self.client.answer(number)
        return response.error_code, response.assignment

    def settle_alone(self, part: bytes = b"all") -> "Consumer":
        """Become the only member of a stable group."""
        assert self.join().error_code == 0
        self.scene.run()
        assert self.sync({self.member_id: part}) == (0, part)
        return self

    def heartbeat(self, version: int = 4, **other: Any) -> int:
        """Give a sign of life; return the code."""
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance if version >= 3 else None,
        )
        number = self.client.send(request._replace(**other), version)
        return cast("int", self.client.answer(number).error_code)

    def leave(self, version: int = 5) -> int:
        """Go; return the code."""
        row = LeaveGroupRequestMember(member_id=self.member_id, group_instance_id=self.instance)
        request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=(row,))
        response = self.client.answer(self.client.send(request, version))
        return cast("int", response.error_code if version < 3 else response.members[0].error_code)

    def send_commit(self, offset: int, topic: str = "orders", version: int = 8, **other: Any) -> int:
        """Commit as a member."""
        row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            topics=(OffsetCommitRequestTopic(name=topic, partitions=(row,)),),
        )
        return self.client.send(request._replace(**other), version)

    def commit(self, offset: int, topic: str = "orders", version: int = 8, **other: Any) -> int:
        """Commit and settle; return the code."""
        number = self.send_commit(offset, topic, version, **other)
        self.scene.log.settle()
        (code,) = self.client.codes(number).values()
        return code


def pair(scene: Scene, group: str = "g") -> tuple[Consumer, Consumer]:
    """Return two members of a stable group in its second generation; the first one leads."""
    first = Consumer(scene, group).settle_alone()
    second = Consumer(scene, group)
    waiting = second.send_join()
    assert first.join().error_code == 0
    assert second.joined(waiting).error_code == 0
    assert first.sync({first.member_id: b"one", second.member_id: b"two"}) == (0, b"one")
    assert second.sync() == (0, b"two")
    return first, second


def describe(scene: Scene, *groups: str, version: int = 5) -> tuple[DescribeGroupsResponseGroup, ...]:
    """Describe groups."""
    client = scene.client()
    number = client.send(DescribeGroupsRequest(groups=groups), version)
    scene.run()
    return cast("DescribeGroupsResponse", client.answer(number)).groups


def state(scene: Scene, group: str = "g") -> str:
    """Return the state of a group as an admin tool sees it."""
    (described,) = describe(scene, group)
    return described.group_state


def listed(scene: Scene, *states: str, types: tuple[str, ...] = (), version: int = 5) -> dict[str, tuple[str, str]]:
    """Return state and protocol type of the groups that are listed."""
    client = scene.client()
    number = client.send(ListGroupsRequest(states_filter=states, types_filter=types), version)
    scene.run()
    response = cast("ListGroupsResponse", client.answer(number))
    assert response.error_code == 0
    return {group.group_id: (group.group_state, group.protocol_type) for group in response.groups}


def send_delete(scene: Scene, *groups: str, version: int = 2) -> "Deletion":
    """Ask for groups to be deleted."""
    client = scene.client()
    return Deletion(client, client.send(DeleteGroupsRequest(groups_names=groups), version))


class Deletion:
    """A deletion on its way."""

    def __init__(self, client: FakeClient, number: int) -> None:
        self._client = client
        self._number = number

    def is_answered(self) -> bool:
        """Tell whether it is decided."""
        return bool(self._client.replies)

    def codes(self) -> dict[str, int]:
        """Return the code of each group."""
        response = cast("DeleteGroupsResponse", self._client.answer(self._number))
        return {row.group_id: row.error_code for row in response.results}


def send_delete_offsets(scene: Scene, group: str, topics: Mapping[str, tuple[int, ...]]) -> tuple[FakeClient, int]:
    """Ask for offsets to be deleted."""
    client = scene.client()
    request = OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=row) for row in rows)
            )
            for name, rows in topics.items()
        ),
    )
    return client, client.send(request, 0)


def delete_offsets(
    scene: Scene, group: str, topics: Mapping[str, tuple[int, ...]]
) -> tuple[int, dict[tuple[str, int], int]]:
    """Delete offsets and settle; return the code of all, and that of each partition."""
    client, number = send_delete_offsets(scene, group, topics)
    scene.log.settle()
    response = client.answer(number)
    codes = {(topic.name, row.partition_index): row.error_code for topic in response.topics for row in topic.partitions}
    return response.error_code, codes
