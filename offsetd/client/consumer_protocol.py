"""What members of a group say to one another: Kafka's consumer protocol, which brokers carry and do not read.

The bytes come from strangers, in whatever library and version. What cannot be read is read as nothing: such a member is
given no partitions, and no group ends because of it.
"""

import logging
from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import Any, Final, NamedTuple, TypeVar, cast

from offsetd.client.position import PARTITION_MAX, TOPIC_CHARACTERS_MAX, TopicPartition
from protocol.decoding import Decoder, compile_decoder
from protocol.encoding import Encoder, compile_encoder
from protocol.schema import array, int32, message, message_info, nullable_bytes, nullable_string, string, struct
from protocol.wire import Malformed, ProtocolError

PROTOCOL_TYPE: Final = "consumer"
#: Understood by every library: newer versions only add what the older ones leave alone.
WRITTEN_VERSION: Final = 1
ELEMENTS_MAX: Final = 250_000
STREAMS_MAX: Final = 1024

_VERSION = Struct(">h")
#: Our own part of a member's user data: a mark, so that no other library's is taken for it, and the number of streams.
_STREAMS = Struct(">4sH")
_STREAMS_MARK: Final = b"ofs\x01"

logger = logging.getLogger(__name__)
T = TypeVar("T")


@struct
class TopicPartitions(NamedTuple):
    """The partitions of one topic."""

    topic: str = string()
    partitions: tuple[int, ...] = array(int32())


@message(api_key=-1, versions="0-3", flexible="")
class SubscriptionMessage(NamedTuple):
    """What a member says when it joins."""

    topics: tuple[str, ...] = array(string())
    user_data: bytes | None = nullable_bytes()
    owned_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions, "1+")
    generation_id: int = int32("2+", default=-1)
    rack_id: str | None = nullable_string("3+", nullable="3+", default=None)


@message(api_key=-1, versions="0-3", flexible="")
class AssignmentMessage(NamedTuple):
    """What the leader says to each member."""

    assigned_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)
    user_data: bytes | None = nullable_bytes()


@message(api_key=-1, versions="0-1", flexible="")
class StickyMessage(NamedTuple):
    """The user data of the sticky assignor: what the member had, and in which generation."""

    previous_assignment: tuple[TopicPartitions, ...] = array(TopicPartitions)
    generation: int = int32("1+", default=-1)


class Subscription(NamedTuple):
    """What a member reads, and what it had."""

    topics: frozenset[str] = frozenset()
    streams: int = 1
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1


def write_subscription(topics: frozenset[str], user_data: bytes | None) -> bytes:
    """Return what a member says when it joins. The topics are in order: the same subscription has the same bytes."""
    said = SubscriptionMessage(topics=tuple(sorted(topics)), user_data=user_data)
    return _VERSION.pack(WRITTEN_VERSION) + _encoder(SubscriptionMessage, WRITTEN_VERSION)(said)


def read_subscription(data: bytes, *, sticky: bool = False) -> Subscription:
    """Return what a member said, nothing where that cannot be told.

    Args:
        sticky: whether its user data is that of the sticky assignor, or else of ours.
    """
    said = _read(SubscriptionMessage, data)
    if said is None:
        return Subscription()
    # Nobody could ask a broker for what is no name of a topic.
    topics = frozenset(topic for topic in said.topics if 1 <= len(topic) <= TOPIC_CHARACTERS_MAX)
    user_data = said.user_data or b""
    if not sticky:
        return Subscription(topics=topics, streams=read_streams(user_data))
    owned, generation = _read_sticky(user_data)
    if not owned:
        # Members of a cooperative library say it in the newer fields.
        owned, generation = _flat(said.owned_partitions), said.generation_id
    return Subscription(topics=topics, owned=owned, generation=generation)


def write_assignment(partitions: tuple[TopicPartition, ...]) -> bytes:
    """Return what the leader says to a member."""
    said = AssignmentMessage(assigned_partitions=_by_topic(partitions))
    return _VERSION.pack(WRITTEN_VERSION) + _encoder(AssignmentMessage, WRITTEN_VERSION)(said)


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions that the leader gave, none where that cannot be told."""
    if not data:
        # A leader that leaves a member out gives it nothing, not even a version.
        return ()
    said = _read(AssignmentMessage, data)
    return () if said is None else _flat(said.assigned_partitions)


def write_streams(streams: int) -> bytes | None:
    """Return the user data of a member with so many streams; with one it says nothing, like everybody else."""
    assert 1 <= streams <= STREAMS_MAX
    return None if streams == 1 else _STREAMS.pack(_STREAMS_MARK, streams)


def read_streams(user_data: bytes) -> int:
    """Return a member's streams: one, unless it is one of ours and says otherwise."""
    try:
        mark, streams = _STREAMS.unpack_from(user_data)
    except struct_error:
        return 1
    return streams if mark == _STREAMS_MARK and 1 <= streams <= STREAMS_MAX else 1


def write_sticky(owned: tuple[TopicPartition, ...], generation: int) -> bytes:
    """Return the user data of the sticky assignor."""
    return _encoder(StickyMessage, 1)(StickyMessage(previous_assignment=_by_topic(owned), generation=generation))


def _read_sticky(user_data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    for version in (1, 0):
        try:
            said: StickyMessage = _decoder(StickyMessage, version)(user_data, 0)
        except ProtocolError:
            continue
        return _flat(said.previous_assignment), said.generation
    return (), -1


def _read(kind: type[T], data: bytes) -> T | None:
    try:
        (version,) = _VERSION.unpack_from(data)
        if version >= 0:
            # What a newer version adds stands behind what is known.
            known = min(version, message_info(kind).versions.last)
            return cast("T", _decoder(cast("Any", kind), known)(data, _VERSION.size))
        reason: Exception = Malformed(what="version", value=version)
    except (struct_error, ProtocolError) as error:
        reason = error
    logger.warning("a member's %s of %d bytes cannot be read: %s", kind.__name__, len(data), reason)
    return None


@cache
def _decoder(kind: type[Any], version: int) -> Decoder:
    return compile_decoder(kind, version, elements_max=ELEMENTS_MAX)


@cache
def _encoder(kind: type[Any], version: int) -> Encoder:
    return compile_encoder(kind, version)


def _flat(rows: tuple[TopicPartitions, ...]) -> tuple[TopicPartition, ...]:
    return tuple(
        dict.fromkeys(
            TopicPartition(row.topic, number)
            for row in rows
            for number in row.partitions
            if 0 <= number <= PARTITION_MAX
        )
    )


def _by_topic(partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartitions, ...]:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in topics.items())
