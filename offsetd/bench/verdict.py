"""What a reply means that is not, byte for byte, the one that was wanted."""

from enum import Enum

from offsetd.bench.frames import VERSION, GroupFrames
from protocol.api import OFFSET_COMMIT, OFFSET_FETCH, decode_response
from protocol.offset_commit import OffsetCommitResponse
from protocol.offset_fetch import OffsetFetchResponse
from protocol.wire import ProtocolError


class Verdict(Enum):
    """What is wrong with a reply, or that nothing is."""

    RIGHT = "right"
    ERROR = "errors"
    STALE = "stale"
    MISSING = "missing"
    MALFORMED = "malformed"


#: What a server says that is still loading, or that has just been asked for its first group.
RETRIED_CODES = frozenset({7, 14, 15, 16})


def judge_commit(frame: bytes, correlation: bytes, group: GroupFrames) -> tuple[Verdict, int]:
    """Read a whole reply to a commit; return the verdict and the first error code."""
    try:
        _, reply = decode_response(OFFSET_COMMIT, VERSION, frame[4:])
    except ProtocolError:
        return Verdict.MALFORMED, 0
    assert isinstance(reply, OffsetCommitResponse)
    answered = [(topic.name, row.partition_index) for topic in reply.topics for row in topic.partitions]
    if frame[4:8] != correlation or sorted(answered) != sorted(group.layout.order):
        return Verdict.MALFORMED, 0
    for topic in reply.topics:
        for row in topic.partitions:
            if row.error_code:
                return Verdict.ERROR, row.error_code
    return Verdict.RIGHT, 0


def judge_fetch(frame: bytes, correlation: bytes, group: GroupFrames, value: int) -> tuple[Verdict, int]:
    """Read a whole reply to a fetch of a group whose last commit began at ``value``."""
    try:
        _, reply = decode_response(OFFSET_FETCH, VERSION, frame[4:])
    except ProtocolError:
        return Verdict.MALFORMED, 0
    assert isinstance(reply, OffsetFetchResponse)
    if frame[4:8] != correlation or [shown.group_id.encode() for shown in reply.groups] != [group.name]:
        return Verdict.MALFORMED, 0
    shown = reply.groups[0]
    rows = [(topic.name, row) for topic in shown.topics for row in topic.partitions]
    code = next((row.error_code for _, row in rows if row.error_code), shown.error_code)
    if code:
        return Verdict.ERROR, code
    offsets = {(name, row.partition_index): row.committed_offset for name, row in rows}
    if len(rows) != len(offsets) or set(offsets) != set(group.layout.order):
        return Verdict.MALFORMED, 0
    if any(offset < 0 for offset in offsets.values()):
        return Verdict.MISSING, 0
    wanted = {place: value + step for step, place in enumerate(group.layout.order)}
    return (Verdict.RIGHT if offsets == wanted else Verdict.STALE), 0
