"""Frames that several codecs agree on, against what they say."""

import pytest

from protocol.api import (
    API_VERSIONS,
    Request,
    Response,
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from protocol.header import RequestHeader
from protocol.wire import UnsupportedApi
from tests.protocol.vectors import MESSAGES, Vector, vectors

SERVED = [vector for vector in vectors() if vector.is_served]
NOT_SERVED = [vector for vector in vectors() if not vector.is_served]


def _decode(vector: Vector) -> tuple[int, Request | Response]:
    body = vector.frame[4:]
    if vector.is_request:
        header, request = decode_request(body)
        assert header == RequestHeader(vector.api.key, vector.version, 7, "cli")
        return header.correlation_id, request
    return decode_response(vector.api.key, vector.version, body)


def test_every_served_vector_is_explained_and_every_explanation_has_a_vector() -> None:
    assert {vector.number for vector in SERVED} == set(MESSAGES)


def test_every_version_of_the_offset_apis_has_a_vector_in_both_directions() -> None:
    found = {(vector.api.key, vector.version, vector.is_request) for vector in SERVED}

    apis = {vector.api.key: vector.api for vector in SERVED}.values()
    assert found == {
        (api.key, version, is_request)
        for api in apis
        for version in range(api.min_version, api.max_version + 1)
        for is_request in (True, False)
    }


@pytest.mark.parametrize("vector", SERVED, ids=str)
def test_a_vector_is_read_to_its_last_field(vector: Vector) -> None:
    assert _decode(vector) == (7, MESSAGES[vector.number])


@pytest.mark.parametrize("vector", SERVED, ids=str)
def test_the_fields_of_a_vector_are_written_as_its_bytes(vector: Vector) -> None:
    message = MESSAGES[vector.number]
    if isinstance(message, vector.api.request):
        frame = encode_request(vector.api.key, vector.version, 7, "cli", message)
    else:
        assert isinstance(message, vector.api.response)
        frame = encode_response(vector.api.key, vector.version, 7, message)

    assert frame.hex() == vector.frame.hex()


@pytest.mark.parametrize("vector", SERVED, ids=str)
def test_the_size_of_a_vector_counts_what_follows_it(vector: Vector) -> None:
    assert int.from_bytes(vector.frame[:4], "big") == len(vector.frame) - 4


@pytest.mark.parametrize("vector", NOT_SERVED, ids=str)
def test_a_version_that_is_not_served_is_refused(vector: Vector) -> None:
    with pytest.raises(UnsupportedApi) as refused:
        _decode(vector)

    assert (refused.value.api_key, refused.value.api_version) == (vector.api.key, vector.version)


@pytest.mark.parametrize("vector", [each for each in NOT_SERVED if each.api.key == API_VERSIONS], ids=str)
def test_the_header_of_a_newer_api_versions_request_can_be_answered(vector: Vector) -> None:
    header, position = decode_header(vector.frame[4:])

    assert header == RequestHeader(API_VERSIONS, 5, 7, "cli")
    # Behind the header's own tags the body begins, which is left alone.
    assert vector.frame[4:][position:].startswith(b"\x0doffsetd-test")
