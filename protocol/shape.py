"""Where the offsets stand in an OffsetCommit request: the holes in bytes that otherwise repeat.

A consumer sends the same group, topics and partitions again and again. Whoever knows the positions of the offsets
can compare all other bytes with those of the last request, and need not decode them again.
"""

from collections.abc import Callable
from struct import Struct
from struct import error as struct_error
from typing import Final

from protocol.api import APIS, OFFSET_COMMIT, decode_header
from protocol.wire import Truncated, UnsupportedApi, read_uvarint, skip_tags

OFFSET_BYTES: Final = 8

_PARTITION_INDEX_BYTES: Final = 4

_unpack_int16 = Struct(">h").unpack_from
_unpack_int32 = Struct(">i").unpack_from

Step = Callable[[bytes, int], int]
Count = Callable[[bytes, int], tuple[int, int]]


def offset_positions(frame: bytes) -> tuple[int, ...]:
    """Return the position of every committed offset, in the order of the request.

    Args:
        frame: an OffsetCommit request without its size, which the decoder has accepted.

    Raises:
        ProtocolError: it is none.
    """
    header, position = decode_header(frame)
    version = header.api_version
    if header.api_key != OFFSET_COMMIT:
        raise UnsupportedApi(api_key=header.api_key, api_version=version)
    flexible = version >= APIS[OFFSET_COMMIT].first_flexible
    skip_string, read_count, skip_tail = _FLEXIBLE if flexible else _PLAIN
    try:
        position = _skip_to_topics(frame, position, version, skip_string)
        return _walk(frame, position, version, skip_string, read_count, skip_tail)
    except (struct_error, IndexError):
        raise Truncated(what="OffsetCommitRequest", size_bytes=len(frame)) from None


def _skip_to_topics(frame: bytes, position: int, version: int, skip_string: Step) -> int:
    position = skip_string(frame, position)
    if version >= 1:
        position = skip_string(frame, position + 4)
    if 2 <= version <= 4:
        position += 8
    if version >= 7:
        position = skip_string(frame, position)
    return position


def _walk(
    frame: bytes, position: int, version: int, skip_string: Step, read_count: Count, skip_tail: Step
) -> tuple[int, ...]:
    # Behind the offset stands a leader epoch from version 6 on, or in version 1 a time.
    before_metadata = _PARTITION_INDEX_BYTES + OFFSET_BYTES + (4 if version >= 6 else 8 if version == 1 else 0)
    found: list[int] = []
    topics, position = read_count(frame, position)
    for _ in range(topics):
        position = skip_string(frame, position)
        partitions, position = read_count(frame, position)
        for _ in range(partitions):
            found.append(position + _PARTITION_INDEX_BYTES)
            position = skip_tail(frame, skip_string(frame, position + before_metadata))
        position = skip_tail(frame, position)
    return tuple(found)


def _skip_plain_string(frame: bytes, position: int) -> int:
    length: int = _unpack_int16(frame, position)[0]
    return position + 2 + max(length, 0)


def _skip_compact_string(frame: bytes, position: int) -> int:
    length, position = read_uvarint(frame, position)
    return position + max(length - 1, 0)


def _read_plain_count(frame: bytes, position: int) -> tuple[int, int]:
    (count,) = _unpack_int32(frame, position)
    return count, position + 4


def _read_compact_count(frame: bytes, position: int) -> tuple[int, int]:
    count, position = read_uvarint(frame, position)
    return count - 1, position


def _skip_nothing(frame: bytes, position: int) -> int:  # noqa: ARG001  (a version without tagged fields)
    return position


_PLAIN: Final[tuple[Step, Count, Step]] = (_skip_plain_string, _read_plain_count, _skip_nothing)
_FLEXIBLE: Final[tuple[Step, Count, Step]] = (_skip_compact_string, _read_compact_count, skip_tags)
