"""Lengths, counts and tags that no honest client sends: refused, and before any memory is taken for them."""

import struct
from collections.abc import Callable

import pytest

from protocol.api import API_VERSIONS, APIS, decode_header, decode_request
from protocol.decoding import compile_decoder
from protocol.find_coordinator import FindCoordinatorRequest
from protocol.wire import (
    REQUEST_ELEMENTS_MAX,
    STRING_BYTES_MAX,
    Malformed,
    ProtocolError,
    TooManyElements,
    Truncated,
    UnsupportedApi,
)
from tests.protocol.layout import Piece, frame_of, replaced, request_pieces, varint
from tests.protocol.memory import metered
from tests.protocol.messages import Route, request_routes, sample, sample_frame

#: The frames here have a few hundred bytes, their messages a few thousand; what they claim to have, gigabytes.
PEAK_BYTES_MAX = 32 * 1024
#: What the largest request may take: its elements, however small they are on the wire.
REQUEST_BYTES_MAX = 64 * 1024 * 1024


_FLEXIBLE = [route for route in request_routes() if route.version >= route.api.first_flexible]


def _pieces(route: Route) -> list[Piece]:
    return request_pieces(route, sample(route.api.request, route.version))


def _is_refused(frame: bytes) -> bool:
    try:
        decode_request(frame)
    except ProtocolError:
        return True
    return False


def _hostile_numbers(piece: Piece) -> list[bytes]:
    """What may stand in no length and no count, here."""
    if piece.code == "v":
        null = varint(0)
        claims = [varint(2**14), varint(2**31 - 1), varint(2**31), varint(2**32 - 1), b"\xff\xff\xff\xff\x7f"]
        claims += [varint(2, bytes_least=6), b"\x80" * 5 + b"\x00", b"\xff" * 9 + b"\x01", b"\xff" * 100]
    else:
        top = 1 << (8 * struct.calcsize(piece.code) - 1)
        null = struct.pack(f">{piece.code}", -1)
        claims = [struct.pack(f">{piece.code}", value) for value in (-2, -3, -top, top - 1, 2**14)]
    return claims if piece.nullable else [null, *claims]


@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_a_length_or_count_that_cannot_be_is_refused_before_it_takes_memory(route: Route) -> None:
    pieces = _pieces(route)
    decode_request(frame_of(pieces))

    with metered() as meter:
        for place, piece in enumerate(pieces):
            if piece.role not in {"length", "size", "count"}:
                continue
            for number in _hostile_numbers(piece):
                frame = replaced(pieces, place, number)

                assert _is_refused(frame), (piece, number)
                assert meter.peak_bytes(_is_refused, frame) < PEAK_BYTES_MAX, (piece, number)


@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_not_one_element_is_made_of_a_count_that_the_bytes_cannot_hold(route: Route) -> None:
    """Behind each count stand thousands of good elements, but fewer than it claims."""
    pieces = _pieces(route)
    # In a flexible version a one is the length of an empty string, and a tag with one byte if need be.
    filling = (b"\1" if route in _FLEXIBLE else b"\0") * 20_000
    claim = len(filling) + 1
    decode_request(frame_of(pieces))

    with metered() as meter:
        for place, piece in enumerate(pieces):
            if piece.role != "count":
                continue
            number = varint(claim + 1) if piece.code == "v" else struct.pack(">i", claim)
            frame = frame_of(pieces[:place]) + number + filling

            assert _is_refused(frame), piece
            assert meter.peak_bytes(_is_refused, frame) < PEAK_BYTES_MAX, piece


@pytest.mark.parametrize("claim", [2**31 - 1, 1_000, 100])
@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_counts_inside_counts_multiply_nothing(route: Route, claim: int) -> None:
    """Each level claims many elements; whatever the bytes behind them say, the frame bounds what is made of it."""
    pieces = _pieces(route)
    numbers = {"v": varint(claim + 1), "i": struct.pack(">i", claim)}
    data = b"".join(numbers[piece.code] if piece.role == "count" else piece.data for piece in pieces)
    has_counts = any(piece.role == "count" for piece in pieces)
    decode_request(frame_of(pieces))

    with metered() as meter:
        assert _is_refused(data) or not has_counts
        assert meter.peak_bytes(_is_refused, data) < PEAK_BYTES_MAX


@pytest.mark.parametrize("route", _FLEXIBLE, ids=str)
def test_a_section_of_tags_that_cannot_be_is_refused_before_it_takes_memory(route: Route) -> None:
    pieces = _pieces(route)
    left = len(frame_of(pieces))
    decode_request(frame_of(pieces))
    bombs = [
        varint(2**32 - 1),
        varint(2**31),
        varint(left),
        b"\xff" * 5 + b"\x00",
        varint(1) + varint(99) + varint(2**32 - 1),
        varint(1) + varint(99) + varint(left + 1),
        varint(1) + b"\xff" * 6,
        varint(1) + varint(99) + b"\xff" * 6,
    ]

    with metered() as meter:
        for place, piece in enumerate(pieces):
            for bomb in bombs if piece.role == "tags" else ():
                frame = replaced(pieces, place, bomb)

                assert _is_refused(frame), (piece, bomb)
                assert meter.peak_bytes(_is_refused, frame) < PEAK_BYTES_MAX, (piece, bomb)


