"""All connections together: who may come in, who has been silent too long, who holds too much memory.

Memory is counted as it comes, where it is much; all of it is counted anew once a second, and before anybody suffers.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Protocol

import structlog

from offsetd.logs import RateLimited
from offsetd.observed import Observed
from offsetd.server.limits import ServerLimits

logger = structlog.get_logger()

#: Ending a connection that holds less would help nobody.
_SHED_BYTES_MIN = 64 * 1024


class Peer(Protocol):
    """What is known of a connection here."""

    host: str
    address: str
    received_at: float
    frame_since: float
    unsent_since: float

    def is_waiting(self) -> bool:
        """Tell whether a request waits for its reply."""

    def hurry(self) -> None:
        """Answer now what only waits for time to pass."""

    def is_idle(self) -> bool:
        """Tell whether nothing is in flight or half sent."""

    def held_bytes(self) -> int:
        """Memory it holds, but for the commits that are on their way through the log."""

    def stuck_bytes(self) -> int:
        """How much of it would be free if it were closed."""

    def close(self, reason: str, detail: str) -> None:
        """End it."""

    def pause(self) -> None:
        """Take no more requests from it."""

    def hold(self) -> None:
        """Take no more requests from it, and make no more replies for it."""

    def resume(self) -> None:
        """Go on with it if it may."""


class Peers:
    """The open connections, and the limits that they share."""

    def __init__(
        self,
        limits: ServerLimits,
        observed: Observed,
        *,
        pending_bytes: Callable[[], int],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = now
        self._limits = limits
        self._observed = observed
        # The memory of commits between append and settled, which outlive their connection.
        self._pending_bytes = pending_bytes
        self._open: dict[Peer, None] = {}
        self._by_host: Counter[str] = Counter()
        self._reasons: dict[Peer, str] = {}
        self._tokens = float(limits.connections_per_second_max)
        self._tokens_at = now()
        self._loud = RateLimited(logger)
        # What was held a second ago, if it was too much then.
        self._excessive_bytes: int | None = None
        # There is no memory for more requests and replies, for nobody.
        self.held = False
        self._stopping = False

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

    # --- memory -----------------------------------------------------------------------------------------------------

    def took(self, size: int) -> None:
        """Count memory that a connection has taken; above the budget nobody is read from until there is room."""
        self._observed.in_flight_bytes += size
        # What came free since it was last counted is still in the number.
        if not self.held and self._over_memory():
            self._count()
            if self._over_memory():
                self._hold()

    @property
    def reading(self) -> bool:
        """Whether requests are taken at all."""
        return not self.held and not self._stopping

    def stop_reading(self) -> None:
        """Take no more requests from anybody, for good; those that were taken are answered."""
        self._stopping = True
        for peer in list(self._open):
            peer.pause()

    def _count(self) -> int:
        total = self._pending_bytes() + sum(peer.held_bytes() for peer in self._open)
        self._observed.in_flight_bytes = total
        return total

    def _over_memory(self) -> bool:
        return self._observed.in_flight_bytes > self._limits.memory_bytes_max

    def _hold(self) -> None:
        self.held = True
        for peer in list(self._open):
            peer.hold()

    def _release(self) -> None:
        self.held = False
        for peer in list(self._open):
            peer.resume()

    def _relieve(self) -> None:
        """Find out what is really held; if a whole second has freed nothing, end those who hold the most."""
        total = self._count()
        before = self._excessive_bytes
        if not self._over_memory():
            self._excessive_bytes = None
            if self.held:
                self._release()
            return
        self._excessive_bytes = total
        if not self.held:
            self._hold()
        elif before is not None and total >= before:
            excess = total - self._limits.memory_bytes_max * 3 // 4
            for peer in sorted(self._open, key=lambda peer: peer.stuck_bytes(), reverse=True):
                size = peer.stuck_bytes()
                if size < _SHED_BYTES_MIN or excess <= 0:
                    break
                excess -= size
                peer.close("memory", f"all connections together hold {total} bytes, and this one {size} of them")

    # --- time -------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Once a second: end the silent and the stuck, let the others go on."""
        now = self.now()
        limits = self._limits
        # The moments before which it was too long ago: there may be ten thousand peers to hold against them.
        frame_before = now - limits.frame_read_ms_max / 1000
        unsent_before = now - limits.reply_write_ms_max / 1000
        received_before = now - limits.idle_ms_max / 1000
        for peer in list(self._open):
            if peer.frame_since and peer.frame_since < frame_before:
                peer.close("frame_timeout", f"a request was not whole after {limits.frame_read_ms_max} ms")
            elif peer.unsent_since and peer.unsent_since < unsent_before:
                peer.close("write_timeout", f"replies were not read for {limits.reply_write_ms_max} ms")
            elif peer.received_at < received_before and not peer.is_waiting():
                peer.close("idle", f"nothing was received for {limits.idle_ms_max} ms")
        self._relieve()
        self._loud.flush(int(now * 1000))
