"""Valid requests of every kind, made of random values; the names come from a small pool, so that they meet again."""

import struct
from random import Random
from typing import Any

from protocol.fetch import FetchRequest
from protocol.offset_commit import OffsetCommitRequest
from protocol.schema import Field, schema_of
from tests.protocol.layout import Piece, request_pieces
from tests.protocol.messages import Route, request_routes

NAMES = ("", "g", "grp", "orders", "tp", "__consumer_offsets", "a.b-c_d", "ä群😀", "x" * 126, "y" * 127, "z" * 300)
ROUTES = request_routes()

_WIDTH = {"b": 8, "h": 16, "i": 32, "q": 64}


def number(random: Random, code: str) -> int:
    """Return a number of a fixed field: mostly an edge of its range, or small."""
    top = 1 << (_WIDTH[code] - 1)
    if random.random() < 0.1:
        return random.randrange(-top, top)
    return random.choice((0, 0, 1, 2, 3, -1, -2, top - 1, -top, 9, 100))


def request(random: Random, route: Route) -> Any:
    """Return a message that the version can express."""
    made = _message(random, route.api.request, route.version)
    if isinstance(made, FetchRequest):
        # One that waits would only make the fuzzer wait.
        return made._replace(max_wait_ms=0)
    if isinstance(made, OffsetCommitRequest) and random.random() < 0.7:
        # As a consumer without a group does it: no other commit is accepted.
        return made._replace(generation_id_or_member_epoch=-1, member_id="", group_instance_id=None)
    return made


def pieces(random: Random, route: Route) -> list[Piece]:
    """Return a valid frame in pieces."""
    client_id = random.choice((None, "", "cli", "fuzz"))
    made = request_pieces(route, request(random, route), client_id=client_id)
    correlation_id = struct.pack(">i", random.randrange(-(2**31), 2**31))
    made[0] = made[0]._replace(data=made[0].data[:4] + correlation_id)
    return made


def _message(random: Random, cls: type, version: int) -> Any:
    return cls(
        **{
            name: _value(random, name, field, version)
            for name, field in schema_of(cls).fields
            if version in field.versions and (field.tag is None or random.random() < 0.5)
        }
    )


def _value(random: Random, name: str, field: Field, version: int) -> Any:
    if version in field.nullable and random.random() < 0.2:
        return None
    match field.kind:
        case "fixed" if field.code == "?":
            return random.random() < 0.5
        case "fixed" if field.code == "16s":
            return random.choice((bytes(16), random.randbytes(16)))
        case "fixed" if name == "partition_index":
            return random.randrange(4)
        case "fixed":
            return number(random, field.code)
        case "string":
            return random.choice(NAMES)
        case "bytes":
            return random.randbytes(random.randrange(40))
        case "array":
            assert field.element is not None
            return tuple(_value(random, name, field.element, version) for _ in range(random.choice((0, 1, 1, 2, 3))))
        case "struct":
            assert field.struct is not None
            return _message(random, field.struct, version)
