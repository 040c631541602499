"""Bytes that no client may send end their own connection, at once and without being buffered; others notice nothing."""

import struct

import pytest

from protocol.api import API_VERSIONS, APIS, OFFSET_COMMIT, OFFSET_FETCH, decode_response
from protocol.api_versions import ApiVersionsResponse
from protocol.errors import Code
from tests.fakes.wire import commit_frame, commit_request, fetch_frame, fetch_request
from tests.server.edge import edge, until

GROUP, PLACE = "billing", ("orders", 0)
REQUEST_BYTES_MAX = 104_857_600
#: What a browser and a client set to TLS send first.
HTTP_GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
TLS_HELLO = bytes.fromhex("16030102000100 01fc0303".replace(" ", "")) + bytes(500)


def frame(key: int, version: int, body: bytes, *, tags: bytes = b"\0") -> bytes:
    """Return a request of a hand-made body."""
    flexible = key in APIS and version >= APIS[key].first_flexible
    head = struct.pack(">hhih", key, version, 7, 1) + b"c" + (tags if flexible else b"")
    return struct.pack(">i", len(head + body)) + head + body


def old_commit(body: bytes) -> bytes:
    """Return an OffsetCommit of version 2, where lengths are plain numbers."""
    return frame(OFFSET_COMMIT, 2, body)


def new_commit(body: bytes) -> bytes:
    """Return an OffsetCommit of version 8, where lengths are varints."""
    return frame(OFFSET_COMMIT, 8, body)


#: A group, no generation, no member, no retention; the topics come next.
OLD_GROUP = struct.pack(">h1sih q", 1, b"g", -1, 0, -1)
NEW_GROUP = b"\x02g" + struct.pack(">i", -1) + b"\x01\x00"
BAD = {
    "longer than the limit": struct.pack(">i", REQUEST_BYTES_MAX + 1),
    "longest number": struct.pack(">i", (1 << 31) - 1),
    "negative length": struct.pack(">i", -1),
    "length zero": struct.pack(">i", 0),
    "shorter than a header": struct.pack(">i", 7) + bytes(7),
    "TLS": TLS_HELLO,
    "HTTP": HTTP_GET,
    "client id beyond the end": struct.pack(">ihhih", 12, OFFSET_FETCH, 1, 7, 500) + b"cc",
    "unknown API": frame(999, 0, b""),
    "negative API": frame(-1, 0, b""),
    "version too new": frame(OFFSET_COMMIT, 99, b""),
    "version too old": frame(1, 0, b""),
    "negative version": frame(OFFSET_FETCH, -1, b""),
    "no body": old_commit(b""),
    "varint without end": new_commit(b"\xff\xff\xff\xff\xff\x01g"),
    "compact length beyond the end": new_commit(b"\x7fg"),
    "compact length negative": new_commit(b"\xff\xff\xff\xff\x0fg"),
    "tags of a header without end": frame(OFFSET_COMMIT, 8, b"", tags=b"\xff\xff\xff\xff\x07"),
    "tag beyond the end": frame(OFFSET_COMMIT, 8, b"", tags=b"\x01\x05\x7f"),
    "count below null": old_commit(OLD_GROUP + struct.pack(">i", -2)),
    "count null where it may not be": old_commit(OLD_GROUP + struct.pack(">i", -1)),
    "largest count": old_commit(OLD_GROUP + struct.pack(">i", (1 << 31) - 1)),
    "count beyond the end": old_commit(OLD_GROUP + struct.pack(">i", 3) + b"\0\1t\0\0\0\0"),
    "compact count beyond the end": new_commit(NEW_GROUP + b"\xff\xff\xff\xff\x07"),
    "inner count beyond the end": old_commit(OLD_GROUP + struct.pack(">ih1si", 1, 1, b"t", 1 << 30)),
    "string beyond the end": old_commit(struct.pack(">h", 500) + b"g"),
    "string null where it may not be": old_commit(struct.pack(">h", -1) + OLD_GROUP[3:]),
    "string below null": old_commit(struct.pack(">h", -2) + OLD_GROUP[3:]),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_what_cannot_be_read_closes_its_connection_and_no_other(bad: bytes) -> None:
    async with edge() as world, world.client() as other, world.client() as client:
        client.send_bytes(bad)
        closed = await client.is_closed()
        await world.have_closed(malformed=1)
        other.send_bytes(commit_frame(1, commit_request(GROUP, {PLACE: 5}), 8))
        await world.settle_when(1)
        await other.receive_frame()

        assert closed
        assert await other.committed(GROUP, [PLACE]) == {PLACE: 5}
        assert world.observed.in_flight_bytes == 0
        assert len(world.peers) == 1


@pytest.mark.parametrize("bad", [BAD["negative length"], BAD["unknown API"], BAD["varint without end"]])
async def test_what_came_before_a_malformed_request_is_answered_first(bad: bytes) -> None:
    """As in Kafka, which looks at a request only when the one before it has been answered."""
    async with edge() as world, world.client() as client:
        commit = commit_frame(1, commit_request(GROUP, {PLACE: 5}), 8)
        fetch = fetch_frame(2, fetch_request(GROUP, [PLACE], 7), 7)
        client.send_bytes(commit + fetch + bad + commit)
        await world.settle_when(1)
        replies = [await client.receive_frame() for _ in range(2)]

        assert [reply[:4] for reply in replies] == [b"\0\0\0\1", b"\0\0\0\2"]
        assert await client.is_closed()
        await world.have_closed(malformed=1)
        assert not world.log.held, "nothing behind it is looked at"


async def test_a_length_alone_reserves_nothing() -> None:
    async with edge() as world, world.client() as client:
        client.send_bytes(struct.pack(">i", REQUEST_BYTES_MAX) + b"abc")
        await world.have_received(7)

        assert world.connections()[0].held_bytes() == 7
        assert world.observed.in_flight_bytes == 7


async def test_a_frame_larger_than_a_lower_limit_closes_also_when_it_comes_in_one_piece() -> None:
    async with edge(frame_bytes_max=40) as world, world.client() as client:
        small, large = ("a", 0), ("a" * 30, 0)
        client.send_bytes(fetch_frame(1, fetch_request("g", [small], 7), 7))
        await client.receive_frame()
        client.send_bytes(fetch_frame(2, fetch_request("g", [large], 7), 7))

        assert await client.is_closed()
        await world.have_closed(malformed=1)


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 20])
async def test_a_frame_cut_short_by_the_end_of_its_connection_leaves_nothing(cut: int) -> None:
    async with edge() as world:
        for leave in ("fin", "rst"):
            async with world.client() as client:
                client.send_bytes(commit_frame(1, commit_request(GROUP, {PLACE: 5}), 8)[:cut])
                await until(lambda: world.observed.in_flight_bytes == cut)
                if leave == "rst":
                    client.reset()
            await until(lambda: not len(world.peers))

        assert world.observed.in_flight_bytes == 0
        assert world.closed() == {"peer": 1, "error": 1}
        assert not world.log.held


