"""Splitting a stream into frames: any pieces in, whole frames out, and no byte of memory on a mere promise."""

import struct
from itertools import cycle, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.frame import FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameBuffer
from protocol.wire import FrameTooLarge, FrameTooSmall
from tests.protocol.memory import metered


def _framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _drain(buffer: FrameBuffer, frames_max: int = 100) -> list[bytes]:
    return list(islice(iter(buffer.next_frame, None), frames_max))


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(
    bodies=st.lists(st.binary(min_size=8, max_size=40), min_size=1, max_size=6),
    sizes=st.lists(st.integers(1, 60), min_size=1),
    kind=st.sampled_from([bytes, bytearray, memoryview]),
    frames_max=st.sampled_from([0, 1, 100]),
)
def test_a_stream_cut_anywhere_gives_the_same_frames(
    bodies: list[bytes], sizes: list[int], kind: type[bytes | bytearray | memoryview], frames_max: int
) -> None:
    stream = b"".join(map(_framed, bodies))
    buffer = FrameBuffer()
    frames = []
    at = 0
    for size in cycle(sizes):
        buffer.feed(kind(stream[at : at + size]))
        at += size
        frames += _drain(buffer, frames_max)
        if at >= len(stream):
            break
    frames += _drain(buffer)

    assert frames == bodies
    assert all(type(frame) is bytes for frame in frames)
    assert buffer.pending_bytes == 0


def test_byte_by_byte_is_fine_too() -> None:
    buffer = FrameBuffer()
    frames = []
    for byte in _framed(b"12345678") + _framed(b"another frame"):
        buffer.feed(bytes([byte]))
        frames += _drain(buffer)

    assert frames == [b"12345678", b"another frame"]


def test_a_frame_taken_out_of_pieces_leaves_the_beginning_of_the_next() -> None:
    stream = _framed(b"first frame") + _framed(b"second frame")
    buffer = FrameBuffer()
    buffer.feed(stream[:7])
    buffer.feed(stream[7:20])

    assert buffer.next_frame() == b"first frame"
    buffer.feed(stream[20:])
    assert buffer.next_frame() == b"second frame"


def test_what_waits_is_counted() -> None:
    buffer = FrameBuffer()
    buffer.feed(_framed(b"12345678") + b"\0\0")

    assert buffer.pending_bytes == 14
    assert buffer.next_frame() == b"12345678"
    assert buffer.pending_bytes == 2
    assert buffer.next_frame() is None


@pytest.mark.parametrize("size", [-(2**31), -2, -1, 0, 1, FRAME_BYTES_MIN - 1])
def test_a_length_below_a_header_is_refused(size: int) -> None:
    buffer = FrameBuffer()
    buffer.feed(struct.pack(">i", size) + bytes(16))

    with pytest.raises(FrameTooSmall) as refused:
        buffer.next_frame()
    assert refused.value.size_bytes == size


# The last but one is the word GET of an HTTP client, the last the first bytes of a TLS handshake.
@pytest.mark.parametrize("prefix", [b"\x06\x40\x00\x01", b"\x7f\xff\xff\xff", b"GET ", b"\x16\x03\x01\x02"])
def test_a_length_above_the_limit_is_refused_at_its_fourth_byte(prefix: bytes) -> None:
    buffer = FrameBuffer()
    buffer.feed(prefix[:3])
    assert buffer.next_frame() is None
    buffer.feed(prefix[3:])

    with pytest.raises(FrameTooLarge):
        buffer.next_frame()


def test_the_frames_before_a_bad_length_are_not_lost() -> None:
    buffer = FrameBuffer()
    buffer.feed(_framed(b"12345678") + b"\xff\xff\xff\xff")

    assert buffer.next_frame() == b"12345678"
    with pytest.raises(FrameTooSmall):
        buffer.next_frame()
    # No later frame can be found in such a stream.
    with pytest.raises(FrameTooSmall):
        buffer.next_frame()


def test_the_limits_are_the_owners() -> None:
    buffer = FrameBuffer(limit_bytes=10, least_bytes=4)
    buffer.feed(_framed(b"1234") + _framed(b"1234567890") + _framed(b"12345678901"))

    assert buffer.next_frame() == b"1234"
    assert buffer.next_frame() == b"1234567890"
    with pytest.raises(FrameTooLarge):
        buffer.next_frame()


def test_a_length_alone_reserves_nothing() -> None:
    def promise() -> None:
        buffer = FrameBuffer()
        buffer.feed(struct.pack(">i", FRAME_BYTES_MAX))
        assert buffer.next_frame() is None
        for _ in range(100):
            buffer.feed(bytes(10))
            assert buffer.next_frame() is None
        assert buffer.pending_bytes == 1004

    with metered() as meter:
        assert meter.peak_bytes(promise) < 16 * 1024


def test_a_large_frame_in_many_pieces_takes_little_more_than_its_size() -> None:
    piece = bytes(64 * 1024)
    count = 64

    def receive() -> None:
        buffer = FrameBuffer()
        buffer.feed(struct.pack(">i", count * len(piece)))
        for _ in range(count):
            assert buffer.next_frame() is None
            buffer.feed(piece)
        frame = buffer.next_frame()
        assert frame is not None
        assert len(frame) == count * len(piece)

    with metered() as meter:
        # What has arrived, with the slack of a growing buffer, and the frame cut out of it, for a moment twice.
        assert meter.peak_bytes(receive) < 3.5 * count * len(piece)
