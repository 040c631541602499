"""Shapes: a consumer sends the same commit again and again, and only its offsets differ.

A shape remembers one commit that was accepted whole: every byte that is not an offset, the entry it became, and its
reply. A later frame is compared with it in one piece; any difference falls back to the ordinary decoder, so a shape can
never misread. What a shape writes equals what the ordinary encoder writes (a property test holds it).
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

from offsetd.record import TIME, TIME_MS_WIDE, TopicOffsets, Who, commit_pieces
from protocol.offset_commit import OffsetCommitRequest

#: A frame larger than this is not worth remembering.
FRAME_BYTES_MAX = 64 * 1024
#: The table of shapes is emptied when it has grown to about this much memory.
SHAPES_BYTES_MAX = 64 * 1024 * 1024


class Shape:
    """One remembered commit."""

    __slots__ = (
        "constants",
        "group_id",
        "partitions",
        "pieces",
        "plan",
        "reply_head",
        "reply_tail",
        "request",
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
    ) -> None:
        self.size = len(frame)
        self.version = version
        self.request = request
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
    at = 10 if frame[8] == 0xFF else 10 + (frame[8] << 8 | frame[9])
    if frame[3] >= 8:
        at += 1
        return frame[:4] + frame[8 : at + frame[at]]
    return frame[:4] + frame[8 : at + 2 + (frame[at] << 8 | frame[at + 1])]


class Shapes:
    """The remembered shapes of one host's clients, within a bound that all hosts share."""

    __slots__ = ("_by_host", "bytes", "count")

    def __init__(self) -> None:
        self._by_host: dict[str, dict[bytes, Shape]] = {}
        self.bytes = 0
        self.count = 0

    def of(self, host: str) -> dict[bytes, Shape]:
        """Return the shapes of a host: an entry keeps the host, so hosts share none."""
        return self._by_host.setdefault(host, {})

    def remember(self, host: str, key: bytes, shape: Shape) -> None:
        """Keep a shape; forget all when the bound is reached, as those in use are soon learned again."""
        cost = 1024 + 2 * shape.size
        if self.bytes + cost > SHAPES_BYTES_MAX:
            # Connections hold these very dicts, so they are emptied and not replaced.
            for shapes in self._by_host.values():
                shapes.clear()
            self._by_host = {known: shapes for known, shapes in self._by_host.items() if known == host}
            self.bytes = self.count = 0
        self.bytes += cost
        self.count += 1
        self.of(host)[key] = shape
