"""The frames that the generator sends and the replies that it wants back, encoded once, with holes for the offsets.

A group's frames repeat but for the correlation id and the offsets, as with a real consumer; offsets differ in every
request, so that a server gains nothing by remembering whole requests.
"""

from struct import Struct
from typing import Final

from protocol.api import OFFSET_COMMIT, OFFSET_FETCH, Request, encode_request, encode_response
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

VERSION: Final = 8
CLIENT_ID: Final = "offsetd-bench"
TOPICS_MAX: Final = 10
PARTITIONS_PER_TOPIC: Final = 10
PARTITIONS_MAX: Final = TOPICS_MAX * PARTITIONS_PER_TOPIC
GROUPS_MAX: Final = 10_000_000

#: Stands where an offset will be; nothing else in a frame looks like it.
_MARKER: Final = 0x7EED_0FF5_E7B0_0B5E
_MARKER_BYTES: Final = _MARKER.to_bytes(8, "big")
#: Takes the place of a group's name, all of which are equally long.
_NAME: Final = "bench-group-xxxxxxx"


def topic_name(number: int) -> str:
    """Return the name of one of the ten topics."""
    return f"bench-topic-{number % TOPICS_MAX}"


def group_name(number: int) -> str:
    """Return the name of a group; every name has the same length, so that all frames of a layout have too."""
    return f"bench-group-{number:07d}"


class Holes:
    """Where the offsets stand in a frame, and how to write them all with one call."""

    __slots__ = ("_mix", "_pack_into", "_start", "count")

    def __init__(self, frame: bytes) -> None:
        pieces = frame.split(_MARKER_BYTES)
        self.count = len(pieces) - 1
        assert self.count > 0, "a frame with offsets has their markers"
        self._start = len(pieces[0])
        between = pieces[1:-1]
        self._pack_into = Struct(">q" + "".join(f"{len(piece)}sq" for piece in between)).pack_into
        # Offsets at even places; what stands between two of them at odd ones.
        self._mix: list[int | bytes] = [0]
        for piece in between:
            self._mix += (piece, 0)

    def fill(self, frame: bytearray, value: int) -> None:
        """Write ``value`` as the first offset, and one more for each one after it."""
        mix = self._mix
        mix[0::2] = range(value, value + self.count)
        self._pack_into(frame, self._start, *mix)


class Layout:
    """What the groups that begin at one topic have in common: frames and replies but for name and offsets."""

    def __init__(self, first_topic: int, partitions: int) -> None:
        topics = _spread(first_topic, partitions)
        commit = OffsetCommitRequest(
            group_id=_NAME,
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=tuple(
                        OffsetCommitRequestPartition(
                            partition_index=index, committed_offset=_MARKER, committed_metadata=""
                        )
                        for index in range(count)
                    ),
                )
                for name, count in topics
            ),
        )
        asked = OffsetFetchRequestGroup(
            group_id=_NAME,
            topics=tuple(
                OffsetFetchRequestTopic(name=name, partition_indexes=tuple(range(count))) for name, count in topics
            ),
        )
        fetch = OffsetFetchRequest(groups=(asked,), require_stable=True)
        # Topic and partition of each offset, in the order in which they are written.
        self.order = [(name, index) for name, count in topics for index in range(count)]
        self.commit = _encode(OFFSET_COMMIT, commit)
        self.fetch = _encode(OFFSET_FETCH, fetch)
        self.commit_holes = Holes(self.commit)
        self.commit_reply = _commit_reply(topics)
        self.fetch_reply = _fetch_reply(topics)
        self.fetch_reply_holes = Holes(self.fetch_reply)


