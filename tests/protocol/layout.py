"""A request frame in pieces, each with its meaning: what a test must know to break exactly one of them.

It is also one more encoder, as slow and plain as can be, that shares no code with the compiled ones.
"""

import struct
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from protocol.schema import Field, message_info, schema_of
from tests.protocol.messages import Route

Role = Literal[
    "header",
    "client id length",
    "client id",
    "fixed",
    "length",
    "text",
    "size",
    "bytes",
    "count",
    "tags",
    "tag",
    "tag size",
]


class Piece(NamedTuple):
    """Some bytes of a frame, and what they say."""

    role: Role
    data: bytes
    what: str
    code: str = ""
    """Of a fixed field: its character in a ``struct`` format. Of a length or count: that of its number, or ``v``."""
    nullable: bool = False
    in_tag: bool = False
    """Whether it stands inside a tagged field, whose size would have to change with it."""


def varint(value: int, *, bytes_least: int = 1) -> bytes:
    """Return an unsigned varint, padded to a length on demand."""
    out = bytearray()
    while value > 0x7F or len(out) + 1 < bytes_least:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def frame_of(pieces: list[Piece]) -> bytes:
    """Return the frame, without its size."""
    return b"".join(piece.data for piece in pieces)


def replaced(pieces: list[Piece], place: int, data: bytes) -> bytes:
    """Return the frame with one piece changed."""
    return b"".join(data if at == place else piece.data for at, piece in enumerate(pieces))


def request_pieces(route: Route, request: Any, *, client_id: str | None = "cli") -> list[Piece]:
    """Take a request apart, its header first."""
    name = (client_id or "").encode()
    pieces = [
        Piece("header", struct.pack(">hhi", route.api.key, route.version, 7), "header"),
        Piece("client id length", struct.pack(">h", -1 if client_id is None else len(name)), "client id", "h"),
        Piece("client id", name, "client id"),
    ]
    flexible = route.version in message_info(type(request)).flexible
    if flexible:
        pieces.append(Piece("tags", b"\0", "header"))
    return [*pieces, *_Walk(route.version, flexible=flexible).struct(type(request), request)]


class _Walk:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible

    def struct(self, cls: type, value: Any) -> Iterator[Piece]:
        present = [(name, field) for name, field in schema_of(cls).fields if self._version in field.versions]
        for name, field in present:
            if field.tag is None:
                yield from self._value(field, getattr(value, name), f"{cls.__name__}.{name}")
        if self._flexible:
            tagged = sorted((field.tag, name, field) for name, field in present if field.tag is not None)
            yield from self._tags(cls, value, tagged)

    def _tags(self, cls: type, value: Any, tagged: list[tuple[int, str, Field]]) -> Iterator[Piece]:
        sent = [each for each in tagged if getattr(value, each[1]) != each[2].default]
        yield Piece("tags", varint(len(sent)), cls.__name__)
        for tag, name, field in sent:
            what = f"{cls.__name__}.{name}"
            payload = list(self._value(field, getattr(value, name), what))
            yield Piece("tag", varint(tag), what, in_tag=True)
            yield Piece("tag size", varint(sum(len(piece.data) for piece in payload)), what, in_tag=True)
            yield from (piece._replace(in_tag=True) for piece in payload)

    def _value(self, field: Field, value: Any, what: str) -> Iterator[Piece]:
        match field.kind:
            case "fixed":
                yield Piece("fixed", struct.pack(f">{field.code}", value), what, field.code)
            case "string":
                data = None if value is None else value.encode()
                yield self._number("length", data, "h", field, what)
                yield Piece("text", data or b"", what)
            case "bytes":
                yield self._number("size", value, "i", field, what)
                yield Piece("bytes", value or b"", what)
            case "array":
                assert field.element is not None
                yield self._number("count", value, "i", field, what)
                for each in value or ():
                    yield from self._value(field.element, each, what)
            case "struct":
                assert field.struct is not None
                yield from self.struct(field.struct, value)

    def _number(self, role: Role, sized: Any, code: str, field: Field, what: str) -> Piece:
        nullable = self._version in field.nullable
        if self._flexible:
            return Piece(role, varint(0 if sized is None else len(sized) + 1), what, "v", nullable)
        return Piece(role, struct.pack(f">{code}", -1 if sized is None else len(sized)), what, code, nullable)
