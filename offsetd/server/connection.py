"""One client's connection: bytes in, frames to the broker, replies out in order.

Back-pressure is TCP's: when too many requests wait, when the peer does not read its replies, or when all connections
together hold too much memory, this connection stops reading.
"""

import asyncio
from struct import Struct
from typing import cast

import structlog

from offsetd.broker import Broker
from offsetd.broker.turns import REQUEST_BYTES_LEAST, Turns
from offsetd.broker.waiter import Waiter
from offsetd.coordinator.shape import Shape
from offsetd.server.keepalive import keep_alive
from offsetd.server.limits import ServerLimits
from offsetd.server.peers import Peers
from protocol.frame import FrameBuffer
from protocol.wire import ProtocolError

logger = structlog.get_logger()

_SIZE = Struct(">i")
#: Replies that a peer has not read; above this we stop reading from it.
_UNSENT_BYTES_MAX = 64 * 1024


class Connection(asyncio.Protocol):
    """A Kafka client, as the loop sees it."""

    __slots__ = (
        "_broker",
        "_buffered",
        "_feeding",
        "_frames",
        "_in_flight_max",
        "_paused",
        "_peers",
        "_transport",
        "_whole_bytes_max",
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
        self._in_flight_max = limits.in_flight_max
        # A frame that all the memory there is could not hold would never become whole.
        frame_bytes_max = min(limits.frame_bytes_max, limits.memory_bytes_max)
        self._frames = FrameBuffer(limit_bytes=frame_bytes_max)
        self._whole_bytes_max = frame_bytes_max + _SIZE.size
        self._transport: asyncio.Transport | None = None
        self._buffered = 0
        self._feeding = False
        self._paused = False
        self.turns = Turns(self._send, self._drained, self._fail)
        self.host = ""
        self.address = ""
        self.shapes: dict[bytes, Shape] = {}
        self.received_at = 0.0
        # When the oldest unfinished frame began, and when the peer stopped reading: 0.0 for not so.
        self.frame_since = 0.0
        self.unsent_since = 0.0
        # No more requests are taken: it ends, at once or when those before have been answered.
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
        keep_alive(transport.get_extra_info("socket"))
        if self._peers.held:
            # Not yet: the loop begins to read when this method has returned.
            asyncio.get_running_loop().call_soon(self._share_hold)

    def data_received(self, data: bytes) -> None:
        """Take bytes: almost always exactly one whole frame, which then needs no buffer."""
        if self.closing:
            return
        self.received_at = self._peers.now()
        size = len(data)
        self._broker.observed.bytes_received += size
        if (
            not self._buffered
            and 12 <= size <= self._whole_bytes_max
            and _SIZE.unpack_from(data)[0] == size - 4
            and len(self.turns.queue) < self._in_flight_max
        ):
            self._receive(data[4:])
            return
        self._frames.feed(data)
        self._buffered += size
        self._peers.took(size)
        self._take_frames()

    def eof_received(self) -> bool:
        """Answer what is in flight; then the connection is closed by us."""
        self._end()
        return True

    def pause_writing(self) -> None:
        """Stop reading from a peer that does not read, and make no more replies for it."""
        self.unsent_since = self._peers.now()
        # The rest of a frame is not waited for while we do not read.
        self.frame_since = 0.0
        self.hold()
        self._peers.took(self._unsent_bytes())

    def resume_writing(self) -> None:
        """Go on."""
        self.unsent_since = 0.0
        self.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the peer; entries of its that are on their way complete without it."""
        self._broker.observed.in_flight_bytes -= self._buffered
        self._buffered = 0
        # Entries on their way still know this object, but need nothing of what it held.
        self._frames = FrameBuffer()
        self.turns.drop()
        self._transport = None
        self._peers.gone(self, "peer" if exc is None else "error")

    # --- frames -----------------------------------------------------------------------------------------------------

    def _take_frames(self) -> None:
        """Take the frames that have arrived, but not so many at once that other connections would notice."""
        if self._feeding:
            return
        self._feeding = True
        queue = self.turns.queue
        left = self._in_flight_max
        try:
            while left and not self.closing and len(queue) < self._in_flight_max and not self.unsent_since:
                frame = self._frames.next_frame()
                if frame is None:
                    break
                left -= 1
                size = len(frame) + _SIZE.size
                self._buffered -= size
                self._broker.observed.in_flight_bytes -= size
                self.frame_since = 0.0
                self._receive(frame)
        except ProtocolError as error:
            self._fail(error)
        finally:
            self._feeding = False
        if self.closing:
            return
        if len(queue) >= self._in_flight_max or self.unsent_since:
            self.pause()
        elif self._buffered and left:
            self.frame_since = self.frame_since or self._peers.now()
        elif self._buffered:
            self.pause()
            asyncio.get_running_loop().call_soon(self.resume)

    def _receive(self, frame: bytes) -> None:
        try:
            self._broker.receive(frame, self)
        except Exception as error:  # noqa: BLE001  (told apart below)
            self._fail(error)
            return
        if len(frame) > REQUEST_BYTES_LEAST and self.turns.queue:
            turn = self.turns.queue[-1]
            # A request that needs no reply leaves the last place to the one before it.
            if turn.held_bytes == REQUEST_BYTES_LEAST:
                turn.held_bytes = len(frame)
                self._peers.took(len(frame))

    def _fail(self, error: Exception) -> None:
        """Close for a request that cannot be answered."""
        if isinstance(error, ProtocolError):
            self.close("malformed", str(error))
            return
        # A fault of ours in one request costs its connection and is loud; it must not cost anybody else theirs.
        logger.error("request_failed", peer=self.address, exc_info=error)
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

    def pause(self) -> None:
        """Stop reading."""
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def hold(self) -> None:
        """Take no more requests, and evaluate no more reads of those that wait."""
        self.turns.block()
        self.pause()

    def _share_hold(self) -> None:
        if self._peers.held:
            self.hold()

    def resume(self) -> None:
        """Go on, if every reason to stop is gone."""
        if not self._paused or self._transport is None:
            return
        if not self.unsent_since and not self._peers.held:
            # Replies that leave now may be too many again.
            self.turns.unblock()
        if self.closing:
            self._close_when_answered()
            return
        if self.unsent_since or not self._peers.reading or len(self.turns.queue) >= self._in_flight_max:
            return
        self._paused = False
        self._take_frames()
        if not self._paused and self._transport is not None and not self.closing:
            self._transport.resume_reading()

    # --- ends -------------------------------------------------------------------------------------------------------

    def is_waiting(self) -> bool:
        """Tell whether a request waits for its reply."""
        return bool(self.turns.queue)

    def hurry(self) -> None:
        """Answer now what only waits for time to pass."""
        self.turns.hurry()

    def is_idle(self) -> bool:
        """Tell whether nothing is in flight or half sent."""
        return not self.turns.queue and self._unsent_bytes() == 0

    def _unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def stuck_bytes(self) -> int:
        """Return the memory that only the peer, or the end of the connection, can free."""
        return self._buffered + self._unsent_bytes()

    def held_bytes(self) -> int:
        """Return the memory that this connection holds, but for its commits, which outlive it."""
        queue = self.turns.queue
        transport = self._transport
        held = self._buffered if transport is None else self._buffered + transport.get_write_buffer_size()
        if queue:
            held += sum(turn.held_bytes for turn in queue if not isinstance(turn, Waiter))
        return held

    def close(self, reason: str, detail: str) -> None:
        """Close: at once, or for a malformed request, when those before it have been answered."""
        transport = self._transport
        if self.closing:
            # It had its time to end gently.
            if transport is not None:
                transport.abort()
            return
        self._peers.closing(self, reason, detail)
        if reason == "malformed":
            self._end()
            return
        self.closing = True
        if transport is not None:
            if reason == "stopped":
                transport.close()
            else:
                transport.abort()

    def _end(self) -> None:
        """Take no more requests; close when those that were taken have been answered."""
        self.closing = True
        self.frame_since = 0.0
        self.pause()
        self._close_when_answered()

    def _close_when_answered(self) -> None:
        if not self.turns.queue and self._transport is not None:
            if self._unsent_bytes():
                # The transport closes when the peer has read these; it has its time for that, as always.
                self.unsent_since = self.unsent_since or self._peers.now()
            self._transport.close()
