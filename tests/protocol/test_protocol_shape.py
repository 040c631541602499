"""Where the offsets stand in a commit."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.api import APIS, OFFSET_COMMIT, decode_request
from protocol.shape import OFFSET_BYTES, offset_positions
from protocol.wire import ProtocolError, UnsupportedApi
from tests.protocol.layout import Piece, frame_of, request_pieces, varint
from tests.protocol.messages import Route, messages, request_routes, sample, sample_frame

_COMMITS = [route for route in request_routes() if route.api.key == OFFSET_COMMIT]
_OTHERS = [route for route in request_routes() if route.api.key != OFFSET_COMMIT]
_UNKNOWN_TAGS = varint(2) + b"\x63\x03abc\x62\x00"


def _places(pieces: list[Piece]) -> tuple[int, ...]:
    """Where the offsets begin, by adding up what stands before them."""
    places, at = [], 0
    for piece in pieces:
        if piece.what == "OffsetCommitRequestPartition.committed_offset":
            places.append(at)
        at += len(piece.data)
    return tuple(places)


@pytest.mark.parametrize("route", _COMMITS, ids=str)
@settings(max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_positions_are_those_of_the_offsets(route: Route, data: st.DataObject) -> None:
    request = data.draw(messages(route.api.request, route.version))
    client_id = data.draw(st.none() | st.sampled_from(["", "cli", "ä群😀", "x" * 200]))
    tagged = data.draw(st.booleans())
    trailing = data.draw(st.binary(max_size=5))
    pieces = [
        piece._replace(data=_UNKNOWN_TAGS) if piece.role == "tags" and tagged else piece
        for piece in request_pieces(route, request, client_id=client_id)
    ]
    frame = frame_of(pieces) + trailing

    positions = offset_positions(frame)

    assert positions == _places(pieces)
    offsets = [row.committed_offset for topic in request.topics for row in topic.partitions]
    assert [struct.unpack_from(">q", frame, position)[0] for position in positions] == offsets
    assert decode_request(frame)[1] == request


@pytest.mark.parametrize("route", _COMMITS, ids=str)
def test_other_bytes_there_are_other_offsets_and_nothing_else(route: Route) -> None:
    request = sample(APIS[OFFSET_COMMIT].request, route.version)
    frame = sample_frame(route)
    positions = offset_positions(frame)
    changed = bytearray(frame)
    for number, position in enumerate(positions):
        changed[position : position + OFFSET_BYTES] = struct.pack(">q", -number)

    numbers = iter(range(len(positions)))
    expected = request._replace(
        topics=tuple(
            topic._replace(partitions=tuple(row._replace(committed_offset=-next(numbers)) for row in topic.partitions))
            for topic in request.topics
        )
    )
    assert len(positions) == 4
    assert decode_request(bytes(changed))[1] == expected


@pytest.mark.parametrize("route", _OTHERS, ids=str)
def test_other_requests_have_no_such_positions(route: Route) -> None:
    with pytest.raises(UnsupportedApi):
        offset_positions(sample_frame(route))


@pytest.mark.parametrize("route", _COMMITS, ids=str)
def test_every_prefix_is_refused(route: Route) -> None:
    frame = sample_frame(route)

    # A walk need not look behind the last offset's metadata, where only a decoder would miss something.
    for size in range(max(offset_positions(frame)) + OFFSET_BYTES):
        with pytest.raises(ProtocolError):
            offset_positions(frame[:size])
