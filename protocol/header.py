"""What stands before the body of a request and of a response. Which header a version has, the API table knows."""

from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from protocol.wire import STRING_BYTES_MAX, StringTooLong, Truncated, skip_tags

_unpack_request = Struct(">hhih").unpack_from
_unpack_key_and_version = Struct(">hh").unpack_from
_unpack_correlation_id = Struct(">i").unpack_from
_pack_request = Struct(">hhih").pack
_pack_size_and_correlation_id = Struct(">ii").pack
_pack_size = Struct(">i").pack

_FIXED_BYTES = 10


class RequestHeader(NamedTuple):
    """Who asks for what; the correlation id comes back with the response."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def peek_key_and_version(frame: bytes) -> tuple[int, int]:
    """Return the API key and version, on which the rest of the header depends."""
    try:
        key, version = _unpack_key_and_version(frame)
    except struct_error:
        raise Truncated(what="request header", size_bytes=len(frame)) from None
    return key, version


def read_request_header(frame: bytes, *, flexible: bool) -> tuple[RequestHeader, int]:
    """Return the header and the position of the body."""
    end = len(frame)
    try:
        key, version, correlation_id, length = _unpack_request(frame)
        position = _FIXED_BYTES
        client_id = None
        # Kafka takes any negative length of a client id as null, unlike lengths in a body.
        if length >= 0:
            position += length
            if position > end:
                raise Truncated(what="client id", size_bytes=end)
            client_id = frame[_FIXED_BYTES:position].decode("utf-8", "replace")
        if flexible:
            position = skip_tags(frame, position) if frame[position] else position + 1
    except (struct_error, IndexError):
        raise Truncated(what="request header", size_bytes=end) from None
    return RequestHeader(key, version, correlation_id, client_id), position


def read_response_header(frame: bytes, *, flexible: bool) -> tuple[int, int]:
    """Return the correlation id and the position of the body."""
    try:
        (correlation_id,) = _unpack_correlation_id(frame)
        position = skip_tags(frame, 4) if flexible else 4
    except (struct_error, IndexError):
        raise Truncated(what="response header", size_bytes=len(frame)) from None
    return correlation_id, position


def write_request_frame(header: RequestHeader, body: bytes, *, flexible: bool) -> bytes:
    """Return a whole frame, its size first."""
    client_id = b"" if header.client_id is None else header.client_id.encode()
    length = -1 if header.client_id is None else len(client_id)
    if length > STRING_BYTES_MAX:
        raise StringTooLong(size_bytes=length)
    fixed = _pack_request(header.api_key, header.api_version, header.correlation_id, length)
    rest = b"".join((fixed, client_id, b"\0" if flexible else b"", body))
    return _pack_size(len(rest)) + rest


def write_response_frame(correlation_id: int, body: bytes, *, flexible: bool) -> bytes:
    """Return a whole frame, its size first."""
    if flexible:
        return _pack_size_and_correlation_id(len(body) + 5, correlation_id) + b"\0" + body
    return _pack_size_and_correlation_id(len(body) + 4, correlation_id) + body
