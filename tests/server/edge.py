"""A listener with a real broker behind it and real sockets before it; log and clocks are the test's own hand."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from offsetd.broker import Broker
from offsetd.broker.groups import Timer
from offsetd.coordinator.catalog import Identity
from offsetd.coordinator.limits import Limits
from offsetd.observed import Observed
from offsetd.server.connection import Connection
from offsetd.server.limits import ServerLimits
from offsetd.server.listener import Listener
from offsetd.server.peers import Peers
from protocol.offset_commit import OffsetCommitResponse
from tests.fakes.clock import FakeClock
from tests.fakes.log import FakeLog
from tests.fakes.wire import RawClient, commit_codes, commit_request, connect, connected

WAIT_SECONDS = 20.0
_IDENTITY = Identity(cluster_id="abcdefghijklmnopqrstug", broker_id=1, host="127.0.0.1", port=9092)


class Edge:
    """One listener and all that it touches."""

    def __init__(self, *, response_bytes_max: int = 104_857_600, **limits: int) -> None:
        self.clock = FakeClock()
        self.log = FakeLog()
        self.observed = Observed()
        self.broker = Broker(
            identity=_IDENTITY,
            limits=Limits(slots=4, response_bytes_max=response_bytes_max),
            log=self.log,
            observed=self.observed,
            clock=self.clock,
            later=self._later,
            new_id=map(str, count(1)).__next__,
        )
        self.log.connect(self.broker.commits.on_settled, self.broker.commits.on_refused)
        for _ in self.broker.load():
            pass
        self.limits = ServerLimits(**limits)
        self.listener = Listener(self.broker, self.limits, now=self.clock.monotonic)
        self.port = 0
        self._clients: list[RawClient] = []

    def _later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        # What is due at once is the loop's, what is due later the test's.
        if seconds:
            return self.clock.later(seconds, callback)
        return asyncio.get_running_loop().call_soon(callback)

    @property
    def peers(self) -> Peers:
        """The open connections."""
        return self.listener.peers

    def connections(self) -> list[Connection]:
        """Return the open connections, oldest first."""
        return [peer for peer in self.peers if isinstance(peer, Connection)]

    def closed(self) -> dict[str, int]:
        """Return how many connections have ended, by reason."""
        return dict(self.observed.connections_closed)

    def pass_time(self, ms: int) -> None:
        """Let time pass, and the listener look at its connections, once."""
        self.clock.advance(ms)
        self.peers.tick()
        self.broker.commits.time_out()

    async def recover(self) -> None:
        """Let the listener look at its connections, second by second, until they are read from again."""
        while self.peers.held:
            self.pass_time(1000)
            await turns(3)

    async def all_replies(self, clients: Sequence[RawClient]) -> list[bytes]:
        """Let time pass in small steps until each client has read one reply."""
        reading = asyncio.gather(*(client.receive_frame() for client in clients))
        while not reading.done():
            for _ in range(100):
                self.clock.advance(10)
                await turns(1)
            self.peers.tick()
        return await reading

    async def settle_when(self, entries: int) -> None:
        """Wait until so many entries have been appended, and make them durable together."""
        await until(lambda: len(self.log.held) >= entries)
        assert self.log.settle() == entries

    async def have_received(self, size: int) -> None:
        """Wait until so many bytes have come in over all connections."""
        await until(lambda: self.observed.bytes_received == size)

    async def have_closed(self, **reasons: int) -> None:
        """Wait until connections have ended for exactly these reasons."""
        await until(lambda: self.closed() == reasons)

    @asynccontextmanager
    async def client(self, *, reads: bool = True) -> AsyncIterator[RawClient]:
        """Connect, and wait until the connection is there on our side too.

        Args:
            reads: False for a client that reads next to nothing until it is asked to; the system keeps little.
        """
        accepted = self.observed.connections_accepted
        async with connected(self.port, receive_bytes=None if reads else 4096) as client:
            await until(lambda: self.observed.connections_accepted > accepted)
            if not reads:
                transport = self.connections()[-1]._transport
                assert transport is not None
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            yield client

    async def connect(self) -> RawClient:
        """Connect until the end of the test, and wait for nothing."""
        client = await connect(self.port)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        """Close both sides."""
        for client in self._clients:
            await client.close()
        await self.listener.stop(timeout_ms=0)
        await until(lambda: not len(self.peers))

    async def fill(self, group: str, topics: int, partitions: int) -> None:
        """Commit offsets for so many topics and partitions."""
        before = len(self.peers)
        async with self.client() as client:
            for topic in range(topics):
                offsets = {(f"topic-{topic}", partition): partition for partition in range(partitions)}
                client.send(commit_request(group, offsets), 8)
                await self.settle_when(1)
                assert set(commit_codes((await client.receive(OffsetCommitResponse, 8))[1]).values()) == {0}
        await until(lambda: len(self.peers) == before)
        self.observed.connections_closed.clear()


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until something is true."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0)


async def turns(count: int = 50) -> None:
    """Let the loop turn a few times, so that what should not happen could."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def edge(**settings: Any) -> AsyncIterator[Edge]:
    """Listen on a free port for the length of a block."""
    made = Edge(**settings)
    made.port = await made.listener.start("127.0.0.1", 0)
    try:
        yield made
    finally:
        await made.close()
