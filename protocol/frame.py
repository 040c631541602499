"""Splits a stream of bytes into frames. Where the bytes come from is somebody else's business."""

from struct import Struct
from typing import Final

from protocol.wire import FrameTooLarge, FrameTooSmall

FRAME_BYTES_MAX: Final = 104_857_600
"""Kafka's default limit of a request."""

FRAME_BYTES_MIN: Final = 8
"""API key, version and correlation id of a request; a response has half of it and its reader says so."""

_SIZE_BYTES: Final = 4

_unpack_size = Struct(">i").unpack_from


class FrameBuffer:
    """Holds what has arrived of the next frames, and never more: a length prefix alone reserves nothing."""

    __slots__ = ("_buffer", "_least_bytes", "_limit_bytes", "_start")

    def __init__(self, *, limit_bytes: int = FRAME_BYTES_MAX, least_bytes: int = FRAME_BYTES_MIN) -> None:
        self._buffer: bytes | bytearray = b""
        self._start = 0
        self._limit_bytes = limit_bytes
        self._least_bytes = least_bytes

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait for the rest of their frame, or to be taken out."""
        return len(self._buffer) - self._start

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes of the stream."""
        if self._start == len(self._buffer):
            # Mostly a read brings whole frames; then they are cut from it without another copy.
            self._buffer = data if isinstance(data, bytes) else bytes(data)
        elif isinstance(self._buffer, bytearray):
            del self._buffer[: self._start]
            self._buffer += data
        else:
            # Appending to ``bytes`` would copy a large frame again with each of its pieces.
            self._buffer = bytearray(memoryview(self._buffer)[self._start :])
            self._buffer += data
        self._start = 0

    def next_frame(self) -> bytes | None:
        """Return the next whole frame without its size, or nothing yet.

        Raises:
            ProtocolError: the length prefix is out of bounds; no later frame can be found in this stream.
        """
        buffer = self._buffer
        body = self._start + _SIZE_BYTES
        if len(buffer) < body:
            self._keep_rest()
            return None
        (size,) = _unpack_size(buffer, self._start)
        if size > self._limit_bytes:
            raise FrameTooLarge(size_bytes=size, limit_bytes=self._limit_bytes)
        if size < self._least_bytes:
            raise FrameTooSmall(size_bytes=size, least_bytes=self._least_bytes)
        stop = body + size
        if len(buffer) < stop:
            self._keep_rest()
            return None
        # A slice of ``bytes`` is one copy, but a slice of a ``bytearray`` would be another bytearray.
        frame = buffer[body:stop] if isinstance(buffer, bytes) else bytes(memoryview(buffer)[body:stop])
        if stop == len(buffer):
            # A frame may be large, and its connection idle afterwards.
            self._buffer, self._start = b"", 0
        else:
            self._start = stop
        return frame

    def _keep_rest(self) -> None:
        """Keep only what has not been taken out, so that a small rest does not hold on to a large read."""
        if self._start:
            self._buffer = bytes(memoryview(self._buffer)[self._start :])
            self._start = 0
