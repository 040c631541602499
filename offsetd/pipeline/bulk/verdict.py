"""Two offsets of the same partition side by side: who is ahead; pure."""

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What a comparison of one partition of a group comes to."""

    EQUAL = "equal"
    ONLY_LEFT = "only left"
    ONLY_RIGHT = "only right"
    LEFT_AHEAD = "left ahead"
    RIGHT_AHEAD = "right ahead"
    METADATA_DIFFERS = "metadata differs"


class Side(NamedTuple):
    """What one dump says. No offset: it does not have the partition. No metadata: it does not say any."""

    offset: int | None
    metadata: str | None = None


def judge(left: Side, right: Side) -> tuple[Verdict, int | None]:
    """Return the verdict, and by how much one side is ahead where both have an offset."""
    if right.offset is None:
        assert left.offset is not None, "a row that neither side has"
        return Verdict.ONLY_LEFT, None
    if left.offset is None:
        return Verdict.ONLY_RIGHT, None
    if left.offset != right.offset:
        ahead = Verdict.LEFT_AHEAD if left.offset > right.offset else Verdict.RIGHT_AHEAD
        return ahead, abs(left.offset - right.offset)
    if left.metadata is not None and right.metadata is not None and left.metadata != right.metadata:
        return Verdict.METADATA_DIFFERS, 0
    return Verdict.EQUAL, 0
