"""Which loads a reload replaces, and where it must begin so that nothing is missing and nothing twice. Pure.

Loads are replaced whole, and always up to the newest: from the oldest one that holds a record of the time asked for.
"""

from collections.abc import Mapping, Sequence

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.manifest import Manifest
from offsetd.pipeline.load.plan import Reason, Start
from offsetd.pipeline.load.refusal import BadRequest


def replaced(live: Sequence[Manifest], times: Mapping[TopicPartition, int]) -> tuple[int, ...]:
    """Return the numbers of the loads to replace, oldest first.

    Args:
        live: all loads that count, oldest first.
        times: the first offset of each partition at the time asked for.
    """
    for place, manifest in enumerate(live):
        if any(item.end > times[item.key] for item in manifest.ranges if item.key in times):
            return tuple(later.number for later in live[place:])
    return ()


def begin(live: Sequence[Manifest], numbers: Sequence[int]) -> dict[TopicPartition, Start]:
    """Return where the oldest of the replaced loads began, for each partition that they hold."""
    starts: dict[TopicPartition, Start] = {}
    for manifest in live:
        if manifest.number in numbers:
            for item in manifest.ranges:
                starts.setdefault(item.key, Start(offset=item.start, reason=Reason.SUPERSEDED))
    return starts


def refuse_missing(starts: Mapping[TopicPartition, Start], asked: Mapping[TopicPartition, int]) -> None:
    """Refuse a reload that would take away partitions without bringing them back.

    Raises:
        BadRequest: replaced loads hold partitions that were not asked for.
    """
    missing = sorted(str(key) for key in starts if key not in asked)
    if missing:
        raise BadRequest(
            "the loads to be replaced also hold partitions that this run would not load again, and they would be "
            "lost. Name their topics too.",
            missing,
        )
