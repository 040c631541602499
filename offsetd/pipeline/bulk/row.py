"""One offset as it stands in a dump, and what makes it one; pure."""

from typing import Any, Final, NamedTuple

from offsetd.client.position import (
    OFFSET_MAX,
    PARTITION_MAX,
    STRING_BYTES_MAX,
    TOPIC_CHARACTERS_MAX,
    checked_string,
)

#: The columns that every dump has, and those that it may have.
REQUIRED: Final = ("group", "topic", "partition", "offset")
OPTIONAL: Final = ("metadata", "leader_epoch")
COLUMNS: Final = REQUIRED + OPTIONAL


class OffsetRow(NamedTuple):
    """A group's offset of a partition. Metadata and leader epoch are None where the dump does not say them."""

    group: str
    topic: str
    partition: int
    offset: int
    metadata: str | None = None
    leader_epoch: int | None = None


class Malformed(ValueError):
    """A row that is no offset; says why."""


def make_row(
    group: Any, topic: Any, partition: Any, offset: Any, metadata: Any = None, leader_epoch: Any = None
) -> OffsetRow:
    """Check the fields of a row, which may be texts or numbers.

    Raises:
        Malformed: one of them cannot be.
    """
    return OffsetRow(
        group=_text(group, "group"),
        topic=_topic(topic),
        partition=_number(partition, "partition", 0, PARTITION_MAX),
        offset=_number(offset, "offset", 0, OFFSET_MAX),
        metadata=None if metadata is None else _text(metadata, "metadata"),
        leader_epoch=None if leader_epoch is None else _number(leader_epoch, "leader_epoch", -1, PARTITION_MAX),
    )


def _topic(value: Any) -> str:
    topic = _text(value, "topic")
    if not 1 <= len(topic) <= TOPIC_CHARACTERS_MAX:
        raise Malformed(f"topic has {len(topic)} characters, want 1..{TOPIC_CHARACTERS_MAX}")
    return topic


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{name} is missing")
    try:
        return checked_string(value, name)
    except ValueError as error:
        raise Malformed(str(error) or f"{name} is longer than {STRING_BYTES_MAX} bytes") from error


def _number(value: Any, name: str, least: int, most: int) -> int:
    if value is None or value == "":
        raise Malformed(f"{name} is missing")
    text = str(value).strip()
    digits = text.removeprefix("-")
    if isinstance(value, bool) or not digits.isascii() or not digits.isdecimal():
        raise Malformed(f"{name} {text!r} is not a whole number")
    if not least <= int(text) <= most:
        raise Malformed(f"{name} {text} is not in {least}..{most}")
    return int(text)