class GroupFrames:
    """One group: its frames, and what it was last acknowledged for."""

    __slots__ = ("commit", "commit_head", "commit_tail", "fetch", "fetch_head", "fetch_tail", "layout", "name", "value")

    def __init__(self, number: int, layout: Layout) -> None:
        self.layout = layout
        self.name = group_name(number).encode()
        self.commit = bytearray(layout.commit.replace(_NAME.encode(), self.name))
        self.fetch = bytearray(layout.fetch.replace(_NAME.encode(), self.name))
        # A reply is its size, the correlation id, and the rest.
        self.commit_head = layout.commit_reply[:4]
        self.commit_tail = layout.commit_reply[8:]
        self.fetch_head = layout.fetch_reply[:4]
        self.fetch_tail: bytes | None = None
        # The offset of its first partition in the commit that was sent last.
        self.value = 0

    def next_commit(self, correlation: bytes, value: int) -> bytearray:
        """Return the frame of a commit; it is valid until the next one of this group."""
        frame = self.commit
        frame[8:12] = correlation
        self.layout.commit_holes.fill(frame, value)
        self.value = value
        self.fetch_tail = None
        return frame

    def next_fetch(self, correlation: bytes) -> bytearray:
        """Return the frame of a fetch."""
        frame = self.fetch
        frame[8:12] = correlation
        return frame

    def wanted_commit_reply(self, correlation: bytes) -> bytes:
        """Return the whole reply that says that every partition was taken."""
        return self.commit_head + correlation + self.commit_tail

    def wanted_fetch_reply(self, correlation: bytes) -> bytes:
        """Return the whole reply that shows exactly the last commit."""
        tail = self.fetch_tail
        if tail is None:
            reply = bytearray(self.layout.fetch_reply.replace(_NAME.encode(), self.name))
            self.layout.fetch_reply_holes.fill(reply, self.value)
            tail = self.fetch_tail = bytes(reply[8:])
        return self.fetch_head + correlation + tail


def make_groups(*, first: int, count: int, partitions: int) -> list[GroupFrames]:
    """Return the frames of ``count`` groups; they begin at the ten topics in turn."""
    if not 1 <= partitions <= PARTITIONS_MAX or (partitions > PARTITIONS_PER_TOPIC and partitions % TOPICS_MAX):
        raise ValueError(f"{partitions} partitions, want 1..{PARTITIONS_PER_TOPIC} or a multiple of it up to 100")
    if not 0 <= first <= first + count <= GROUPS_MAX:
        raise ValueError(f"groups {first}..{first + count}, want at most {GROUPS_MAX}")
    layouts = [Layout(topic, partitions) for topic in range(TOPICS_MAX)]
    return [GroupFrames(number, layouts[number % TOPICS_MAX]) for number in range(first, first + count)]


def _spread(first_topic: int, partitions: int) -> list[tuple[str, int]]:
    """Return topics and their numbers of partitions: one topic up to ten partitions, all ten beyond."""
    if partitions <= PARTITIONS_PER_TOPIC:
        return [(topic_name(first_topic), partitions)]
    return [(topic_name(first_topic + step), partitions // TOPICS_MAX) for step in range(TOPICS_MAX)]


def _encode(key: int, request: Request) -> bytes:
    return encode_request(key, VERSION, 0, CLIENT_ID, request)


def _commit_reply(topics: list[tuple[str, int]]) -> bytes:
    reply = OffsetCommitResponse(
        throttle_time_ms=0,
        topics=tuple(
            OffsetCommitResponseTopic(
                name=name,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=index, error_code=0) for index in range(count)
                ),
            )
            for name, count in topics
        ),
    )
    return encode_response(OFFSET_COMMIT, VERSION, 0, reply)


def _fetch_reply(topics: list[tuple[str, int]]) -> bytes:
    group = OffsetFetchResponseGroup(
        group_id=_NAME,
        error_code=0,
        topics=tuple(
            OffsetFetchResponseTopic(
                name=name,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=_MARKER, metadata="", error_code=0
                    )
                    for index in range(count)
                ),
            )
            for name, count in topics
        ),
    )
    return encode_response(OFFSET_FETCH, VERSION, 0, OffsetFetchResponse(throttle_time_ms=0, groups=(group,)))
