"""Shapes: a consumer sends the same commit again and again, and only its offsets differ.

A shape remembers one commit that was accepted whole: every byte that is not an offset, the entry it became, and its
reply. A later frame is compared with it in one piece; any difference falls back to the ordinary decoder, so a shape can
never misread. What a shape writes equals what the ordinary encoder writes (a property test holds it).
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, cast
from weakref import WeakValueDictionary

from offsetd.coordinator.membership import Membership
from offsetd.record import TIME, TIME_MS_WIDE, TopicOffsets, Who, commit_pieces
from protocol.api import decode_request
from protocol.offset_commit import OffsetCommitRequest

#: A frame larger than this is not worth remembering.
FRAME_BYTES_MAX = 64 * 1024
#: Shapes take about this much memory and no more.
SHAPES_BYTES_MAX = 64 * 1024 * 1024
#: A full table is kept until it has missed so many times as many commits as it remembers: where more groups commit than
#: it can hold, some are quick all the time, and nothing is learned only to be forgotten.
MISSES_PER_SHAPE = 8
# What a shape takes besides three times its frame, as measured: its objects, and of each partition two fields of a
# `Struct` and the bytes between two offsets.
_SHAPE_BYTES = 1500
_PARTITION_BYTES = 160


class Shape:
    """One remembered commit."""

    __slots__ = (
        "constants",
        "first",
        "frame",
        "group_id",
        "highest",
        "member",
        "membership",
        "membership_version",
        "partitions",
        "pieces",
        "plan",
        "reply_head",
        "reply_tail",
        "size",
        "slot",
        "unpack",
        "version",
        "who",
    )

    def __init__(
        self,
        frame: bytes,
        positions: tuple[int, ...],
        *,
        version: int,
        request: OffsetCommitRequest,
        slot: int,
        who: Who,
        topics: tuple[TopicOffsets, ...],
        reply: bytes,
        membership: Membership | None = None,
    ) -> None:
        # It was accepted for what the group's members were then; any change of that sends it to the decoder again.
        self.membership = membership
        self.membership_version = 0 if membership is None else membership.version
        self.member = None if membership is None else membership.roster.members.get(request.member_id)
        self.size = len(frame)
        self.version = version
        self.frame = frame
        self.slot = slot
        self.group_id = request.group_id
        self.who = who
        layout = [">8x"]
        at = 8
        for position in positions:
            layout.append(f"{position - at}s8s")
            at = position + 8
        layout.append(f"{len(frame) - at}s")
        self.unpack: Callable[[bytes], tuple[bytes, ...]] = Struct("".join(layout)).unpack
        self.constants = self.unpack(frame)[0::2]
        self.partitions = len(positions)
        # Where the number of the first partition stands, which is what most tells apart commits of one group.
        self.first = positions[0] - 4
        self.highest = tuple(
            (topic.name, max(Struct(f">{len(topic.partitions) // 4}i").unpack(topic.partitions))) for topic in topics
        )
        # The topics as `apply` takes them, with the place of their offsets among all offsets of the request.
        self.plan: list[tuple[TopicOffsets, int, int]] = []
        end = 0
        for topic in topics:
            start, end = end, end + len(topic.offsets)
            self.plan.append((topic, start, end))
        pieces = commit_pieces(slot, request.group_id, who, topics)
        pieces[0] += b"\xcf"
        self.pieces = pieces
        self.reply_head = reply[:4]
        self.reply_tail = reply[8:]

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return _SHAPE_BYTES + 3 * self.size + _PARTITION_BYTES * self.partitions

    def request(self) -> OffsetCommitRequest:
        """Return the commit that was remembered: few are refused, so it is kept as bytes."""
        return cast("OffsetCommitRequest", decode_request(self.frame)[1])

    def offsets(self, frame: bytes) -> bytes | None:
        """Return the offsets of a frame that is like this shape in every other byte, else None."""
        if len(frame) != self.size:
            return None
        values = self.unpack(frame)
        return b"".join(values[1::2]) if values[0::2] == self.constants else None

    def fill(self, offsets: bytes, time_ms: int) -> tuple[bytes, tuple[Any, ...]]:
        """Return the entry of these offsets, and the topics to apply when it is settled."""
        assert time_ms >= TIME_MS_WIDE, "a clock before 1970-02-20 has no shape"
        pieces = self.pieces
        plan = self.plan
        if len(plan) == 1:
            name, partitions, _, epochs, _, _, metadata = plan[0][0]
            entry = b"".join((pieces[0], TIME.pack(time_ms), pieces[1], offsets, pieces[2]))
            return entry, ((name, partitions, offsets, epochs, None, None, metadata),)
        parts = [pieces[0], TIME.pack(time_ms), pieces[1]]
        topics = []
        for (topic, start, end), after in zip(plan, pieces[2:], strict=True):
            some = offsets[start:end]
            parts += (some, after)
            topics.append((topic.name, topic.partitions, some, topic.epochs, None, None, topic.metadata))
        return b"".join(parts), tuple(topics)


def shape_key(frame: bytes) -> bytes:
    """Return the bytes that name a commit's shape: API, version, client id and group.

    Only a guess at where the group ends: whatever it returns, the shape's own comparison decides.
    """
    # Any negative length of a client id is null, so its first byte is enough.
    at = 10 if frame[8] > 0x7F else 10 + (frame[8] << 8 | frame[9])
    if frame[3] >= 8:
        at += 1
        return frame[:4] + frame[8 : at + frame[at]]
    return frame[:4] + frame[8 : at + 2 + (frame[at] << 8 | frame[at + 1])]


def variant_key(key: bytes, frame: bytes, first: int) -> bytes:
    """Return what tells apart the commits of one group and client: the first partition, and how many there are."""
    return key + frame[first : first + 4] + len(frame).to_bytes(4, "big")


class HostShapes(dict[bytes, Shape]):
    """The shapes of one host's clients; they live as long as one of its connections does."""

    __slots__ = ("__weakref__", "count", "held_bytes")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.held_bytes = 0

    def forget(self) -> None:
        """Empty it; connections hold this very dict, so it is not replaced."""
        self.clear()
        self.count = self.held_bytes = 0


