"""One client's connection: bytes in, frames to the broker, replies out in order.

Back-pressure is TCP's: when too many requests wait, when the peer does not read its replies, or when all connections
together hold too much memory, this connection stops reading.
"""

import asyncio
import socket
from struct import Struct
from typing import cast

import structlog

from offsetd.broker import Broker
from offsetd.broker.turns import Turns
from offsetd.coordinator.shape import Shape
from offsetd.server.limits import ServerLimits
from offsetd.server.peers import Peers
from protocol.frame import FrameBuffer
from protocol.wire import ProtocolError

logger = structlog.get_logger()

_SIZE = Struct(">i")
#: Replies that a peer has not read; above this we stop reading from it.
_UNSENT_BYTES_MAX = 1024 * 1024
_SMALLEST_FRAME_BYTES = 8


class Connection(asyncio.Protocol):
    """A Kafka client, as the loop sees it."""

    __slots__ = (
        "_broker",
        "_buffered",
        "_feeding",
        "_frames",
        "_limits",
        "_paused",
        "_peers",
        "_transport",
        "_write",
        "address",
        "closing",
        "frame_since",
        "host",
        "received_at",
        "shapes",
        "turns",
        "unsent_since",
    )

    def __init__(self, broker: Broker, peers: Peers, limits: ServerLimits) -> None:
        self._broker = broker
        self._peers = peers
        self._limits = limits
        self._frames = FrameBuffer(limit_bytes=limits.frame_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._buffered = 0
        self._feeding = False
        self._paused = False
        self.turns = Turns(self._send, self._drained)
        self.host = ""
        self.address = ""
        self.shapes: dict[bytes, Shape] = {}
        self.received_at = 0.0
        # When the oldest unfinished frame began, and when the peer stopped reading: 0.0 for not so.
        self.frame_since = 0.0
        self.unsent_since = 0.0
        self.closing = False

    # --- the loop's calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, or close it at once when a limit says so."""
        # uvloop's transports are not asyncio's classes, only their equals.
        transport = cast("asyncio.Transport", transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        # Kafka writes a client's host with a slash before it, and admin tools show it so.
        self.host = f"/{name[0]}" if name else "/"
        self.address = f"{name[0]}:{name[1]}" if name else "unknown"
        self.received_at = self._peers.now()
        if not self._peers.admit(self):
            self.closing = True
            transport.abort()
            return
        transport.set_write_buffer_limits(high=_UNSENT_BYTES_MAX)
        self.shapes = self._broker.shapes.of(self.host)
        _keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Take bytes: almost always exactly one whole frame, which then needs no buffer."""
        if self.closing:
            return
        self.received_at = self._peers.now()
        observed = self._broker.observed
        observed.bytes_received += len(data)
        if (
            not self._buffered
            and len(data) >= 12
            and _SIZE.unpack_from(data)[0] == len(data) - 4
            and len(self.turns.queue) < self._limits.in_flight_max
        ):
            self._receive(data[4:])
            return
        self._frames.feed(data)
        self._buffered += len(data)
        observed.in_flight_bytes += len(data)
        self._take_frames()

    def eof_received(self) -> bool | None:
        """Let what is in flight finish; then the connection is closed by us."""
        return None

    def pause_writing(self) -> None:
        """Stop reading from a peer that does not read."""
        self.unsent_since = self._peers.now()
        self._pause()

    def resume_writing(self) -> None:
        """Go on."""
        self.unsent_since = 0.0
        self._drained()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the peer; entries of its that are on their way complete without it."""
        self._broker.observed.in_flight_bytes -= self._buffered
        self._buffered = 0
        self.turns.queue.clear()
        self._transport = None
        self._peers.gone(self, "peer" if exc is None else "error")

    # --- frames -----------------------------------------------------------------------------------------------------

    def _take_frames(self) -> None:
        if self._feeding:
            return
        self._feeding = True
        try:
            while not self.closing and len(self.turns.queue) < self._limits.in_flight_max and not self.unsent_since:
                frame = self._frames.next_frame()
                if frame is None:
                    break
                size = len(frame) + 4
                self._buffered -= size
                self._broker.observed.in_flight_bytes -= size
                self.frame_since = 0.0
                self._receive(frame)
        except ProtocolError as error:
            self.close("malformed", str(error))
            return
        finally:
            self._feeding = False
        waiting = len(self.turns.queue) >= self._limits.in_flight_max
        if self._buffered and not waiting:
            self.frame_since = self.frame_since or self._peers.now()
        if waiting or self.unsent_since or (self._buffered and self._peers.over_memory()):
            self._pause()

    def _receive(self, frame: bytes) -> None:
        try:
            self._broker.receive(frame, self)
        except ProtocolError as error:
            self.close("malformed", str(error))
        except Exception:
            # A fault of ours in one request costs its connection and is loud; it must not cost anybody else theirs.
            logger.exception("request_failed", peer=self.address, api_key=int.from_bytes(frame[:2], "big"))
            self.close("fault", "internal fault")

    # --- replies ----------------------------------------------------------------------------------------------------

    def _send(self, reply: bytes) -> None:
        transport = self._transport
        if transport is not None:
            self._broker.observed.bytes_sent += len(reply)
            transport.write(reply)

    def _drained(self) -> None:
        if self._paused and not self._feeding:
            self.resume()

    def _pause(self) -> None:
        if not self._paused and self._transport is not None and not self.closing:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again, if every reason to stop is gone."""
        if not self._paused or self._transport is None or self.closing:
            return
        if self.unsent_since or len(self.turns.queue) >= self._limits.in_flight_max:
            return
        if self._buffered and self._peers.over_memory():
            return
        self._paused = False
        self._take_frames()
        if not self._paused and self._transport is not None and not self.closing:
            self._transport.resume_reading()

    # --- ends -------------------------------------------------------------------------------------------------------

    def is_idle(self) -> bool:
        """Tell whether nothing is in flight or half sent."""
        return not self.turns.queue and self._unsent_bytes() == 0

    def _unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def held_bytes(self) -> int:
        """Return the memory that this connection holds."""
        return self._buffered + self._unsent_bytes()

    def close(self, reason: str, detail: str) -> None:
        """Close at once: what has been answered was sent, what has not will not be."""
        if self.closing:
            return
        self.closing = True
        self._peers.closing(self, reason, detail)
        if self._transport is not None:
            if reason in {"malformed", "stopped"}:
                self._transport.close()
            else:
                self._transport.abort()


def _keep_alive(sock: socket.socket | None) -> None:
    """Find peers that vanished without a word."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 90_000)
