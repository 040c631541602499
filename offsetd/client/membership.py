"""A member's talk with its coordinator: join, sync, heartbeat, leave, each one request, and what its answer means.

When to say which of them is decided in `member`. The codes are taken as Kafka's Java client takes them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from offsetd.client.address import Address
from offsetd.client.commits import Identity
from offsetd.client.connections import Connections
from offsetd.client.consumer_protocol import PROTOCOL_TYPE
from offsetd.client.discovery import Discovery
from offsetd.client.errors import refusal
from offsetd.client.transient import Busy, ConnectionFailed, is_transient, moved
from protocol.api import Request, Response
from protocol.errors import Code
from protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse, JoinGroupResponseMember
from protocol.leave_group import LeaveGroupRequest, LeaveGroupRequestMember, LeaveGroupResponse
from protocol.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

R = TypeVar("R", bound=Response)

MEMBERSHIP: Final = "membership"
#: A broker holds a join and a sync for as long as the slowest member may take; the answer then needs a moment, too.
_SLACK_S: Final = 5.0


class Rejoin(Exception):
    """The coordinator wants this member to join again, or has none of this name."""

    def __init__(self, code: Code, *, lost: bool) -> None:
        super().__init__(code.name)
        self.code = code
        self.lost = lost
        """Whether its partitions may be somebody else's by now."""


class Joined(NamedTuple):
    """A generation, before its partitions are known."""

    protocol: str
    is_leader: bool
    # What the leader must assign for; nothing for everybody else.
    members: tuple[JoinGroupResponseMember, ...]


class Membership:
    """Who a member is to its coordinator."""

    def __init__(
        self,
        group: str,
        *,
        instance_id: str | None,
        session_timeout_s: float,
        rebalance_timeout_s: float,
        discovery: Discovery,
        connections: Connections,
    ) -> None:
        self.group = group
        self._instance_id = instance_id
        self._session_timeout_ms = round(session_timeout_s * 1000)
        self._rebalance_timeout_ms = round(rebalance_timeout_s * 1000)
        self._patience_s = rebalance_timeout_s + _SLACK_S
        # A coordinator that hangs is left in time for another word before the session is over.
        self._heartbeat_patience_s = session_timeout_s / 3
        self._discovery = discovery
        self._connections = connections
        self._member_id = ""
        self._generation = -1

    @property
    def identity(self) -> Identity:
        """As whom it commits."""
        return Identity(member_id=self._member_id, generation=self._generation, instance_id=self._instance_id)

    def forget(self, code: Code) -> None:
        """Hear from a commit that it is not what it was."""
        self._generation = -1
        if code == Code.UNKNOWN_MEMBER_ID:
            self._member_id = ""

    async def join(self, protocols: Mapping[str, bytes], *, reason: str) -> Joined:
        """Join the next generation; the coordinator answers when everybody has, or has had time to.

        Args:
            protocols: what this member says for each assignor, the one it likes best first.

        Raises:
            Rejoin: begin again.
            Transient: try again.
            Refused: it may not join.
        """
        # The first answer may be a name to join with, so that a join whose answer is lost leaves nobody behind.
        for _ in range(2):
            reply, address = await self._call(
                JoinGroupRequest(
                    group_id=self.group,
                    session_timeout_ms=self._session_timeout_ms,
                    rebalance_timeout_ms=self._rebalance_timeout_ms,
                    member_id=self._member_id,
                    group_instance_id=self._instance_id,
                    protocol_type=PROTOCOL_TYPE,
                    protocols=tuple(JoinGroupRequestProtocol(name, said) for name, said in protocols.items()),
                    reason=reason,
                ),
                JoinGroupResponse,
                timeout_s=self._patience_s,
            )
            if reply.error_code != Code.MEMBER_ID_REQUIRED:
                break
            self._member_id = reply.member_id
        self._check(reply.error_code, address)
        self._member_id, self._generation = reply.member_id, reply.generation_id
        is_leader = reply.leader == reply.member_id
        return Joined(
            protocol=reply.protocol_name or "",
            is_leader=is_leader,
            members=reply.members if is_leader and not reply.skip_assignment else (),
        )

    async def sync(self, protocol: str, assignments: Mapping[str, bytes]) -> bytes:
        """Hand in everybody's part, if this is the leader, and return this member's own; raises as `join` does."""
        reply, address = await self._call(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=protocol,
                assignments=tuple(SyncGroupRequestAssignment(*each) for each in assignments.items()),
            ),
            SyncGroupResponse,
            timeout_s=self._patience_s,
        )
        self._check(reply.error_code, address)
        return reply.assignment

    async def heartbeat(self) -> None:
        """Say that this member is alive; raises as `join` does."""
        reply, address = await self._call(
            HeartbeatRequest(
                group_id=self.group,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
            ),
            HeartbeatResponse,
            timeout_s=self._heartbeat_patience_s,
        )
        self._check(reply.error_code, address)

    async def leave(self) -> None:
        """Say that this member goes, so that nobody waits for its session to end.

        A static member says nothing: it comes back under the same name, and its partitions wait for it.
        """
        if self._instance_id is None and self._member_id:
            row = LeaveGroupRequestMember(member_id=self._member_id, reason="the application closed it")
            await self._call(LeaveGroupRequest(group_id=self.group, members=(row,)), LeaveGroupResponse)
            self._member_id = ""

    async def _call(self, request: Request, kind: type[R], *, timeout_s: float | None = None) -> tuple[R, Address]:
        address = await self._discovery.coordinator(self.group)
        try:
            connection = await self._connections.get(address)
            return await connection.call(request, kind, timeout_s=timeout_s), address
        except ConnectionFailed:
            self._discovery.forget(self.group, address)
            raise

    def _check(self, code: int, address: Address) -> None:
        if code == Code.NONE:
            return
        if is_transient(code):
            if moved(code):
                self._discovery.forget(self.group, address)
            raise Busy(address=address, code=code)
        if code == Code.REBALANCE_IN_PROGRESS:
            raise Rejoin(Code.REBALANCE_IN_PROGRESS, lost=False)
        if code in {Code.ILLEGAL_GENERATION, Code.UNKNOWN_MEMBER_ID}:
            self.forget(Code(code))
            raise Rejoin(Code(code), lost=True)
        raise refusal(action=MEMBERSHIP, group=self.group, code=code)
