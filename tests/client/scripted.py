"""Brokers over real sockets that answer as a test says, and otherwise as a broker would from a small table."""

import asyncio
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, TypeAlias

from offsetd.client import Client, Limits
from protocol.api import (
    API_VERSIONS,
    APIS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    Request,
    Response,
    decode_request,
    encode_response,
)
from protocol.api_versions import ApiVersionsResponse, ApiVersionsResponseApiKey
from protocol.errors import Code
from protocol.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from protocol.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeaveGroupResponseMember
from protocol.metadata import MetadataRequest, MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from protocol.sync_group import SyncGroupRequest, SyncGroupResponse

WAIT_SECONDS = 60.0


class Close:
    """Close the connection in place of a reply, before or after doing what was asked."""

    def __init__(self, *, done: bool) -> None:
        self.done = done


class Silence:
    """Never answer, and answer nothing that comes behind it."""


class Hold:
    """Answer when the test says so."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.release = asyncio.Event()


#: What a test can put in the place of an answer: a refusal, a reply of its own, bytes as they are, or an act.
Act: TypeAlias = Code | Response | bytes | Close | Silence | Hold | Callable[[Any], Response]

#: Offset, metadata and leader epoch by group and partition; brokers may share one.
Table: TypeAlias = dict[tuple[str, str, int], tuple[int, str, int]]


@dataclass
class ScriptedBroker:
    """One broker."""

    table: Table = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    coordinator_of: dict[str, "ScriptedBroker"] = field(default_factory=dict)
    port: int = 0
    tls: SSLContext | None = None
    # The requests that came, but for ApiVersions.
    seen: list[Request] = field(default_factory=list)
    connections: int = 0
    api_versions: tuple[ApiVersionsResponseApiKey, ...] = tuple(
        ApiVersionsResponseApiKey(api.key, api.min_version, api.max_version) for api in APIS.values()
    )
    # Every join makes a generation of whoever joins, and of nobody else.
    generation: int = 0
    _acts: dict[int, deque[Act]] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _talks: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def then(self, api_key: int, *acts: Act) -> None:
        """Answer the next requests of an API like this; the ones behind them as a broker would."""
        self._acts.setdefault(api_key, deque()).extend(acts)

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the requests of one kind that came."""
        return [request for request in self.seen if isinstance(request, kind)]

    async def start(self) -> "ScriptedBroker":
        """Listen, on the same port as before if there was one."""
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            self._server.close()
        talks = list(self._talks)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        self.connections += 1
        try:
            # A client that leaves ends its talk; so does the test's end.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while True:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    reply = await self._answer(await reader.readexactly(size))
                    if reply is None:
                        return
                    writer.write(reply)
                    await writer.drain()
        finally:
            self._talks.discard(talk)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, frame: bytes) -> bytes | None:
        header, request = decode_request(frame)
        key, version, number = header.api_key, header.api_version, header.correlation_id
        if key == API_VERSIONS:
            acts = self._acts.get(key)
            if acts and isinstance(acts[0], bytes):
                act = acts.popleft()
                assert isinstance(act, bytes)
                return act
            return encode_response(key, version, number, ApiVersionsResponse(api_keys=self.api_versions))
        self.seen.append(request)
        acts = self._acts.get(key)
        act_or_none = acts.popleft() if acts else None
        match act_or_none:
            case bytes() as raw:
                return raw
            case Close() as close:
                if close.done:
                    self._serve(request)
                return None
            case Silence():
                await asyncio.Event().wait()
            case Hold() as hold:
                hold.arrived.set()
                await hold.release.wait()
            case Code() as code:
                return encode_response(key, version, number, self._refuse(request, code))
            case None:
                pass
            case tuple() as reply:
                return encode_response(key, version, number, reply)
            case make:
                assert callable(make)
                return encode_response(key, version, number, make(request))
        return encode_response(key, version, number, self._serve(request))

    # --- as a broker would ------------------------------------------------------------------------------------------

    def _serve(self, request: Request) -> Response:
        match request:
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(
                    coordinators=tuple(self._coordinator(key) for key in request.coordinator_keys)
                )
            case OffsetCommitRequest():
                for topic in request.topics:
                    for row in topic.partitions:
                        held = (row.committed_offset, row.committed_metadata or "", row.committed_leader_epoch)
                        self.table[request.group_id, topic.name, row.partition_index] = held
                return _commit_reply(request, Code.NONE)
            case OffsetFetchRequest():
                return self._fetch_reply(request, Code.NONE)
            case MetadataRequest():
                names = self.topics if request.topics is None else [topic.name or "" for topic in request.topics]
                return MetadataResponse(topics=tuple(self._topic(name) for name in names))
            case JoinGroupRequest():
                self.generation += 1
                return self.joined(request, request.member_id or f"m-{self.generation}")
            case SyncGroupRequest():
                parts = {each.member_id: each.assignment for each in request.assignments}
                return SyncGroupResponse(
                    protocol_type="consumer",
                    protocol_name=request.protocol_name,
                    assignment=parts.get(request.member_id, b""),
                )
            case HeartbeatRequest():
                return HeartbeatResponse()
            case LeaveGroupRequest():
                rows = (LeaveGroupResponseMember(member_id=each.member_id) for each in request.members)
                return LeaveGroupResponse(members=tuple(rows))
            case OffsetDeleteRequest():
                for each in request.topics:
                    for partition in each.partitions:
                        self.table.pop((request.group_id, each.name, partition.partition_index), None)
                return OffsetDeleteResponse()
        raise AssertionError(f"no answer to {request}")

    def joined(self, request: JoinGroupRequest, member_id: str, *others: JoinGroupResponseMember) -> JoinGroupResponse:
        """Return the answer to a join that makes its sender the leader."""
        protocol = request.protocols[0]
        own = JoinGroupResponseMember(
            member_id=member_id, group_instance_id=request.group_instance_id, metadata=protocol.metadata
        )
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=protocol.name,
            leader=member_id,
            member_id=member_id,
            members=(own, *others),
        )

    def _refuse(self, request: Request, code: Code) -> Response:
        match request:
            case FindCoordinatorRequest():
                rows = (FindCoordinatorResponseCoordinator(key, -1, "", -1, code) for key in request.coordinator_keys)
                return FindCoordinatorResponse(coordinators=tuple(rows))
            case OffsetCommitRequest():
                return _commit_reply(request, code)
            case OffsetFetchRequest():
                return self._fetch_reply(request, code)
            case JoinGroupRequest():
                return JoinGroupResponse(error_code=code, member_id=request.member_id or "given", protocol_name="")
            case SyncGroupRequest():
                return SyncGroupResponse(error_code=code)
            case HeartbeatRequest():
                return HeartbeatResponse(error_code=code)
            case OffsetDeleteRequest():
                return OffsetDeleteResponse(error_code=code)
        raise AssertionError(f"no refusal of {request}")

    def _coordinator(self, key: str) -> FindCoordinatorResponseCoordinator:
        port = self.coordinator_of.get(key, self).port
        return FindCoordinatorResponseCoordinator(key=key, node_id=port, host="127.0.0.1", port=port)

    def _topic(self, name: str) -> MetadataResponseTopic:
        count = self.topics.get(name)
        if count is None:
            return MetadataResponseTopic(error_code=Code.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        rows = tuple(MetadataResponsePartition(partition_index=number) for number in range(count))
        return MetadataResponseTopic(name=name, is_internal=name.startswith("__"), partitions=rows)

    def _fetch_reply(self, request: OffsetFetchRequest, code: Code) -> OffsetFetchResponse:
        groups = []
        for asked in request.groups:
            wanted = {topic.name: topic.partition_indexes for topic in asked.topics or ()}
            if asked.topics is None and code is Code.NONE:
                for group, topic, partition in self.table:
                    if group == asked.group_id:
                        wanted[topic] = (*wanted.get(topic, ()), partition)
            rows = tuple(
                OffsetFetchResponseTopic(
                    name=topic, partitions=tuple(self._row(asked.group_id, topic, each, code) for each in partitions)
                )
                for topic, partitions in wanted.items()
            )
            groups.append(OffsetFetchResponseGroup(group_id=asked.group_id, topics=rows, error_code=code))
        return OffsetFetchResponse(groups=tuple(groups))

    def _row(self, group: str, topic: str, partition: int, code: Code) -> OffsetFetchResponsePartition:
        nothing = (-1, "", -1)
        offset, metadata, epoch = self.table.get((group, topic, partition), nothing) if code == 0 else nothing
        return OffsetFetchResponsePartition(partition, offset, epoch, metadata, code)


def _commit_reply(request: OffsetCommitRequest, code: Code) -> OffsetCommitResponse:
    return commit_reply(
        {(topic.name, row.partition_index): code for topic in request.topics for row in topic.partitions}
    )


def commit_reply(codes: dict[tuple[str, int], Code]) -> OffsetCommitResponse:
    """Return the answer to a commit, by partition."""
    topics: dict[str, list[OffsetCommitResponsePartition]] = {}
    for (topic, partition), code in codes.items():
        topics.setdefault(topic, []).append(OffsetCommitResponsePartition(partition, code))
    rows = (OffsetCommitResponseTopic(name, tuple(each)) for name, each in topics.items())
    return OffsetCommitResponse(topics=tuple(rows))


def committed(request: OffsetCommitRequest) -> dict[tuple[str, int], int]:
    """Return the offsets that a request commits."""
    return {
        (topic.name, row.partition_index): row.committed_offset for topic in request.topics for row in topic.partitions
    }


@asynccontextmanager
async def scripted(count: int = 1) -> AsyncIterator[list[ScriptedBroker]]:
    """Run brokers that share a table, for the length of a block."""
    table: Table = {}
    brokers = [await ScriptedBroker(table=table).start() for _ in range(count)]
    try:
        yield brokers
    finally:
        for broker in brokers:
            await broker.stop()


#: What is tried again is tried at once; the limit of time is reached only where a test wants it to be.
QUICK = Limits(backoff_first_s=0, backoff_max_s=0, total_timeout_s=WAIT_SECONDS)


def client_of(*brokers: ScriptedBroker, limits: Limits = QUICK, **arguments: Any) -> Client:
    """Return a client that begins with these brokers."""
    return Client([broker.address for broker in brokers], limits=limits, **arguments)


__all__ = [
    "FIND_COORDINATOR",
    "HEARTBEAT",
    "JOIN_GROUP",
    "LEAVE_GROUP",
    "METADATA",
    "OFFSET_COMMIT",
    "OFFSET_DELETE",
    "OFFSET_FETCH",
    "QUICK",
    "SYNC_GROUP",
    "Close",
    "Hold",
    "ScriptedBroker",
    "Silence",
    "client_of",
    "commit_reply",
    "committed",
    "scripted",
]
