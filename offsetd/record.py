"""The kinds of entries and their msgpack encoding, pure.

An entry is what one request (or one sweep) asks the log to remember: a msgpack array that begins with its kind, its
version and its slot. A commit is written as constant bytes with holes for the time and the offsets, so that a shape
(offsetd/coordinator/shape.py) can fill the holes of a remembered entry and get exactly the bytes that `encode_commit`
would have made. The layout is documented in docs/journal-format.md. Nothing here reads a clock, a file or state.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

import msgpack


class Kind(IntEnum):
    """What an entry means. Numbers are for ever: they stand in journals on users' disks."""

    OPENING = 0
    COMMIT = 1
    TOUCH = 2
    TOMBSTONE = 3
    GROUP = 4
    GROUP_TOMBSTONE = 5
    UNDO = 6
    TRASH = 7
    FREEZE = 8
    STORAGE_MODE = 9
    LOG_END_SAMPLE = 10


class Reason(IntEnum):
    """Why an offset was removed; kept in its tombstone for the people who ask later."""

    EXPIRED = 1
    DELETED = 2


#: Kinds that this release writes and replays, with the newest version of each.
KNOWN: dict[int, int] = {
    Kind.OPENING: 1,
    Kind.COMMIT: 1,
    Kind.TOUCH: 1,
    Kind.TOMBSTONE: 1,
    Kind.GROUP: 1,
    Kind.GROUP_TOMBSTONE: 1,
}

#: A request's entry above this is refused, as Kafka refuses a commit larger than one batch (message.max.bytes).
ENTRY_BYTES_MAX = 1024 * 1024

#: From this time on msgpack writes a time as 0xcf and eight bytes, which is what makes it a hole of fixed size.
TIME_MS_WIDE = 1 << 32

TIME = Struct(">Q")

#: The slot of an entry that belongs to none.
NO_SLOT = -1

# msgpack's numbers: below this bound they are their own byte; above it the first byte says how many there are.
_SMALL_MAX = 0x7F
_NUMBER_BYTES = {0xCC: 2, 0xCD: 3, 0xCE: 5}

Entry: TypeAlias = tuple[Any, ...]


class Who(NamedTuple):
    """Who made an entry: kept once per request, not per partition."""

    client_id: str
    host: str
    member_id: str


class TopicOffsets(NamedTuple):
    """The offsets of one topic in one commit, as packed big-endian columns in request order."""

    name: str
    partitions: bytes
    offsets: bytes
    epochs: bytes | None = None
    times: bytes | None = None
    expiries: bytes | None = None
    metadata: tuple[tuple[int, str], ...] | None = None


class GenerationMember(NamedTuple):
    """A member of a completed generation, as the log keeps it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    # What it said for the protocol that was chosen.
    metadata: bytes
    assignment: bytes


class Generation(NamedTuple):
    """A completed generation of a group's members; one without members is a group that has become empty."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[GenerationMember, ...]


class UnknownEntry(Exception):
    """The log holds a kind or version of entry that this release does not know, so replaying it would be a guess."""

    def __init__(self, *, kind: object, version: object) -> None:
        super().__init__(
            f"the log holds an entry of kind {kind} version {version}, which this release does not know: "
            "it was written by a newer offsetd; start that release, or a newer one"
        )
        self.kind = kind
        self.version = version


_packb = msgpack.Packer(use_bin_type=True, autoreset=True).pack


def _array(length: int) -> bytes:
    packed: bytes = msgpack.Packer(autoreset=True).pack_array_header(length)
    return packed


def _bin_head(size: int) -> bytes:
    if size < 1 << 8:
        return b"\xc4" + size.to_bytes(1, "big")
    if size < 1 << 16:
        return b"\xc5" + size.to_bytes(2, "big")
    return b"\xc6" + size.to_bytes(4, "big")


def commit_pieces(slot: int, group_id: str, who: Who, topics: Sequence[TopicOffsets]) -> list[bytes]:
    """Return the constant parts of a commit: what stands before the time, then around each topic's offsets."""
    pieces = [_array(7) + _packb(int(Kind.COMMIT)) + _packb(1) + _packb(slot) + _packb(group_id)]
    text = _packb(who) + _array(len(topics))
    for topic in topics:
        text += _array(7) + _packb(topic.name) + _packb(topic.partitions) + _bin_head(len(topic.offsets))
        pieces.append(text)
        text = _packb(topic.epochs) + _packb(topic.times) + _packb(topic.expiries) + _packb(topic.metadata)
    pieces.append(text)
    return pieces


