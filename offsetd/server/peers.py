"""All connections together: who may come in, who has been silent too long, who holds too much memory."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import structlog

from offsetd.logs import RateLimited
from offsetd.observed import Observed
from offsetd.server.limits import ServerLimits

logger = structlog.get_logger()


class Peer(Protocol):
    """What is known of a connection here."""

    host: str
    address: str
    received_at: float
    frame_since: float
    unsent_since: float

    def is_idle(self) -> bool:
        """Tell whether nothing is in flight."""

    def held_bytes(self) -> int:
        """Memory it holds."""

    def close(self, reason: str, detail: str) -> None:
        """End it."""

    def resume(self) -> None:
        """Let it read again if it may."""


class Peers:
    """The open connections, and the limits that they share."""

    def __init__(self, limits: ServerLimits, observed: Observed) -> None:
        self._limits = limits
        self._observed = observed
        self._open: dict[Peer, None] = {}
        self._by_host: Counter[str] = Counter()
        self._reasons: dict[Peer, str] = {}
        self._tokens = float(limits.connections_per_second_max)
        self._tokens_at = time.monotonic()
        self._loud = RateLimited(logger)
        self.now = time.monotonic

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Peer]:
        return iter(list(self._open))

    def admit(self, peer: Peer) -> bool:
        """Take a new connection, unless a limit is reached."""
        refusal = self._refusal(peer)
        if refusal is not None:
            self._observed.connections_refused[refusal] += 1
            self._loud.warning(int(self.now() * 1000), refusal, "connection_refused", peer=peer.address, limit=refusal)
            return False
        self._open[peer] = None
        self._by_host[peer.host] += 1
        self._observed.connections_accepted += 1
        self._observed.connections_open += 1
        return True

    def _refusal(self, peer: Peer) -> str | None:
        limits = self._limits
        if len(self._open) >= limits.connections_max:
            return "max.connections.total"
        if self._by_host[peer.host] >= limits.connections_per_host_max:
            return "max.connections.per.ip"
        rate = limits.connections_per_second_max
        now = self.now()
        self._tokens = min(float(rate), self._tokens + (now - self._tokens_at) * rate)
        self._tokens_at = now
        if self._tokens < 1:
            return "max.connection.creation.rate"
        self._tokens -= 1
        return None

    def closing(self, peer: Peer, reason: str, detail: str) -> None:
        """Hear why a connection is being closed by us."""
        if peer in self._open:
            self._reasons[peer] = reason
        if reason != "stopped":
            self._loud.warning(
                int(self.now() * 1000), reason, "connection_closed", peer=peer.address, reason=reason, detail=detail
            )

    def gone(self, peer: Peer, reason: str) -> None:
        """Hear that a connection has ended."""
        if self._open.pop(peer, peer) is None:
            self._by_host[peer.host] -= 1
            if not self._by_host[peer.host]:
                del self._by_host[peer.host]
            self._observed.connections_open -= 1
            self._observed.connections_closed[self._reasons.pop(peer, reason)] += 1

    def over_memory(self) -> bool:
        """Tell whether requests and unsent replies of all connections hold too much."""
        return self._observed.in_flight_bytes > self._limits.memory_bytes_max

    def tick(self) -> None:
        """Once a second: end the silent and the stuck, let the others go on."""
        now = self.now()
        limits = self._limits
        for peer in list(self._open):
            if peer.frame_since and (now - peer.frame_since) * 1000 > limits.frame_read_ms_max:
                peer.close("frame_timeout", f"a request was not whole after {limits.frame_read_ms_max} ms")
            elif peer.unsent_since and (now - peer.unsent_since) * 1000 > limits.reply_write_ms_max:
                peer.close("write_timeout", f"replies were not read for {limits.reply_write_ms_max} ms")
            elif (now - peer.received_at) * 1000 > limits.idle_ms_max and peer.is_idle():
                peer.close("idle", f"nothing was received for {limits.idle_ms_max} ms")
            else:
                peer.resume()
        if self.over_memory():
            # The largest holder is the likeliest abuser, and ending it frees the most.
            largest = max(self._open, key=lambda peer: peer.held_bytes(), default=None)
            if largest is not None and all(peer.frame_since for peer in self._open if peer.held_bytes()):
                largest.close("memory", "all connections together hold too much memory, and this one the most")