@pytest.mark.parametrize("version", range(12, 17))
def test_a_known_tag_that_is_shorter_than_its_value_is_refused(version: int) -> None:
    route = Route(APIS[1], version, is_request=True)
    pieces = _pieces(route)
    sizes = [place for place, piece in enumerate(pieces) if piece.role == "tag size"]

    assert sizes
    for place in sizes:
        size = pieces[place].data[0]
        with pytest.raises(Malformed):
            decode_request(replaced(pieces, place, varint(size - 1)))


def test_a_compact_string_may_be_as_long_as_a_plain_one_and_no_longer() -> None:
    def frame(length: int) -> bytes:
        return struct.pack(">hhih", 10, 3, 7, -1) + b"\0" + varint(length + 1) + b"g" * length + b"\0\0"

    assert decode_request(frame(STRING_BYTES_MAX))[1] == FindCoordinatorRequest(key="g" * STRING_BYTES_MAX)
    with pytest.raises(Malformed) as refused:
        decode_request(frame(STRING_BYTES_MAX + 1))
    assert refused.value.value == STRING_BYTES_MAX + 1


# --- how many elements a request may have -----------------------------------------------------------------------------


@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_all_arrays_of_a_message_share_one_bound(route: Route) -> None:
    request = sample(route.api.request, route.version)
    frame = sample_frame(route)
    _, position = decode_header(frame)
    # Every array of a sample has two elements, which are full.
    elements = 2 * sum(piece.role == "count" for piece in request_pieces(route, request))

    assert compile_decoder(route.api.request, route.version, elements_max=elements)(frame, position) == request
    if elements:
        with pytest.raises(TooManyElements):
            compile_decoder(route.api.request, route.version, elements_max=elements - 1)(frame, position)


def _flexible_header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 7, -1) + b"\0"


def _keys(count: int) -> bytes:
    """Keys of FindCoordinator, all empty."""
    return _flexible_header(10, 4) + b"\0" + varint(count + 1) + b"\1" * count + b"\0"


def _names(count: int) -> bytes:
    """Topics of Metadata, with no name."""
    return _flexible_header(3, 9) + varint(count + 1) + b"\1\0" * count + bytes(4)


def _indexes(count: int) -> bytes:
    """Partitions of a fetch, which are plain numbers."""
    numbers = struct.pack(f">{count - 1}i", *range(count - 1))
    return _flexible_header(9, 7) + b"\2g\2\2t" + varint(count) + numbers + bytes(3)


@pytest.mark.parametrize("filled", [_keys, _names, _indexes])
def test_the_largest_request_takes_bounded_memory_and_one_element_more_is_refused(
    filled: Callable[[int], bytes],
) -> None:
    largest, larger = filled(REQUEST_ELEMENTS_MAX), filled(REQUEST_ELEMENTS_MAX + 1)

    with metered() as meter:
        assert meter.peak_bytes(decode_request, largest) < REQUEST_BYTES_MAX
    with pytest.raises(TooManyElements):
        decode_request(larger)


# --- what is not served -----------------------------------------------------------------------------------------------


def _header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 7, 3) + b"cli"


@pytest.mark.parametrize("key", [key for key in (-32768, -1, *range(100), 32767) if key not in APIS])
def test_an_api_that_is_not_served_is_refused(key: int) -> None:
    with pytest.raises(UnsupportedApi) as refused:
        decode_request(_header(key, 0) + bytes(100))

    assert (refused.value.api_key, refused.value.api_version) == (key, 0)


@pytest.mark.parametrize("api", [api for api in APIS.values() if api.key != API_VERSIONS], ids=lambda api: api.name)
def test_a_version_beside_the_served_ones_is_refused_at_its_header(api: object) -> None:
    assert isinstance(api, type(APIS[0]))
    for version in (-32768, -1, api.min_version - 1, api.max_version + 1, 127, 32767):
        with pytest.raises(UnsupportedApi):
            decode_header(_header(api.key, version) + bytes(100))


@pytest.mark.parametrize("version", [-32768, -1, 5, 127, 32767])
def test_any_version_of_api_versions_has_a_header_to_answer_and_no_body(version: int) -> None:
    frame = _header(API_VERSIONS, version) + b"\0" + b"whatever comes later"

    header, position = decode_header(frame)

    assert (header.api_version, header.correlation_id, header.client_id) == (version, 7, "cli")
    assert position == (14 if version > 0 else 13)
    with pytest.raises(UnsupportedApi):
        decode_request(frame)


def test_a_newer_api_versions_without_the_tags_of_its_header_is_refused() -> None:
    with pytest.raises(Truncated):
        decode_header(_header(API_VERSIONS, 127))
