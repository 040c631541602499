"""Frames that end too early, wherever that is."""

import pytest

from protocol.api import decode_request, decode_response, encode_response
from protocol.wire import ProtocolError
from tests.protocol.layout import frame_of, request_pieces
from tests.protocol.messages import Route, request_routes, routes, sample, sample_frame

_RESPONSES = [route for route in routes() if not route.is_request]


@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_the_plain_encoder_of_the_tests_writes_the_same_frames(route: Route) -> None:
    pieces = request_pieces(route, sample(route.api.request, route.version))

    assert frame_of(pieces) == sample_frame(route)


@pytest.mark.parametrize("route", request_routes(), ids=str)
def test_every_prefix_of_a_request_is_refused_and_nothing_else_happens(route: Route) -> None:
    frame = sample_frame(route)

    for size in range(len(frame)):
        with pytest.raises(ProtocolError):
            decode_request(frame[:size])
    assert decode_request(frame)[1] == sample(route.api.request, route.version)


@pytest.mark.parametrize("route", _RESPONSES, ids=str)
def test_every_prefix_of_a_response_is_refused_and_nothing_else_happens(route: Route) -> None:
    response = sample(route.api.response, route.version)
    frame = encode_response(route.api.key, route.version, 7, response)[4:]

    for size in range(len(frame)):
        with pytest.raises(ProtocolError):
            decode_response(route.api.key, route.version, frame[:size])
    assert decode_response(route.api.key, route.version, frame) == (7, response)
