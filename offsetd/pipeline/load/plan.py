"""The plan of a load: which offsets of which partitions, and why it starts there. Pure: nothing is read or asked here.

A position is the offset of the first record that the table does not hold. It comes from the newest load if that names
the partition, else from the group's committed offset, else from a time that was asked for, else from the log's start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.refusal import RecordsGone
from offsetd.pipeline.load.share import share


class Reason(Enum):
    """Why a range starts where it does; the value is what people read."""

    MANIFEST = "the newest load ended here"
    COMMITTED = "the group's committed offset"
    EARLIEST = "the log's start, nothing was known"
    TIME = "the first record at the time asked for"
    ACCEPTED = "the group was moved here, and that was accepted"
    SUPERSEDED = "the oldest replaced load began here"


class Check(Enum):
    """How closely a topic's rows can be held against the plan; the value is what manifests say."""

    EXACT = "exact"
    """Every offset of the range is a row."""
    BOUNDS = "bounds"
    """Offsets may be empty (compaction, transactions): no row outside the range, none twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Offsets of a partition from `start` up to, and not with, `end`."""

    topic: str
    partition: int
    start: int
    end: int
    reason: Reason

    @property
    def records(self) -> int:
        """How many offsets it has; no more records than that, fewer where offsets are empty."""
        return self.end - self.start

    @property
    def key(self) -> TopicPartition:
        """Its partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one load does. Decided once; nothing that is written to the logs afterwards changes it."""

    group: str | None
    """None: a table that belongs to no group, and tells offsetd nothing."""
    out: str
    number: int
    ranges: tuple[Range, ...]
    """What to load, none of them empty."""
    idle: tuple[Range, ...]
    """Partitions without news, each an empty range."""
    positions: Mapping[TopicPartition, int]
    """Where each partition that the table knows stands after this load, also those that were not asked for."""
    checks: Mapping[str, Check]
    """By topic, what can be checked."""
    skipped: tuple[Range, ...] = ()
    """Offsets that are left out because somebody moved the group over them and that was accepted."""
    supersedes: tuple[int, ...] = ()
    """Loads that this one replaces."""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the asked-for logs ended when the plan was made."""

    @property
    def records(self) -> int:
        """How many offsets all ranges have."""
        return sum(wanted.records for wanted in self.ranges)

    @property
    def tasks(self) -> int:
        """How many Spark tasks read it, unless big partitions are split."""
        return len(self.ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """What the data cluster said about the partitions that were asked for."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    """Last stable offsets: behind them is nothing that a reader of committed records may see."""
    highs: Mapping[TopicPartition, int]
    """High watermarks, which open transactions do not hold back."""
    times: Mapping[TopicPartition, int] = field(default_factory=dict)
    """First offsets at the time asked for; the log's end where no record is as young."""
    compacted: frozenset[str] = frozenset()
    """Topics that compaction takes records out of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to begin, and why."""

    offset: int
    reason: Reason


def choose_starts(
    logs: Logs,
    *,
    positions: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    accepted: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, Start]:
    """Return where each partition begins.

    Args:
        positions: of the newest load.
        committed: of the group.
        accepted: positions that somebody else gave the group and that are to count.
    """
    sources = (
        (accepted or {}, Reason.ACCEPTED),
        (positions, Reason.MANIFEST),
        (committed, Reason.COMMITTED),
        (logs.times, Reason.TIME),
        (logs.starts, Reason.EARLIEST),
    )
    return {
        key: next(Start(offset=found[key], reason=reason) for found, reason in sources if key in found)
        for key in logs.ends
    }


def make_plan(
    *,
    group: str | None,
    out: str,
    number: int,
    logs: Logs,
    starts: Mapping[TopicPartition, Start],
    positions: Mapping[TopicPartition, int],
    records_max: int | None = None,
    supersedes: tuple[int, ...] = (),
) -> Plan:
    """Return the plan.

    Args:
        starts: where each partition of `logs` begins.
        positions: of the newest load, all that it knows.
        records_max: the most offsets to load, shared fairly by all partitions.

    Raises:
        RecordsGone: a log no longer holds what should come next; nothing is ever skipped without a word.
    """
    refuse_gone(starts, logs)
    news = {key: max(logs.ends[key] - start.offset, 0) for key, start in starts.items()}
    taken = news if records_max is None else share(news, records_max)
    ranges: list[Range] = []
    idle: list[Range] = []
    for key, start in sorted(starts.items()):
        end = start.offset + taken[key]
        wanted = Range(topic=key.topic, partition=key.partition, start=start.offset, end=end, reason=start.reason)
        (ranges if wanted.records else idle).append(wanted)
    return Plan(
        group=group,
        out=out,
        number=number,
        ranges=tuple(ranges),
        idle=tuple(idle),
        positions={**positions, **{wanted.key: wanted.end for wanted in (*ranges, *idle)}},
        checks={key.topic: Check.BOUNDS if key.topic in logs.compacted else Check.EXACT for key in sorted(logs.ends)},
        skipped=_skipped(starts, positions),
        supersedes=supersedes,
        ends=dict(logs.ends),
    )


def refuse_gone(starts: Mapping[TopicPartition, Start], logs: Logs) -> None:
    """Refuse a plan that could not load every record from its start.

    Raises:
        RecordsGone: retention has taken records, or a log ends before the position.
    """
    gone = [
        (key, start.offset, logs.starts[key])
        for key, start in sorted(starts.items())
        if start.offset < logs.starts[key]
    ]
    if gone:
        total = sum(first - position for _, position, first in gone)
        raise RecordsGone(
            f"{total} offsets in {partitions(len(gone))} are gone from the log before they were loaded. Nothing was "
            "loaded. To go on without them, set the group to the log's start and run again with --accept: the gap is "
            "written down in the manifest.",
            [
                f"{key}: {first - position} gone, the load would start at {position} and the log begins at {first}"
                for key, position, first in gone
            ],
        )
    short = [(key, start.offset) for key, start in sorted(starts.items()) if start.offset > logs.highs[key]]
    if short:
        raise RecordsGone(
            f"{partitions(len(short))} would start behind the end of the log: the topic was made anew, or its "
            "cluster lost records. Nothing was loaded. Load such a topic into a new table, with a new group.",
            [f"{key}: the load would start at {offset}, the log ends at {logs.highs[key]}" for key, offset in short],
        )


def _skipped(starts: Mapping[TopicPartition, Start], positions: Mapping[TopicPartition, int]) -> tuple[Range, ...]:
    return tuple(
        Range(topic=key.topic, partition=key.partition, start=positions[key], end=start.offset, reason=start.reason)
        for key, start in sorted(starts.items())
        if start.reason is Reason.ACCEPTED and positions.get(key, start.offset) < start.offset
    )


def partitions(count: int) -> str:
    """Return a number of partitions in words."""
    return f"{count} partition{'' if count == 1 else 's'}"


def by_topic(ranges: Iterable[Range]) -> dict[str, list[Range]]:
    """Return ranges by topic, each topic's by partition."""
    found: dict[str, list[Range]] = {}
    for wanted in sorted(ranges, key=lambda item: item.key):
        found.setdefault(wanted.topic, []).append(wanted)
    return found