def encode_commit(slot: int, group_id: str, time_ms: int, who: Who, topics: Sequence[TopicOffsets]) -> bytes:
    """Encode one commit; `topics` keeps the order of the request."""
    pieces = commit_pieces(slot, group_id, who, topics)
    parts = [pieces[0], _packb(time_ms), pieces[1]]
    for topic, after in zip(topics, pieces[2:], strict=True):
        parts += (topic.offsets, after)
    return b"".join(parts)


def encode_touch(slot: int, group_id: str, time_ms: int, who: Who, topics: Iterable[tuple[str, bytes]]) -> bytes:
    """Encode that a commit repeated what is already stored: only the commit time of these partitions moves."""
    packed: bytes = _packb((int(Kind.TOUCH), 1, slot, group_id, time_ms, who, tuple(topics)))
    return packed


def encode_tombstone(
    slot: int, group_id: str, time_ms: int, who: Who, reason: Reason, topics: Iterable[tuple[str, bytes]]
) -> bytes:
    """Encode the removal of some partitions of a group; `topics` pairs a name with packed partition numbers."""
    packed: bytes = _packb((int(Kind.TOMBSTONE), 1, slot, group_id, time_ms, who, int(reason), tuple(topics)))
    return packed


def encode_group_tombstone(slot: int, group_id: str, time_ms: int, who: Who, reason: Reason) -> bytes:
    """Encode the removal of a whole group."""
    packed: bytes = _packb((int(Kind.GROUP_TOMBSTONE), 1, slot, group_id, time_ms, who, int(reason)))
    return packed


def generation_entry(slot: int, group_id: str, time_ms: int, who: Who, generation: Generation) -> Entry:
    """Return the entry of a completed generation, as it is decoded from the log."""
    return int(Kind.GROUP), 1, slot, group_id, time_ms, who, generation


def encode_generation(slot: int, group_id: str, time_ms: int, who: Who, generation: Generation) -> bytes:
    """Encode that a generation of a group's members is complete, or that all of them are gone."""
    packed: bytes = _packb(generation_entry(slot, group_id, time_ms, who, generation))
    return packed


def read_generation(stored: Entry) -> Generation:
    """Return a generation from the plain fields that the log or a checkpoint gives back."""
    protocol_type, generation, protocol, leader, members = stored
    return Generation(protocol_type, generation, protocol, leader, tuple(GenerationMember(*row) for row in members))


def encode_opening(epoch: int, time_ms: int, release: str) -> bytes:
    """Encode the entry that opens an epoch; it belongs to no slot (-1)."""
    packed: bytes = _packb((int(Kind.OPENING), 1, NO_SLOT, epoch, time_ms, release))
    return packed


def record_count(entry: Entry) -> int:
    """Return how many records an entry is: what its slot's sequence moves by when it is applied."""
    if entry[0] in (Kind.GROUP, Kind.GROUP_TOMBSTONE):
        return 1
    if entry[0] == Kind.OPENING:
        return 0
    return sum(len(topic[1]) // 4 for topic in entry[-1])


def split_entries(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the slot and the bytes of each entry of a batch's body, without looking at the rest of them.

    Raises:
        UnknownEntry: an entry's kind or version is not known to this release.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=len(body))
    unpacker.feed(body)
    count = unpacker.read_array_header()
    start = unpacker.tell()
    for _ in range(count):
        unpacker.skip()
        end = unpacker.tell()
        entry = body[start:end]
        # An entry is a short array, so its head is one byte, and kind and version are one byte each.
        _check_known(entry[1], entry[2])
        slot = entry[3]
        if slot > _SMALL_MAX:
            slot = msgpack.unpackb(entry[3 : 3 + _NUMBER_BYTES.get(slot, 1)])
        yield slot, entry
        start = end


def decode_entry(entry: bytes) -> Entry:
    """Decode the bytes of one entry that `split_entries` has found to be known."""
    decoded: Entry = msgpack.unpackb(entry, use_list=False, strict_map_key=False)
    return decoded


def decode_entries(body: bytes) -> tuple[Entry, ...]:
    """Decode a batch's body.

    Raises:
        UnknownEntry: an entry's kind or version is not known to this release.
    """
    entries: tuple[Entry, ...] = msgpack.unpackb(body, use_list=False, strict_map_key=False)
    for entry in entries:
        _check_known(entry[0], entry[1])
    return entries


def _check_known(kind: int, version: int) -> None:
    if not 1 <= version <= KNOWN.get(kind, 0):
        raise UnknownEntry(kind=kind, version=version)
