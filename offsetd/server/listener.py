"""The listening socket: where connections come in, until the daemon is told to stop."""

import asyncio
import resource
import socket
import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from offsetd.broker import Broker
from offsetd.server.connection import Connection
from offsetd.server.limits import ServerLimits
from offsetd.server.peers import Peers

logger = structlog.get_logger()

_BACKLOG = 1024
#: Descriptors kept free for segments, the checkpoint, the helper processes and HTTP.
_DESCRIPTORS_RESERVED = 128
_TICK_SECONDS = 1.0


class Listener:
    """Accepts clients and hands each a connection to the broker."""

    def __init__(self, broker: Broker, limits: ServerLimits, *, now: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._limits = _within_descriptors(limits)
        self.peers = Peers(self._limits, broker.observed, pending_bytes=broker.commits.held_bytes, now=now)
        self._server: asyncio.Server | None = None
        self._ticking: asyncio.TimerHandle | None = None

    @property
    def connections_max(self) -> int:
        """How many connections may be open."""
        return self._limits.connections_max

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port (of use when 0 was asked for)."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._broker, self.peers, self._limits),
            host,
            port,
            backlog=_BACKLOG,
            family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        )
        self._tick(loop)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        # First the next one: whatever goes wrong in this, deadlines go on.
        self._ticking = loop.call_later(_TICK_SECONDS, self._tick, loop)
        self.peers.tick()
        self._broker.commits.time_out()

    def stop_accepting(self) -> None:
        """Take no new connection."""
        if self._server is not None:
            self._server.close()

    async def stop(self, *, timeout_ms: int) -> None:
        """Let what is in flight be answered, then close every connection."""
        self.stop_accepting()
        # Otherwise a client that sends the next request on every reply would keep us here until the time is over.
        self.peers.stop_reading()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        # Looking is cheap and happens once in a daemon's life; an event would cost every reply.
        while any(not peer.is_idle() for peer in self.peers) and loop.time() < deadline:
            for peer in self.peers:
                peer.hurry()
            await asyncio.sleep(0.01)
        if self._ticking is not None:
            self._ticking.cancel()
        for peer in self.peers:
            peer.close("stopped", "the daemon is stopping")
        # One more turn, so that the sockets are closed before the loop is.
        await asyncio.sleep(0.01)


def _within_descriptors(limits: ServerLimits) -> ServerLimits:
    """Lower the limit of connections to what the process may open, so that the journal never lacks a descriptor."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = max(soft - _DESCRIPTORS_RESERVED, 16)
    if limits.connections_max > room:
        logger.warning("connections_limited", max_connections=room, reason="the limit of open files", open_files=soft)
        return replace(limits, connections_max=room)
    return limits
