"""Responses too large to be written in one go: their rows are written one by one and put into the frame afterwards.

A frame is encoded with a marker for its long array; the rows, encoded by the same declarations, then take the marker's
place. What comes out equals what the ordinary encoder writes, and a test holds that.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from protocol.api import APIS, Response, encode_response
from protocol.encoding import Encoder, compile_struct_encoder
from protocol.wire import write_uvarint

_SIZE: Final = Struct(">i")
#: No text holds this byte, in which any marker must be rich, so a marker is found nowhere else.
_FOREIGN: Final = b"\xff" * 8

_encoders: Final[dict[tuple[int, int, type], Encoder]] = {}


class Rows(NamedTuple):
    """An array that was encoded piece by piece."""

    length: int
    pieces: Sequence[bytes]


def row_encoder(api_key: int, version: int, cls: type) -> Encoder:
    """Return the function that writes one struct as it stands in a version's messages."""
    route = (api_key, version, cls)
    encoder = _encoders.get(route)
    if encoder is None:
        flexible = version >= APIS[api_key].first_flexible
        encoder = _encoders[route] = compile_struct_encoder(cls, version, flexible=flexible)
    return encoder


def write_count(api_key: int, version: int, count: int) -> bytes:
    """Return what stands before the rows of an array."""
    return write_uvarint(count + 1) if version >= APIS[api_key].first_flexible else _SIZE.pack(count)


def around_last_array(api_key: int, version: int, row: Any) -> tuple[bytes, bytes]:
    """Return what stands before and behind the array that is the last field of a row, and empty in this one."""
    return _around(api_key, version, row_encoder(api_key, version, type(row))(row))


def _around(api_key: int, version: int, encoded: bytes) -> tuple[bytes, bytes]:
    tail = b"\0" if version >= APIS[api_key].first_flexible else b""
    empty = write_count(api_key, version, 0) + tail
    assert encoded.endswith(empty), "it ends with an empty array"
    return encoded[: -len(empty)], tail


def splice_last(api_key: int, version: int, correlation_id: int, response: Response, rows: Rows) -> bytes:
    """Return a whole frame, its size first, whose last field is the array of these rows, and empty in the response."""
    head, tail = _around(api_key, version, encode_response(api_key, version, correlation_id, response)[4:])
    parts = (head, write_count(api_key, version, rows.length), *rows.pieces, tail)
    return b"".join((_SIZE.pack(sum(map(len, parts))), *parts))


def splice(api_key: int, version: int, correlation_id: int, response: Response, marker: Any, rows: Rows) -> bytes:
    """Return a whole frame, its size first.

    Args:
        response: the response with `(marker,)` for the long array.
        marker: a row full of minus ones, by which its place is found.
        rows: what belongs there.
    """
    body = encode_response(api_key, version, correlation_id, response)[4:]
    parts = fill(api_key, version, body, marker, rows)
    return b"".join((_SIZE.pack(sum(map(len, parts))), *parts))


def fill(api_key: int, version: int, encoded: bytes, marker: Any, rows: Rows) -> list[bytes]:
    """Return the parts of what was encoded with `(marker,)` in it, with the rows in the marker's place."""
    mark = write_count(api_key, version, 1) + row_encoder(api_key, version, type(marker))(marker)
    assert _FOREIGN in mark, "a marker that a text could hold may be found in the wrong place"
    before, after = encoded.split(mark)
    return [before, write_count(api_key, version, rows.length), *rows.pieces, after]