async def test_a_request_that_arrives_byte_by_byte_is_answered_like_any_other() -> None:
    async with edge() as world, world.client() as client:
        asked = fetch_frame(1, fetch_request(GROUP, [PLACE], 7), 7)
        for place, byte in enumerate(asked, start=1):
            client.send_bytes(bytes([byte]))
            await world.have_received(place)

        assert (await client.receive_frame())[:4] == b"\0\0\0\1"
        assert world.observed.in_flight_bytes == 0


async def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest() -> None:
    """The client cannot know better yet, and learns from the answer which versions it may ask with."""
    async with edge() as world, world.client() as client:
        client.send_bytes(frame(API_VERSIONS, 99, b"whatever it may mean"))
        number, response = decode_response(API_VERSIONS, 0, await client.receive_frame())
        client.send_bytes(fetch_frame(1, fetch_request(GROUP, [PLACE], 7), 7))
        await client.receive_frame()

        assert isinstance(response, ApiVersionsResponse)
        assert number == 7
        assert response.error_code == Code.UNSUPPORTED_VERSION
        assert [(row.api_key, row.min_version, row.max_version) for row in response.api_keys] == [(API_VERSIONS, 0, 4)]
        assert len(world.peers) == 1


async def test_trailing_bytes_are_ignored() -> None:
    """librdkafka's own Metadata request has some."""
    async with edge() as world, world.client() as client:
        asked = fetch_frame(1, fetch_request(GROUP, [PLACE], 7), 7) + b"more than was asked for"
        client.send_bytes(struct.pack(">i", len(asked) - 4) + asked[4:])
        client.send_bytes(fetch_frame(2, fetch_request(GROUP, [PLACE], 7), 7))

        assert (await client.receive_frame())[:4] == b"\0\0\0\1"
        assert (await client.receive_frame())[:4] == b"\0\0\0\2"
        assert len(world.peers) == 1


async def test_tags_that_nobody_knows_are_skipped_whatever_their_order() -> None:
    async with edge() as world, world.client() as client:
        tags = b"\x03\x09\x02ab\x05\x00\x09\x01c"
        client.send_bytes(frame(OFFSET_FETCH, 7, b"\x02g\x00\x00\x00", tags=tags))

        assert (await client.receive_frame())[:4] == struct.pack(">i", 7)
        assert len(world.peers) == 1
