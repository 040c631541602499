"""A member of nothing but frames, for tests that need very many; and the ledger of what leaders have assigned.

A leader gives one partition after another to one member after another, so whoever has a part can be held against it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from offsetd.client.consumer_protocol import PROTOCOL_TYPE, read_assignment, write_assignment, write_subscription
from offsetd.client.position import TopicPartition
from protocol.errors import Code
from protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.leave_group import LeaveGroupRequest, LeaveGroupRequestMember, LeaveGroupResponse
from protocol.offset_commit import OffsetCommitResponse
from protocol.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.clients.process import Place
from tests.fakes.wire import RawClient, commit_codes, commit_request, connect

_ASSIGNOR: Final = "spread"
_REBALANCE_MS: Final = 60_000
#: How long to wait before a broker that loads, or is not there, is asked again.
_AGAIN_SECONDS: Final = 0.02


@dataclass
class Ledger:
    """What the leader of each generation of a group has assigned."""

    places: Sequence[Place]
    assigned: dict[int, dict[str, frozenset[Place]]] = field(default_factory=dict)

    def assign(self, generation: int, member_ids: Sequence[str]) -> dict[str, frozenset[Place]]:
        """Assign as the leader of a generation, of which there is one."""
        assert generation not in self.assigned, f"generation {generation} has two leaders"
        parts = {
            member_id: frozenset(self.places[number :: len(member_ids)])
            for number, member_id in enumerate(sorted(member_ids))
        }
        self.assigned[generation] = parts
        return parts


class RawMember:
    """One member on one connection. What it is told to do, it does; it does nothing by itself."""

    def __init__(self, port: int, group: str, ledger: Ledger, *, client_id: str, session_ms: int) -> None:
        self.group = group
        self.client_id = client_id
        self.member_id = ""
        self.generation = -1
        self.owned: frozenset[Place] = frozenset()
        self._port = port
        self._ledger = ledger
        self._session_ms = session_ms
        self._client: RawClient | None = None

    async def connect(self) -> None:
        """Open a connection, as soon as somebody listens."""
        await self.disconnect()
        while self._client is None:
            try:
                self._client = await connect(self._port)
            except ConnectionError:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def disconnect(self) -> None:
        """Close the connection; the group does not hear of it."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def forget(self) -> None:
        """Be somebody new."""
        self.member_id, self.generation, self.owned = "", -1, frozenset()

    # --- requests ---------------------------------------------------------------------------------------------------

    async def take_part(self) -> None:
        """Join and sync, as often as it takes to be given a part."""
        while not await self._try_to_take_part():
            pass

    async def _try_to_take_part(self) -> bool:
        joined = await self._join()
        if joined.error_code == Code.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
        elif joined.error_code == Code.UNKNOWN_MEMBER_ID:
            self.forget()
        elif joined.error_code == Code.COORDINATOR_LOAD_IN_PROGRESS:
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            assert joined.error_code in {Code.NONE, Code.REBALANCE_IN_PROGRESS}, joined
        if joined.error_code != Code.NONE:
            return False
        self.member_id, self.generation = joined.member_id, joined.generation_id
        synced = await self._sync(joined)
        if synced.error_code == Code.UNKNOWN_MEMBER_ID:
            self.forget()
        if synced.error_code != Code.NONE:
            assert synced.error_code in {
                Code.REBALANCE_IN_PROGRESS,
                Code.ILLEGAL_GENERATION,
                Code.UNKNOWN_MEMBER_ID,
                Code.COORDINATOR_LOAD_IN_PROGRESS,
            }, synced
            return False
        self.owned = frozenset((one.topic, one.partition) for one in read_assignment(synced.assignment))
        assert self.owned == self._ledger.assigned[self.generation][self.member_id]
        return True

    async def _join(self) -> JoinGroupResponse:
        topics = frozenset(topic for topic, _ in self._ledger.places)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self._session_ms,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoinGroupRequestProtocol(_ASSIGNOR, write_subscription(topics, None)),),
        )
        return cast("JoinGroupResponse", await self._open().call(request, client_id=self.client_id))

    async def _sync(self, joined: JoinGroupResponse) -> SyncGroupResponse:
        parts: dict[str, frozenset[Place]] = {}
        if joined.leader == self.member_id:
            parts = self._ledger.assign(self.generation, [member.member_id for member in joined.members])
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=_ASSIGNOR,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id, write_assignment(tuple(TopicPartition(*place) for place in part)))
                for member_id, part in parts.items()
            ),
        )
        return cast("SyncGroupResponse", await self._open().call(request, client_id=self.client_id))

    async def heartbeat(self) -> Code:
        """Send a sign of life."""
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
        return Code(cast("HeartbeatResponse", await self._open().call(request)).error_code)

    async def commit(self, offset: int) -> Code:
        """Commit one offset for all that it owns; return the code that all partitions have."""
        request = commit_request(self.group, dict.fromkeys(sorted(self.owned), offset))
        mine = request._replace(generation_id_or_member_epoch=self.generation, member_id=self.member_id)
        codes = commit_codes(cast("OffsetCommitResponse", await self._open().call(mine)))
        (code,) = set(codes.values()) or {0}
        return Code(code)

    async def leave(self) -> Code:
        """Leave the group and be nobody."""
        request = LeaveGroupRequest(group_id=self.group, members=(LeaveGroupRequestMember(self.member_id),))
        (row,) = cast("LeaveGroupResponse", await self._open().call(request)).members
        self.forget()
        return Code(row.error_code)

    def _open(self) -> RawClient:
        assert self._client is not None, "not connected"
        return self._client
