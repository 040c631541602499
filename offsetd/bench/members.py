"""Groups in number: a listing of ten thousand, a rebalance of five hundred members, and what others notice of both."""

import asyncio
import json
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from offsetd.bench.cell import generate, generator_command
from offsetd.bench.generator import COUNTING, Result
from offsetd.bench.server import DaemonProcess, ServerFailed
from protocol.api import APIS, Request, decode_response, encode_request
from protocol.errors import Code
from protocol.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

GROUPS: Final = 10_000
MEMBERS: Final = 500
_LISTINGS: Final = 20
_REBALANCES: Final = 5
_SECONDS_MAX: Final = 120.0
_SETTINGS: Final = {"group.initial.rebalance.delay.ms": "1000", "disk.reserve.bytes": "0"}
_KEY_OF: Final = {api.request: api.key for api in APIS.values()}
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """What was seen; the fetches are of one connection that did nothing else meanwhile."""

    groups: int
    list_ms: list[float]
    fetch_while_listing: Result
    members: int
    rebalance_ms: list[float]
    fetch_while_rebalancing: Result
    fetch_idle: Result


def run_members(directory: Path, *, told: Callable[[str], None]) -> Members:
    """Measure a fresh daemon."""
    daemon = DaemonProcess(directory / "members", _SETTINGS)
    try:
        daemon.wait_for("slots_loaded", 30.0)
        generate(daemon, operation="seed", groups=GROUPS, partitions=1, connections=50, depth=4)
        idle = _beside(daemon, lambda: time.sleep(2.0))
        listed: list[float] = []
        while_listing = _beside(daemon, lambda: listed.extend(asyncio.run(_list(daemon.port))))
        told(f"{GROUPS:,} groups listed in {min(listed):.1f}..{max(listed):.1f} ms")
        rebalanced: list[float] = []
        while_rebalancing = _beside(daemon, lambda: rebalanced.extend(asyncio.run(_rebalance(daemon.port))))
        told(f"{MEMBERS} members rebalanced in {min(rebalanced):.0f}..{max(rebalanced):.0f} ms")
        daemon.stop()
    finally:
        daemon.kill()
    return Members(
        groups=GROUPS,
        list_ms=listed,
        fetch_while_listing=while_listing,
        members=MEMBERS,
        rebalance_ms=rebalanced,
        fetch_while_rebalancing=while_rebalancing,
        fetch_idle=idle,
    )


def _beside(daemon: DaemonProcess, work: Callable[[], None]) -> Result:
    """Do some work while one connection fetches without a pause, and return what that one saw."""
    command = generator_command(
        daemon, operation="fetch", groups=1, connections=1, partitions=1, seconds=_SECONDS_MAX, warmup=0
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None, "asked for above"
        try:
            if process.stderr.readline().strip() == COUNTING:
                work()
        finally:
            process.terminate()
        said, complaint = process.communicate(timeout=30.0)
    if not said.startswith("{"):
        raise ServerFailed(f"the generator could not run beside: {complaint.strip()[-300:]}")
    return Result(**json.loads(said))


class _Client:
    """One connection that asks and waits."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.member_id = ""

    @classmethod
    async def connect(cls, port: int) -> "_Client":
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=64 * 1024 * 1024))

    async def ask(self, request: Request, response: type[T]) -> T:
        api = APIS[_KEY_OF[type(request)]]
        self._writer.write(encode_request(api.key, api.max_version, 1, "offsetd-bench", request))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        _, reply = decode_response(api.key, api.max_version, await self._reader.readexactly(size))
        assert isinstance(reply, response), "an answer is of its request's kind"
        return reply

    def close(self) -> None:
        self._writer.close()


async def _list(port: int) -> list[float]:
    client = await _Client.connect(port)
    took = []
    for _ in range(_LISTINGS):
        began = time.perf_counter()
        reply = await client.ask(ListGroupsRequest(), ListGroupsResponse)
        took.append((time.perf_counter() - began) * 1000)
        assert len(reply.groups) >= GROUPS, f"{len(reply.groups)} groups were listed"
    client.close()
    return took


async def _rebalance(port: int) -> list[float]:
    """Let all members join, and then all join again, a few times; return how long each time took."""
    clients = [await _Client.connect(port) for _ in range(MEMBERS)]
    for client in clients:
        # The first answer is the id to join with.
        client.member_id = (await client.ask(_joining(client), JoinGroupResponse)).member_id
    took = []
    # The first one waits for more members, and is not counted.
    for _ in range(_REBALANCES + 1):
        began = time.perf_counter()
        await asyncio.gather(*(_take_part(client) for client in clients))
        took.append((time.perf_counter() - began) * 1000)
    for client in clients:
        client.close()
    return took[1:]


async def _take_part(client: _Client) -> None:
    joined = await client.ask(_joining(client), JoinGroupResponse)
    assert joined.error_code == Code.NONE, f"a join was refused with {joined.error_code}"
    parts = [SyncGroupRequestAssignment(member_id=row.member_id, assignment=bytes(100)) for row in joined.members]
    synced = await client.ask(
        SyncGroupRequest(
            group_id="bench-members",
            generation_id=joined.generation_id,
            member_id=client.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(parts),
        ),
        SyncGroupResponse,
    )
    assert synced.error_code == Code.NONE, f"a sync was refused with {synced.error_code}"


def _joining(client: _Client) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="bench-members",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=client.member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=bytes(100)),),
    )
