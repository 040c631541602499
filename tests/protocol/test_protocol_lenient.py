"""Odd bytes that Kafka's own broker takes, and therefore so do we."""

import pytest

from protocol.api import APIS, decode_request, encode_response
from protocol.fetch import FetchRequest
from protocol.find_coordinator import FindCoordinatorRequest
from protocol.offset_commit import OffsetCommitResponse, OffsetCommitResponseTopic
from protocol.wire import STRING_BYTES_MAX, StringTooLong
from tests.protocol.layout import Piece, frame_of, replaced, request_pieces, varint
from tests.protocol.messages import Route, request_routes, sample

#: Out of order, one of them twice, one empty, one with a number and a size that are longer than they need be.
UNKNOWN_TAGS = (b"\x63\x03abc", b"\x62\x00", b"\x63\x01z", b"\xe1\x80\x00\x82\x00xy")

_FLEXIBLE = [route for route in request_routes() if route.version >= route.api.first_flexible]


def _sampled(route: Route) -> tuple[list[Piece], object]:
    request = sample(route.api.request, route.version)
    return request_pieces(route, request), request


@pytest.mark.parametrize("route", request_routes(), ids=str)
@pytest.mark.parametrize("trailing", [b"\0", b"\xff", bytes(100)])
def test_trailing_bytes_are_ignored(route: Route, trailing: bytes) -> None:
    pieces, request = _sampled(route)

    assert decode_request(frame_of(pieces) + trailing)[1] == request


@pytest.mark.parametrize("route", _FLEXIBLE, ids=str)
def test_unknown_repeated_and_unordered_tags_are_skipped_wherever_they_stand(route: Route) -> None:
    pieces, request = _sampled(route)
    sections = [place for place, piece in enumerate(pieces) if piece.role == "tags" and not piece.in_tag]

    assert len(sections) >= 2
    for place in sections:
        known = pieces[place].data[0]
        section = varint(known + len(UNKNOWN_TAGS)) + b"".join(UNKNOWN_TAGS)
        header, decoded = decode_request(replaced(pieces, place, section))
        assert (header.client_id, decoded) == ("cli", request), pieces[place]


@pytest.mark.parametrize("route", _FLEXIBLE, ids=str)
def test_varints_may_be_longer_than_they_need_be(route: Route) -> None:
    pieces, request = _sampled(route)

    for place, piece in enumerate(pieces):
        if piece.in_tag or not (piece.code == "v" or piece.role == "tags"):
            continue
        assert len(piece.data) == 1
        for size in range(2, 6):
            assert decode_request(replaced(pieces, place, varint(piece.data[0], bytes_least=size)))[1] == request, piece


def test_of_a_known_tag_that_comes_twice_the_last_counts() -> None:
    route = Route(APIS[1], 12, is_request=True)
    pieces = request_pieces(route, FetchRequest())
    section = varint(2) + b"\x00\x04\x04one" + b"\x00\x04\x04two"

    assert pieces[-1].role == "tags"
    assert decode_request(replaced(pieces, len(pieces) - 1, section))[1] == FetchRequest(cluster_id="two")


@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_bad_utf8_becomes_the_replacement_character(route: Route) -> None:
    pieces, _ = _sampled(route)

    for place, piece in enumerate(pieces):
        if piece.role != "text":
            continue
        bad = b"\xff" * len(piece.data)
        _, decoded = decode_request(replaced(pieces, place, bad))
        texts = [each.data.decode() for each in request_pieces(route, decoded) if each.role == "text"]
        expected = [each.data.decode() for each in pieces if each.role == "text"]
        expected[sum(each.role == "text" for each in pieces[:place])] = "\ufffd" * len(bad)
        assert texts == expected


@pytest.mark.parametrize(
    ("bad", "read"),
    [
        (b"a\x80b", "a\ufffdb"),
        (b"a\xc3", "a\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xc0\xafx", "\ufffd\ufffdx"),
        (b"nul\0in", "nul\0in"),
    ],
)
def test_bad_utf8_costs_as_little_text_as_can_be(bad: bytes, read: str) -> None:
    pieces = request_pieces(Route(APIS[10], 0, is_request=True), FindCoordinatorRequest(key="x" * len(bad)))

    _, decoded = decode_request(replaced(pieces, len(pieces) - 1, bad))

    assert decoded == FindCoordinatorRequest(key=read)


def test_a_name_that_grew_by_its_replacements_fits_no_reply() -> None:
    """Three bytes for each bad one: no length could say how long it is."""
    name = (b"\xff" * (STRING_BYTES_MAX // 3 + 1)).decode("utf-8", "replace")
    for version in (0, 9):
        with pytest.raises(StringTooLong):
            encode_response(8, version, 7, OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name),)))


@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_any_byte_but_zero_is_true(route: Route) -> None:
    pieces, request = _sampled(route)

    for place, piece in enumerate(pieces):
        if piece.code != "?":
            continue
        for byte in (b"\x01", b"\x02", b"\x80", b"\xff"):
            assert decode_request(replaced(pieces, place, byte))[1] == request
        assert decode_request(replaced(pieces, place, b"\0"))[1] != request


@pytest.mark.parametrize("route", request_routes(), ids=str)
@pytest.mark.parametrize("length", [b"\xff\xff", b"\xff\xfe", b"\x80\x00"])
def test_any_negative_length_of_a_client_id_is_null(route: Route, length: bytes) -> None:
    request = sample(route.api.request, route.version)
    pieces = request_pieces(route, request, client_id=None)

    header, decoded = decode_request(replaced(pieces, 1, length))

    assert (header.client_id, decoded) == (None, request)
