"""What a query's position does to its group: forward always, back only when told to; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from offsetd.client.position import Committed, TopicPartition
from offsetd.pipeline.jobs.position import QueryPosition

_SHOWN_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What to commit, and which partitions of the position are behind what the group has."""

    commit: Mapping[TopicPartition, Committed]
    back: Mapping[TopicPartition, tuple[int, int]]
    """By partition: what is committed, and what the query says."""

    def back_words(self) -> str:
        """Say both values of each partition, of the first few."""
        shown = [f"{at} from {old} to {new}" for at, (old, new) in sorted(self.back.items())[:_SHOWN_MAX]]
        more = len(self.back) - len(shown)
        return ", ".join(shown) + (f" and {more} more partitions" if more else "")


def decide_move(position: QueryPosition, committed: Mapping[TopicPartition, Committed], *, allow_rewind: bool) -> Move:
    """Compare a position with what its group has.

    An offset that is equal is committed again: its metadata names the batch, and the commit keeps it from expiring.
    """
    back = {
        partition: (committed[partition].offset, offset)
        for partition, offset in position.offsets.items()
        if partition in committed and committed[partition].offset > offset
    }
    wanted = [partition for partition in position.offsets if allow_rewind or partition not in back]
    return Move(commit=position.committed(wanted), back=back)
