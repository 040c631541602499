"""Any bytes to the decoders: a message or a ProtocolError comes out, and no memory stays behind."""

import struct
from itertools import islice
from random import Random

from protocol.api import OFFSET_COMMIT, Request, decode_request, encode_request
from protocol.frame import FrameBuffer
from protocol.header import RequestHeader
from protocol.offset_commit import OffsetCommitRequest
from protocol.shape import offset_positions
from protocol.wire import ProtocolError, StringTooLong
from tests.fuzz.campaign import campaign
from tests.fuzz.mutation import Mutator
from tests.fuzz.specimens import ROUTES
from tests.protocol.memory import metered
from tests.protocol.messages import sample_frame

FRAMES_PER_ROUND = 50
#: What one frame may take: its message, which is larger than its bytes by a bounded factor.
FRAME_FACTOR = 64
FRAME_SLACK_BYTES = 64 * 1024
#: What may stay when all is done: small caches of the interpreter, and in each round what the measurement itself holds.
LEFT_BYTES_MAX = 128 * 1024
LEFT_BYTES_PER_ROUND_MAX = 128
#: Tracing memory makes everything ten times as slow.
ROUNDS_PER_MEASUREMENT = 10


def _decoded(frame: bytes) -> tuple[RequestHeader, Request] | None:
    try:
        return decode_request(frame)
    except ProtocolError:
        return None


def _check_message(frame: bytes, header: RequestHeader, request: Request) -> None:
    """What was read ends where the frame ends or before; it can be written, and is then read as the same."""
    assert decode_request(frame + bytes(64)) == (header, request)
    try:
        written = encode_request(header.api_key, header.api_version, header.correlation_id, header.client_id, request)
    except StringTooLong:
        return
    assert decode_request(written[4:]) == (header, request)
    if header.api_key == OFFSET_COMMIT:
        assert isinstance(request, OffsetCommitRequest)
        offsets = [row.committed_offset for topic in request.topics for row in topic.partitions]
        found = [struct.unpack_from(">q", frame, position)[0] for position in offset_positions(frame)]
        assert found == offsets


def _check_positions(frame: bytes) -> None:
    try:
        positions = offset_positions(frame)
    except ProtocolError:
        return
    assert len(positions) <= len(frame)


def _check_stream(random: Random, frames: list[bytes]) -> None:
    """Whatever the pieces, the frame buffer gives back the frames, up to a length that cannot be."""
    limit = random.choice((300, 100_000))
    good = len(frames) if max(map(len, frames)) <= limit else [len(frame) <= limit for frame in frames].index(False)
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    buffer = FrameBuffer(limit_bytes=limit)
    found: list[bytes] = []
    try:
        while stream:
            size = random.choice((1, 3, 17, 200, 5000))
            buffer.feed(stream[:size])
            stream = stream[size:]
            found.extend(islice(iter(buffer.next_frame, None), random.choice((0, 1, 2, 100))))
        found.extend(iter(buffer.next_frame, None))
    except ProtocolError:
        assert good < len(frames)
    assert found == frames[:good]


def _check(frame: bytes) -> bool:
    """Check one frame; tell whether it was accepted."""
    decoded = _decoded(frame)
    if decoded is not None:
        _check_message(frame, *decoded)
    _check_positions(frame)
    return decoded is not None


def _check_memory(frames: list[bytes]) -> int:
    """Check what each frame takes; return what all of them left behind."""
    with metered() as meter:
        before = meter.held_bytes()
        for frame in frames:
            taken = meter.peak_bytes(_decoded, frame)
            assert taken <= FRAME_SLACK_BYTES + FRAME_FACTOR * len(frame), f"{taken} bytes for {frame.hex()}"
        return meter.held_bytes() - before


def test_nothing_but_a_protocol_error_comes_out_of_the_decoders() -> None:
    for route in ROUTES:
        decode_request(sample_frame(route))
    with campaign("decoder fuzzer") as run:
        mutator = Mutator(run.random)
        accepted = left_bytes = 0
        run.begin()
        for number in run.rounds():
            frames = [mutator.frame() for _ in range(FRAMES_PER_ROUND)]
            for frame in frames:
                run.frames += 1
                try:
                    accepted += _check(frame)
                except BaseException as error:
                    error.add_note(f"the frame is {frame.hex()}")
                    raise
            _check_stream(run.random, frames)
            if number % ROUNDS_PER_MEASUREMENT == 0:
                left_bytes += _check_memory(frames)
        print(f"accepted {accepted / run.frames:.0%}, {left_bytes} bytes left behind")

        # A fuzzer whose frames are nearly all refused, or hardly any, tests little.
        assert 0.1 < accepted / run.frames < 0.9
        assert left_bytes <= LEFT_BYTES_MAX + LEFT_BYTES_PER_ROUND_MAX * number / ROUNDS_PER_MEASUREMENT
