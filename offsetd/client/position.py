"""What is committed, and for what: the values that go in and out of the client."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

OFFSET_MAX: Final = 2**63 - 1
PARTITION_MAX: Final = 2**31 - 1
#: Kafka's limit of a topic's name; a broker refuses longer ones in many ways, none of them clear.
TOPIC_CHARACTERS_MAX: Final = 249
#: The wire's own limit of a string.
STRING_BYTES_MAX: Final = 32_767


class TopicPartition(NamedTuple):
    """A topic's partition. A plain pair of a name and a number is equal to it and taken wherever it is."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class Committed(NamedTuple):
    """An offset with what is kept beside it: the offset of the record to read next, and a note of the application."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


#: What `commit` takes: offsets by partition, with metadata or without.
Offsets: TypeAlias = Mapping[tuple[str, int], int | Committed] | Mapping[TopicPartition, int | Committed]


def checked_partition(partition: tuple[str, int]) -> TopicPartition:
    """Return a pair as the client keeps it.

    Raises:
        ValueError: nothing on the wire could say it.
    """
    topic, number = partition
    if not isinstance(topic, str) or not 1 <= len(checked_string(topic, "topic")) <= TOPIC_CHARACTERS_MAX:
        raise ValueError(f"topic {topic!r} is not a name of 1..{TOPIC_CHARACTERS_MAX} characters")
    if not isinstance(number, int) or not 0 <= number <= PARTITION_MAX:
        raise ValueError(f"partition {number!r} of {topic} is not a number in 0..{PARTITION_MAX}")
    return TopicPartition(topic, number)


def checked_partitions(partitions: Iterable[tuple[str, int]]) -> tuple[TopicPartition, ...]:
    """Return pairs as the client keeps them, each once.

    Raises:
        ValueError: nothing on the wire could say one of them.
    """
    return tuple(dict.fromkeys(checked_partition(partition) for partition in partitions))


def checked_offsets(offsets: Offsets) -> dict[TopicPartition, Committed]:
    """Return offsets as the client keeps them.

    Raises:
        ValueError: an offset is negative, which no record has, or nothing on the wire could say it.
    """
    found = {}
    for partition, value in offsets.items():
        committed = value if isinstance(value, Committed) else Committed(value)
        if not isinstance(committed.offset, int) or not 0 <= committed.offset <= OFFSET_MAX:
            raise ValueError(f"offset {committed.offset!r} of {partition} is not a number in 0..{OFFSET_MAX}")
        if not -1 <= committed.leader_epoch <= PARTITION_MAX:
            raise ValueError(f"leader epoch {committed.leader_epoch} of {partition} is not in -1..{PARTITION_MAX}")
        found[checked_partition(partition)] = committed._replace(
            metadata=checked_string(committed.metadata, "metadata")
        )
    return found


def checked_string(text: str, what: str) -> str:
    """Return a text that the wire can carry.

    Raises:
        ValueError: it is too long, or no text (half of a surrogate pair has no encoding).
    """
    size_bytes = len(text.encode())
    if size_bytes > STRING_BYTES_MAX:
        raise ValueError(f"{what} has {size_bytes} bytes, want at most {STRING_BYTES_MAX}")
    return text
