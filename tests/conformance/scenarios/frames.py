"""Frames that no ordinary client sends: broken lengths, headers and bodies, and odd ones that are fine all the same."""

from struct import pack
from typing import Final

from protocol.api import (
    API_VERSIONS,
    DELETE_GROUPS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    Request,
    encode_request,
)
from protocol.api_versions import ApiVersionsRequest
from protocol.describe_cluster import DescribeClusterRequest
from protocol.describe_configs import DescribeConfigsRequest, DescribeConfigsRequestResource
from protocol.find_coordinator import FindCoordinatorRequest
from protocol.frame import FRAME_BYTES_MAX
from tests.conformance.group_requests import beat, delete, delete_offsets, describe, join, leave, listing, sync
from tests.conformance.requests import at, commit, ends, fetch, metadata, records, row, since
from tests.conformance.scenario import EMPTY, ORDERS, Frame, Frames

_CORRELATION: Final = 7
_NO_TAGS: Final = b"\0"
#: An API that neither peer has.
_NO_API: Final = 999
_SASL_HANDSHAKE: Final = 17


def _header(key: int, version: int, client: bytes = b"\0\x03raw") -> bytes:
    return pack(">hhi", key, version, _CORRELATION) + client


def _sized(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def _frame(name: str, key: int, version: int, body: bytes, *, reads: int | None = None) -> Frame:
    """Put a body behind a header without tags."""
    return Frame(name, _sized(_header(key, version) + body), (key, version if reads is None else reads))


def _text(words: bytes) -> bytes:
    return pack(">h", len(words)) + words


def _read_by(key: int, version: int) -> tuple[int, int] | None:
    # What each peer serves is compared where it belongs.
    return None if key == API_VERSIONS else (key, version)


def _whole(key: int, version: int, request: Request) -> bytes:
    return encode_request(key, version, _CORRELATION, "raw", request)[4:]


#: The shortest question to which both give the same answer.
_KEY: Final = _text(b"g")
_QUESTION: Final = _header(FIND_COORDINATOR, 0) + _KEY
_ANSWER: Final = (FIND_COORDINATOR, 0)

LENGTHS: Final = Frames(
    "frames: lengths",
    (
        Frame("0", pack(">i", 0), None),
        Frame("-1", pack(">i", -1), None),
        Frame("the smallest", pack(">i", -(2**31)), None),
        Frame("one above the limit", pack(">i", FRAME_BYTES_MAX + 1), None),
        Frame("the largest", pack(">i", 2**31 - 1), None),
        Frame("letters of another protocol", b"GET / HTTP/1.1\r\n\r\n", None),
        Frame(
            "at the limit",
            pack(">i", FRAME_BYTES_MAX) + _QUESTION,
            _ANSWER,
            zeros=FRAME_BYTES_MAX - len(_QUESTION),
        ),
    ),
)

HEADERS: Final = Frames(
    "frames: headers",
    (
        *(
            Frame(f"client id of length {length}", _sized(_header(*_ANSWER, pack(">h", length)) + _KEY), _ANSWER)
            for length in (-1, -2, -(2**15), 0, 1, 2**15 - 1)
        ),
        Frame("client id that is no text", _sized(_header(*_ANSWER, _text(b"\xff\xfe")) + _KEY), _ANSWER),
        *(
            Frame(f"tags {tags.hex(' ')}", _sized(_header(METADATA, 9) + tags + b"\x01\0\0\0\0"), (METADATA, 9))
            for tags in (
                b"\x01\x63\x02ab",
                b"\x02\x63\x01a\x05\x01b",
                b"\x02\x05\x01a\x05\x01b",
                b"\x81\x00\xe3\x80\x00\x02ab",
                b"\x01\x63\x00",
                b"\x01\x63\x7fab",
                b"\x7f\x63\x01a",
                b"\xff\xff\xff\xff\x0f",
                b"\xff\xff\xff\xff\xff\x01",
                b"\x80\x80\x80\x80\x80\x00",
                b"\x80\x80\x80\x80\x00",
            )
        ),
        Frame("no tags where they belong", _sized(_header(METADATA, 9)), (METADATA, 9)),
    ),
)

APIS_AND_VERSIONS: Final = Frames(
    "frames: APIs and versions",
    (
        *(_frame(f"API {key}", key, 0, b"", reads=0) for key in (_NO_API, -1, 2**15 - 1, -(2**15))),
        *(
            _frame(f"version {version} of API {key}", key, version, b"\0" * 16, reads=0)
            for key, version in (
                (METADATA, 14),
                (METADATA, -1),
                (FIND_COORDINATOR, 7),
                (OFFSET_COMMIT, 11),
                (OFFSET_COMMIT, -1),
                (OFFSET_FETCH, 11),
                (LIST_OFFSETS, 12),
                (DESCRIBE_CONFIGS, 0),
                (DESCRIBE_CONFIGS, 5),
                (DESCRIBE_CLUSTER, 3),
                (FETCH, 3),
                (FETCH, 19),
            )
        ),
        *(
            _frame(f"ApiVersions {version}", API_VERSIONS, version, _NO_TAGS, reads=0)
            for version in (5, 6, 100, 2**15 - 1, -1, -(2**15))
        ),
        _frame("ApiVersions 6 without tags", API_VERSIONS, 6, b"", reads=0),
        _frame("ApiVersions 6 with a body", API_VERSIONS, 6, _NO_TAGS + b"\xff" * 40, reads=0),
        _frame("ApiVersions -1 with a body", API_VERSIONS, -1, b"\xff" * 40, reads=0),
        Frame("SaslHandshake", _sized(_header(_SASL_HANDSHAKE, 1) + _text(b"PLAIN")), None),
    ),
)

_OLD_COMMIT: Final = _whole(OFFSET_COMMIT, 0, commit("old", (ORDERS, [row(0, 1)])))
_OLD_TIMED_COMMIT: Final = _whole(OFFSET_COMMIT, 1, commit("old", (ORDERS, [row(0, 1)])))
_OLD_FETCH: Final = _whole(OFFSET_FETCH, 0, fetch("old", (ORDERS, [0]))(0))

OLD_VERSIONS: Final = Frames(
    "frames: old versions",
    (
        Frame("OffsetCommit 0", _sized(_OLD_COMMIT), (OFFSET_COMMIT, 0)),
        Frame("OffsetCommit 1", _sized(_OLD_TIMED_COMMIT), (OFFSET_COMMIT, 1)),
        Frame("OffsetFetch 0", _sized(_OLD_FETCH), (OFFSET_FETCH, 0)),
        Frame("ListOffsets 0", _sized(_whole(LIST_OFFSETS, 0, ends((EMPTY, [at(0, -1)])))), (LIST_OFFSETS, 0)),
    ),
)

#: One request of each kind of layout; of each, every beginning is sent.
_REQUESTS: Final[tuple[tuple[int, int, Request], ...]] = (
    (API_VERSIONS, 0, ApiVersionsRequest()),
    (API_VERSIONS, 3, ApiVersionsRequest(client_software_name="raw", client_software_version="1")),
    (METADATA, 1, metadata(EMPTY)),
    (METADATA, 8, metadata(EMPTY)),
    (METADATA, 12, metadata(EMPTY)),
    (FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g")),
    (FIND_COORDINATOR, 1, FindCoordinatorRequest(key="g")),
    (FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=("g", "h"))),
    (OFFSET_COMMIT, 2, commit("cut", (ORDERS, [row(0, 1, metadata="m")]))),
    (OFFSET_COMMIT, 7, commit("cut", (ORDERS, [row(0, 1, metadata="m")]))),
    (OFFSET_COMMIT, 9, commit("cut", (ORDERS, [row(0, 1, metadata="m")]))),
    (OFFSET_FETCH, 1, fetch("cut", (ORDERS, [0, 1]))(1)),
    (OFFSET_FETCH, 7, fetch("cut", (ORDERS, [0, 1]))(7)),
    (OFFSET_FETCH, 9, fetch("cut", (ORDERS, [0, 1]))(9)),
    (LIST_OFFSETS, 1, ends((EMPTY, [at(0, -1)]))),
    (LIST_OFFSETS, 11, ends((EMPTY, [at(0, -1)]))),
    (FETCH, 4, records(EMPTY, since(0, 0))(4)),
    (FETCH, 12, records(EMPTY, since(0, 0))(12)),
    (DESCRIBE_CLUSTER, 2, DescribeClusterRequest()),
    (
        DESCRIBE_CONFIGS,
        1,
        DescribeConfigsRequest(resources=(DescribeConfigsRequestResource(2, ORDERS, ("no.such.key",)),)),
    ),
    (
        DESCRIBE_CONFIGS,
        4,
        DescribeConfigsRequest(resources=(DescribeConfigsRequestResource(2, ORDERS, ("no.such.key",)),)),
    ),
    (JOIN_GROUP, 2, join("cut", "m")),
    (JOIN_GROUP, 9, join("cut", "m", instance="i")),
    (SYNC_GROUP, 0, sync("m", 1, ("m", b"part"), group="cut")),
    (SYNC_GROUP, 5, sync("m", 1, ("m", b"part"), group="cut", instance="i")),
    (HEARTBEAT, 0, beat("m", 1, group="cut")),
    (HEARTBEAT, 4, beat("m", 1, group="cut", instance="i")),
    (LEAVE_GROUP, 0, leave(("m", None), group="cut")(0)),
    (LEAVE_GROUP, 5, leave(("m", "i"), group="cut")(5)),
    (LIST_GROUPS, 5, listing("no such state", types=("classic",))),
    (DESCRIBE_GROUPS, 0, describe("cut-never")),
    (DESCRIBE_GROUPS, 6, describe("cut-never")),
    (DELETE_GROUPS, 2, delete("cut-never")),
    (OFFSET_DELETE, 0, delete_offsets("cut-never", (ORDERS, [0]))),
)

BEGINNINGS: Final = tuple(
    Frames(
        f"frames: beginnings of {type(request).__name__} {version}",
        tuple(
            Frame(f"{size} bytes", _sized(_whole(key, version, request)[:size]), _read_by(key, version))
            for size in range(1, len(_whole(key, version, request)) + 1)
        ),
    )
    for key, version, request in _REQUESTS
)

ENDINGS: Final = Frames(
    "frames: trailing bytes",
    tuple(
        Frame(
            f"{count} after {type(request).__name__} {version}",
            _sized(_whole(key, version, request) + b"\xff" * count),
            _read_by(key, version),
        )
        for key, version, request in _REQUESTS
        for count in (1, 100)
    ),
)

_COMMIT_TAIL: Final = pack(">i", -1) + _text(b"") + pack(">q", -1)
_ONE_TOPIC: Final = pack(">i", 1) + _text(b"orders")
_ONE_PARTITION: Final = pack(">iiq", 1, 0, 5)
_JOINING: Final = _text(b"odd") + pack(">i", 6000) + _text(b"m") + _text(b"consumer")
_PARTS: Final = _text(b"odd") + pack(">i", 1) + _text(b"m")
#: As a count it is one more than the elements, which makes it -2 in 32 bits.
_LARGEST: Final = b"\xff\xff\xff\xff\x0f"

BODIES: Final = Frames(
    "frames: bodies",
    (
        _frame("commit: null group", OFFSET_COMMIT, 2, pack(">h", -1) + _COMMIT_TAIL + pack(">i", 0)),
        _frame("commit: group of length -2", OFFSET_COMMIT, 2, pack(">h", -2) + _COMMIT_TAIL + pack(">i", 0)),
        _frame("commit: null topics", OFFSET_COMMIT, 2, _text(b"odd") + _COMMIT_TAIL + pack(">i", -1)),
        _frame("commit: -2 topics", OFFSET_COMMIT, 2, _text(b"odd") + _COMMIT_TAIL + pack(">i", -2)),
        _frame("commit: too many topics", OFFSET_COMMIT, 2, _text(b"odd") + _COMMIT_TAIL + pack(">i", 2**31 - 1)),
        _frame("commit: null partitions", OFFSET_COMMIT, 2, _text(b"odd") + _COMMIT_TAIL + _ONE_TOPIC + pack(">i", -1)),
        _frame(
            "commit: null metadata",
            OFFSET_COMMIT,
            2,
            _text(b"odd") + _COMMIT_TAIL + _ONE_TOPIC + _ONE_PARTITION + pack(">h", -1),
        ),
        _frame(
            "commit: metadata of length -2",
            OFFSET_COMMIT,
            2,
            _text(b"odd") + _COMMIT_TAIL + _ONE_TOPIC + _ONE_PARTITION + pack(">h", -2),
        ),
        _frame(
            "commit: metadata that is no text",
            OFFSET_COMMIT,
            2,
            _text(b"odd") + _COMMIT_TAIL + _ONE_TOPIC + _ONE_PARTITION + _text(b"\xff"),
        ),
        _frame("commit 8: null group", OFFSET_COMMIT, 8, _NO_TAGS + b"\0" + pack(">i", -1) + b"\x01\0\x01" + _NO_TAGS),
        _frame(
            "commit 8: null member", OFFSET_COMMIT, 8, _NO_TAGS + b"\x02g" + pack(">i", -1) + b"\0\0\x01" + _NO_TAGS
        ),
        _frame(
            "commit 8: null topics", OFFSET_COMMIT, 8, _NO_TAGS + b"\x02g" + pack(">i", -1) + b"\x01\0\0" + _NO_TAGS
        ),
        _frame("commit 8: nothing", OFFSET_COMMIT, 8, _NO_TAGS + b"\x02g" + pack(">i", -1) + b"\x01\0\x01" + _NO_TAGS),
        _frame(
            "commit 8: unknown tags",
            OFFSET_COMMIT,
            8,
            _NO_TAGS + b"\x02g" + pack(">i", -1) + b"\x01\0\x01" + b"\x02\x63\x01a\x05\x02bc",
        ),
        _frame(
            "commit 8: padded lengths",
            OFFSET_COMMIT,
            8,
            _NO_TAGS + b"\x82\x80\x00g" + pack(">i", -1) + b"\x81\x00\x80\x00\x81\x00" + b"\x80\x00",
        ),
        _frame(
            "commit 8: length of six bytes",
            OFFSET_COMMIT,
            8,
            _NO_TAGS + b"\x82\x80\x80\x80\x80\x00g" + pack(">i", -1) + b"\x01\0\x01" + _NO_TAGS,
        ),
        _frame("fetch offsets 1: null topics", OFFSET_FETCH, 1, _text(b"odd") + pack(">i", -1)),
        _frame("fetch offsets 2: null topics", OFFSET_FETCH, 2, _text(b"odd") + pack(">i", -1)),
        _frame("fetch offsets 2: -2 topics", OFFSET_FETCH, 2, _text(b"odd") + pack(">i", -2)),
        _frame("fetch offsets 7: -2 topics", OFFSET_FETCH, 7, _NO_TAGS + b"\x04odd" + _LARGEST + b"\0" + _NO_TAGS),
        _frame("fetch offsets 1: null partitions", OFFSET_FETCH, 1, _text(b"odd") + _ONE_TOPIC + pack(">i", -1)),
        _frame("fetch offsets 8: null groups", OFFSET_FETCH, 8, _NO_TAGS + b"\0\0" + _NO_TAGS),
        _frame("fetch offsets 8: null group id", OFFSET_FETCH, 8, _NO_TAGS + b"\x02\0\0\0\0" + _NO_TAGS),
        _frame("fetch offsets 7: stable is 255", OFFSET_FETCH, 7, _NO_TAGS + b"\x04odd\x01\xff" + _NO_TAGS),
        _frame("metadata 0: null", METADATA, 0, pack(">i", -1)),
        _frame("metadata 1: -2 topics", METADATA, 1, pack(">i", -2)),
        _frame("metadata 1: null name", METADATA, 1, pack(">ih", 1, -1)),
        _frame("metadata 9: null name", METADATA, 9, _NO_TAGS + b"\x02\0\0\0\0\0" + _NO_TAGS),
        _frame("metadata 8: switches of 2", METADATA, 8, pack(">i", 0) + b"\x02\x02\x02"),
        _frame("find coordinator: null key", FIND_COORDINATOR, 0, pack(">h", -1)),
        _frame("find coordinator 4: null keys", FIND_COORDINATOR, 4, _NO_TAGS + b"\0\0" + _NO_TAGS),
        _frame("find coordinator 4: null key", FIND_COORDINATOR, 4, _NO_TAGS + b"\0\x02\0" + _NO_TAGS),
        _frame("list offsets: null topics", LIST_OFFSETS, 1, pack(">ii", -1, -1)),
        _frame("describe cluster: switch of 2", DESCRIBE_CLUSTER, 0, _NO_TAGS + b"\x02" + _NO_TAGS),
        _frame("describe cluster: switch of 255", DESCRIBE_CLUSTER, 1, _NO_TAGS + b"\xff\x01" + _NO_TAGS),
        _frame("describe configs: null resources", DESCRIBE_CONFIGS, 1, pack(">i", -1) + b"\0"),
        _frame("join: null group", JOIN_GROUP, 0, pack(">hi", -1, 6000) + _text(b"m") + _text(b"c") + pack(">i", 0)),
        _frame("join: null protocols", JOIN_GROUP, 0, _JOINING + pack(">i", -1)),
        _frame("join: too many protocols", JOIN_GROUP, 0, _JOINING + pack(">i", 2**31 - 1)),
        _frame("join: null metadata", JOIN_GROUP, 0, _JOINING + pack(">i", 1) + _text(b"p") + pack(">i", -1)),
        _frame("join: metadata that ends early", JOIN_GROUP, 0, _JOINING + pack(">i", 1) + _text(b"p") + pack(">i", 9)),
        _frame("sync: null parts", SYNC_GROUP, 0, _text(b"odd") + pack(">i", 1) + _text(b"m") + pack(">i", -1)),
        _frame("sync: a null part", SYNC_GROUP, 0, _PARTS + pack(">i", 1) + _text(b"m") + pack(">i", -1)),
        _frame("heartbeat: null member", HEARTBEAT, 0, _text(b"odd") + pack(">ih", 1, -1)),
        _frame("heartbeat: null instance", HEARTBEAT, 3, _text(b"odd") + pack(">i", 1) + _text(b"m") + pack(">h", -1)),
        _frame("leave: null members", LEAVE_GROUP, 3, _text(b"odd") + pack(">i", -1)),
        _frame("describe groups: null groups", DESCRIBE_GROUPS, 0, pack(">i", -1)),
        _frame("describe groups: a null group", DESCRIBE_GROUPS, 0, pack(">ih", 1, -1)),
        _frame("list groups 4: null states", LIST_GROUPS, 4, _NO_TAGS + b"\0" + _NO_TAGS),
        _frame("delete groups: null groups", DELETE_GROUPS, 0, pack(">i", -1)),
        _frame("delete groups: a null group", DELETE_GROUPS, 0, pack(">ih", 1, -1)),
        _frame("delete offsets: null topics", OFFSET_DELETE, 0, _text(b"odd") + pack(">i", -1)),
        _frame("ApiVersions 3: null software", API_VERSIONS, 3, _NO_TAGS + b"\0\0" + _NO_TAGS),
    ),
)

#: How many signs a broken text becomes is a matter of the decoder; these are the places where decoders part.
_NO_TEXTS: Final = (
    b"\xff\xfe",
    b"\x80",
    b"a\x80b",
    b"\xc0\x80",
    b"\xc1\xbf",
    b"\xc3",
    b"\xe2\x82",
    b"\xe2\x82x",
    b"\xe2x",
    b"\xe0\x80\x80",
    b"\xed\xa0\x80",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xf0\x9f\x98",
    b"\xf0\x9fx",
    b"\xf0\x80\x80\x80",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xfc\x80\x80\x80\x80\x80",
    b"\xef\xbb\xbfa",
    b"\xef\xbf\xbe",
)

TEXTS: Final = Frames(
    "frames: texts",
    (
        *(
            _frame(
                f"topic {words.hex(' ')}",
                OFFSET_FETCH,
                1,
                _text(b"odd") + pack(">i", 1) + _text(words) + pack(">ii", 1, 0),
            )
            for words in _NO_TEXTS
        ),
        *(
            _frame(
                f"key {words.hex(' ')}",
                FIND_COORDINATOR,
                4,
                _NO_TAGS + b"\0\x02" + bytes([len(words) + 1]) + words + _NO_TAGS,
            )
            for words in _NO_TEXTS
        ),
    ),
)

FRAMES: Final = (LENGTHS, HEADERS, APIS_AND_VERSIONS, OLD_VERSIONS, *BEGINNINGS, ENDINGS, BODIES, TEXTS)
