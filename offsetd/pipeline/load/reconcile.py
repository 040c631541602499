"""The table and the group, held against each other before a load: our own unfinished commit, or somebody's hand? Pure.

The table is the truth. The group follows it, unless somebody says otherwise in so many words.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from offsetd.client.position import Committed, TopicPartition
from offsetd.pipeline.load.manifest import Manifest
from offsetd.pipeline.load.plan import Reason
from offsetd.pipeline.load.refusal import GroupMoved

#: How the metadata of our own commits begins; the load's number follows.
MARK: Final = "load:"


class Choice(Enum):
    """What to do with a group that somebody moved."""

    STOP = "stop"
    ACCEPT = "accept"
    """Begin where the group is."""
    REPAIR = "repair"
    """Put the group back to where the table ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What follows from both."""

    owed: Mapping[TopicPartition, int]
    """To commit before anything else."""
    accepted: Mapping[TopicPartition, int]
    """To begin at, instead of where the table ends."""


def reconcile(
    newest: Manifest | None,
    committed: Mapping[TopicPartition, Committed],
    *,
    asked: Collection[TopicPartition],
    choice: Choice = Choice.STOP,
) -> Reconciled:
    """Return what is to be put right, and where to begin.

    Args:
        newest: of the loads; None before the first, when the group's offsets simply count.
        asked: partitions of this run; others that somebody moved are left for the run that loads them.

    Raises:
        GroupMoved: somebody moved the group and nobody chose, or the choice would load records twice.
    """
    if newest is None:
        return Reconciled(owed={}, accepted={})
    owed: dict[TopicPartition, int] = {}
    moved: dict[TopicPartition, int] = {}
    for key, position in newest.positions.items():
        found = committed.get(key)
        if found is not None and found.offset == position:
            continue
        if found is None or _is_ours(found, key, newest):
            owed[key] = position
        elif key in asked:
            moved[key] = found.offset
    if moved and choice is Choice.STOP:
        raise _moved(newest, moved, committed)
    if choice is Choice.REPAIR:
        return Reconciled(owed={**owed, **{key: newest.positions[key] for key in moved}}, accepted={})
    back = {key: offset for key, offset in moved.items() if offset < newest.positions[key]}
    if back:
        raise _moved_back(newest, back)
    return Reconciled(owed=owed, accepted=moved)


def _is_ours(found: Committed, key: TopicPartition, newest: Manifest) -> bool:
    """Return whether a run of ours ended before it had told the broker, and nobody has touched the offset since."""
    if found.offset < newest.positions[key] and found.metadata.startswith(MARK):
        return True
    # The first load of a group begins at what others committed, with metadata of theirs.
    return any(
        item.key == key and item.start == found.offset and item.reason in (Reason.COMMITTED, Reason.ACCEPTED)
        for item in newest.ranges
    )


def _moved(
    newest: Manifest, moved: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, Committed]
) -> GroupMoved:
    return GroupMoved(
        f"somebody moved group {newest.group!r} since load {newest.number}. Nothing was loaded. --accept begins where "
        "the group is (and writes down what is skipped), --repair puts the group back to where the table ends.",
        [
            f"{key}: the table ends at {newest.positions[key]}, the group is at {offset}"
            + (f" ({committed[key].metadata!r})" if committed[key].metadata else "")
            for key, offset in sorted(moved.items())
        ],
    )


def _moved_back(newest: Manifest, back: Mapping[TopicPartition, int]) -> GroupMoved:
    return GroupMoved(
        f"group {newest.group!r} was moved back over records that the table holds, so --accept would load them a "
        "second time. Nothing was loaded. --repair puts the group back to where the table ends; to load them anew, "
        "use --from-time with --supersede, or with --into for a table of its own.",
        [
            f"{key}: the table ends at {newest.positions[key]}, the group is at {offset}, "
            f"{newest.positions[key] - offset} offsets before"
            for key, offset in sorted(back.items())
        ],
    )
