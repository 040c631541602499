"""Headers of requests and responses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.header import (
    RequestHeader,
    peek_key_and_version,
    read_request_header,
    read_response_header,
    write_request_frame,
    write_response_frame,
)
from protocol.wire import ProtocolError, StringTooLong, Truncated

_int16 = st.integers(-(2**15), 2**15 - 1)
_int32 = st.integers(-(2**31), 2**31 - 1)
_names = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(header=st.builds(RequestHeader, _int16, _int16, _int32, _names), flexible=st.booleans(), body=st.binary())
def test_a_request_header_is_read_as_it_was_written(header: RequestHeader, flexible: bool, body: bytes) -> None:
    frame = write_request_frame(header, body, flexible=flexible)

    read, position = read_request_header(frame[4:], flexible=flexible)
    assert read == header
    assert frame[4:][position:] == body
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert peek_key_and_version(frame[4:]) == (header.api_key, header.api_version)


@settings(max_examples=50, derandomize=True, deadline=None, database=None)
@given(correlation_id=_int32, flexible=st.booleans(), body=st.binary())
def test_a_response_header_is_read_as_it_was_written(correlation_id: int, flexible: bool, body: bytes) -> None:
    frame = write_response_frame(correlation_id, body, flexible=flexible)

    read, position = read_response_header(frame[4:], flexible=flexible)
    assert (read, frame[4:][position:]) == (correlation_id, body)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4


@pytest.mark.parametrize("flexible", [False, True])
def test_every_prefix_of_a_header_is_refused(flexible: bool) -> None:
    frame = write_request_frame(RequestHeader(8, 9, -7, "cli"), b"", flexible=flexible)[4:]

    for size in range(len(frame)):
        with pytest.raises(Truncated):
            read_request_header(frame[:size], flexible=flexible)
    for size in range(4):
        with pytest.raises(Truncated):
            peek_key_and_version(frame[:size])


@pytest.mark.parametrize("flexible", [False, True])
def test_every_prefix_of_a_response_header_is_refused(flexible: bool) -> None:
    frame = write_response_frame(7, b"", flexible=flexible)[4:]

    for size in range(len(frame)):
        with pytest.raises(Truncated):
            read_response_header(frame[:size], flexible=flexible)


def test_tags_of_a_header_are_skipped() -> None:
    plain = write_request_frame(RequestHeader(8, 9, 7, "cli"), b"", flexible=False)[4:]

    header, position = read_request_header(plain + b"\x02\x05\x02xy\x00\x01z" + b"body", flexible=True)

    assert header.client_id == "cli"
    assert position == len(plain) + 8


def test_tags_of_a_response_header_are_skipped() -> None:
    assert read_response_header(b"\0\0\0\7" + b"\x01\x05\x02xy" + b"body", flexible=True) == (7, 9)


@pytest.mark.parametrize("tags", [b"\x7f", b"\xff\xff\xff\xff\x0f", b"\x80" * 6, b"\x01\x00\x7f", b"\x01\x00"])
def test_tags_of_a_header_that_cannot_be_are_refused(tags: bytes) -> None:
    plain = write_request_frame(RequestHeader(8, 9, 7, None), b"", flexible=False)[4:]

    with pytest.raises(ProtocolError):
        read_request_header(plain + tags, flexible=True)


def test_a_client_id_longer_than_its_frame_is_refused() -> None:
    plain = write_request_frame(RequestHeader(8, 0, 7, "client"), b"", flexible=False)[4:]

    with pytest.raises(Truncated):
        read_request_header(plain[:-1], flexible=False)


def test_a_client_id_that_no_length_can_say_is_not_written() -> None:
    write_request_frame(RequestHeader(8, 0, 7, "x" * 32767), b"", flexible=False)
    with pytest.raises(StringTooLong):
        write_request_frame(RequestHeader(8, 0, 7, "x" * 32768), b"", flexible=False)


def test_bad_utf8_in_a_client_id_becomes_the_replacement_character() -> None:
    frame = write_request_frame(RequestHeader(8, 0, 7, "cli"), b"", flexible=False)[4:-3] + b"a\xff\xc3"

    assert read_request_header(frame, flexible=False)[0].client_id == "a\ufffd\ufffd"
