"""The primitives of the wire that need more than one ``Struct``, and the errors a peer's bytes can cause.

What a message looks like is declared in the files of the APIs; nothing here knows any of them.
"""

from struct import Struct
from typing import Final

STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka's own limit of a string, also where a varint could say more."""

REQUEST_ELEMENTS_MAX: Final = 100_000
"""Elements of all arrays of one request: the partitions of the largest clusters, and some more.

An empty element takes a byte or two on the wire and fifty times that in memory.
"""

VARINT_BYTES_MAX: Final = 5

ZERO_UUID: Final = bytes(16)
"""How the wire says that there is no id."""


class ProtocolError(Exception):
    """A peer broke the protocol: its connection ends, nobody else notices."""


class FrameTooLarge(ProtocolError):
    """A length prefix exceeds the limit, so the body is not even buffered."""

    def __init__(self, *, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"frame of {size_bytes} bytes exceeds the limit of {limit_bytes}")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class FrameTooSmall(ProtocolError):
    """A length prefix is negative, or leaves no room for a header."""

    def __init__(self, *, size_bytes: int, least_bytes: int) -> None:
        super().__init__(f"frame of {size_bytes} bytes is shorter than the least, {least_bytes}")
        self.size_bytes = size_bytes
        self.least_bytes = least_bytes


class Truncated(ProtocolError):
    """The bytes end before what they announce."""

    def __init__(self, *, what: str, size_bytes: int) -> None:
        super().__init__(f"{what} goes past the end of its {size_bytes} bytes")
        self.what = what
        self.size_bytes = size_bytes


class Malformed(ProtocolError):
    """A length, a count or a varint that no peer may send."""

    def __init__(self, *, what: str, value: int) -> None:
        super().__init__(f"{what} may not be {value}")
        self.what = what
        self.value = value


class TooManyElements(ProtocolError):
    """The arrays of a message have more elements together than one message may bring into memory."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"more than {limit} elements in one message")
        self.limit = limit


class UnsupportedApi(ProtocolError):
    """A request names an API, or a version of it, that is not served."""

    def __init__(self, *, api_key: int, api_version: int) -> None:
        super().__init__(f"version {api_version} of API {api_key} is not served")
        self.api_key = api_key
        self.api_version = api_version


class StringTooLong(ProtocolError):
    """A string does not fit its field: each bad byte of a name grows to three when it is echoed as U+FFFD."""

    def __init__(self, *, size_bytes: int) -> None:
        super().__init__(f"string of {size_bytes} bytes exceeds the limit of {STRING_BYTES_MAX}")
        self.size_bytes = size_bytes


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """Return the unsigned varint at ``position`` and the position behind it; padded forms are fine."""
    value = shift = 0
    for _ in range(VARINT_BYTES_MAX):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Kafka shifts inside 32 bits, so what the fifth byte says above them is lost there as well.
            return value & 0xFFFFFFFF, position
        shift += 7
    raise Malformed(what="last byte of a varint", value=byte)


def read_string_length(data: bytes, position: int) -> tuple[int, int]:
    """Read the varint in front of a compact string, which is its length plus one."""
    value, position = read_uvarint(data, position)
    if value > STRING_BYTES_MAX + 1:
        raise Malformed(what="length of a compact string", value=value - 1)
    return value, position


def write_uvarint(value: int) -> bytes:
    """Return ``value`` as an unsigned varint of least length."""
    assert value >= 0
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_string_length(length: int) -> bytes:
    """Return the varint in front of a compact string of ``length`` bytes."""
    if length > STRING_BYTES_MAX:
        raise StringTooLong(size_bytes=length)
    return write_uvarint(length + 1)


def skip_tags(data: bytes, position: int) -> int:
    """Return the position behind a section of tagged fields, none of which is known."""
    end = len(data)
    count, position = read_uvarint(data, position)
    # A tag takes two bytes at least, so that a count alone cannot keep the loop busy.
    if 2 * count > end - position:
        raise Truncated(what="a section of tagged fields", size_bytes=end)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > end:
            raise Truncated(what="a tagged field", size_bytes=end)
    return position


def write_tags(fields: list[tuple[int, bytes]]) -> bytes:
    """Return the section of tagged fields; ``fields`` come in ascending order of their tags."""
    parts = [write_uvarint(len(fields))]
    for tag, payload in fields:
        parts += (write_uvarint(tag), write_uvarint(len(payload)), payload)
    return b"".join(parts)


def checked_uuid(value: bytes) -> bytes:
    """Return ``value``, which must have 16 bytes: a ``Struct`` would cut or pad it without a word."""
    assert len(value) == 16
    return value


PREPARED_MAX: Final = 64


def prepare_unpack(code: str) -> list[object]:
    """Return the unpacking functions of small arrays, by count."""
    return [Struct(f">{count}{code}").unpack_from for count in range(PREPARED_MAX)]