class Shapes:
    """The remembered shapes of all hosts, within a bound that they share."""

    __slots__ = ("_by_host", "_bytes", "_misses_left")

    def __init__(self) -> None:
        self._by_host: WeakValueDictionary[str, HostShapes] = WeakValueDictionary()
        # What was learned since it was last counted: never less than there is.
        self._bytes = 0
        # While it is full: how many more commits it may miss before it is emptied for those in use now.
        self._misses_left = 0

    @property
    def count(self) -> int:
        """How many are remembered."""
        return sum(shapes.count for shapes in self._by_host.values())

    @property
    def held_bytes(self) -> int:
        """About how much memory they take."""
        return sum(shapes.held_bytes for shapes in self._by_host.values())

    def of(self, host: str) -> HostShapes:
        """Return the shapes of a host, for a connection to hold: an entry keeps the host, so hosts share none."""
        found = self._by_host.get(host)
        if found is None:
            found = self._by_host[host] = HostShapes()
        return found

    def learns(self) -> bool:
        """Hear of a commit that was not found; tell whether its shape is worth making."""
        if self._misses_left:
            self._misses_left -= 1
            if not self._misses_left:
                for shapes in self._by_host.values():
                    shapes.forget()
                self._bytes = 0
        return not self._misses_left

    def remember(self, host: str, frame: bytes, shape: Shape) -> None:
        """Keep a frame's shape, if there is room."""
        known = self.of(host)
        key = shape_key(frame)
        variant = variant_key(key, frame, shape.first)
        if variant not in known:
            cost = shape.held_bytes
            if self._bytes + cost > SHAPES_BYTES_MAX and not self._has_room(cost):
                return
            self._bytes += cost
            known.count += 1
            known.held_bytes += cost
        # The newest of its group and client, and one of many: members of a group often share host and client id.
        known[key] = known[variant] = shape

    def _has_room(self, cost: int) -> bool:
        # Hosts that have left took theirs with them.
        self._bytes = self.held_bytes
        if self._bytes + cost <= SHAPES_BYTES_MAX:
            return True
        self._misses_left = self._misses_left or MISSES_PER_SHAPE * self.count
        return False
