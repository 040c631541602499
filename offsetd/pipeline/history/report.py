"""What a report tells of a window of time, found in the history: few rows of each view, and the sums over all of them.

Here Spark is asked; how it looks is `offsetd.pipeline.history.report_page`. Nothing here reads a file.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from offsetd.pipeline.history.lag import lag
from offsetd.pipeline.history.line import until
from offsetd.pipeline.history.state import as_of, expiring
from offsetd.pipeline.history.views import commit_rate, gaps, moves, owners, removals
from offsetd.record import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Curves of a plot, the rest of them together is one more.
CURVES: Final = 7
#: Rows of a table: whoever wants all asks the view.
ROWS_MAX: Final = 200
#: About so many points make a curve.
_POINTS: Final = 120
_WIDTHS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400)

#: Values of one group over time, in the order of time.
Curve: TypeAlias = list[tuple[datetime, float]]
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be told."""

    start: datetime
    end: datetime
    jump_min: int
    silence: timedelta
    retention: timedelta
    ahead: timedelta
    """How far to look ahead for what expires."""

    @property
    def width(self) -> timedelta:
        """How much time is a point of a curve."""
        wanted = (self.end - self.start).total_seconds() / _POINTS
        return timedelta(seconds=next((width for width in _WIDTHS if width >= wanted), _WIDTHS[-1]))


@dataclass(frozen=True, slots=True)
class Rows:
    """The first rows of a table, and how many there are."""

    shown: tuple[Row, ...] = ()
    total: int = 0

    @property
    def whole(self) -> bool:
        """Whether these are all."""
        return len(self.shown) == self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found. A row's columns are named where it is made."""

    first: datetime | None
    """The time of the oldest record of all."""
    commits: int
    repeats: int
    groups: int
    """Groups that committed."""
    held_groups: int
    """Groups that had offsets in the end."""
    held_offsets: int
    rate: dict[str, Curve]
    rest: Curve
    """Of the groups that have no curve of their own, together."""
    moves: Rows
    rewinds: int
    jumps: int
    gaps: Rows
    owners: Rows
    takeovers: int
    removals: Rows
    removed: int
    expiring: Rows
    lag: dict[str, Curve] | None
    """None where nothing was sampled."""
    lags: Rows
    samples: int = 0


def find(records: "DataFrame", question: Question, samples: "DataFrame | None" = None) -> Findings:
    """Ask every view.

    Args:
        records: the whole history: what was before the window tells what moved in it.
        samples: log ends.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # not there without the extra

    start, end = f.lit(question.start), f.lit(question.end)
    # Every view reads it, and it may be much: what no view asks for is left out.
    whole = records.drop("slot", "epoch", "generation", "protocol_type", "protocol", "leader", "release").cache()
    known = until(whole, question.end)
    try:
        then = (f.col("batch_time") >= start) & (f.col("batch_time") < end)
        commits = then & (f.col("type") == int(Kind.COMMIT))
        repeats = then & (f.col("type") == int(Kind.TOUCH))
        (sums,) = known.agg(
            f.min("batch_time"),
            f.count(f.when(commits, 1)),
            f.count(f.when(repeats, 1)),
            f.countDistinct(f.when(commits | repeats, f.col("group"))),
        ).collect()
        first = _aware(sums[0])
        (held,) = as_of(known).agg(f.countDistinct("group"), f.count("*")).collect()
        rate, rest = _rate(known.where(then), question, max(question.start, first or question.start))
        moved, rewinds, jumps = _moves(_within(moves(known, jump_min=question.jump_min), start, end))
        turns, takeovers = _owners(_within(owners(known), start, end))
        gone, removed = _removals(_within(removals(known), start, end))
        behind, lags, sampled = _lag(known, question, samples)
        return Findings(
            first=first,
            commits=sums[1],
            repeats=sums[2],
            groups=sums[3],
            held_groups=held[0],
            held_offsets=held[1],
            rate=rate,
            rest=rest,
            moves=moved,
            rewinds=rewinds,
            jumps=jumps,
            gaps=_gaps(known, question),
            owners=turns,
            takeovers=takeovers,
            removals=gone,
            removed=removed,
            expiring=_rows(
                expiring(known, question.end, retention=question.retention, within=question.ahead).select(
                    "group", "expires", "offsets", "of", "newest_commit", "left"
                )
            ),
            lag=behind,
            lags=lags,
            samples=sampled,
        )
    finally:
        whole.unpersist()


def _within(frame: "DataFrame", start: Any, end: Any) -> "DataFrame":
    from pyspark.sql import functions as f  # noqa: PLC0415

    return frame.where((f.col("time") >= start) & (f.col("time") < end))


def _rate(inside: "DataFrame", question: Question, since: datetime) -> tuple[dict[str, Curve], Curve]:
    from pyspark.sql import functions as f  # noqa: PLC0415

    counted = commit_rate(inside, question.width).cache()
    try:
        groups = counted.groupBy("group").agg(f.sum("commits").alias("n")).orderBy(f.desc("n"), "group")
        names = [row[0] for row in groups.limit(CURVES).collect()]
        named = f.when(f.col("group").isin(names), f.col("group"))
        found = counted.groupBy(named.alias("group"), "from").agg(f.sum("per_second")).collect()
    finally:
        counted.unpersist()
    curves: dict[str | None, dict[datetime, float]] = {name: {} for name in names}
    for group, moment, value in found:
        curves.setdefault(group, {})[_aware(moment)] = value
    moments = _moments(since, question)
    drawn = {name: [(moment, curves[name].get(moment, 0.0)) for moment in moments] for name in names}
    rest = curves.get(None)
    return drawn, [] if rest is None else [(moment, rest.get(moment, 0.0)) for moment in moments]


def _moments(since: datetime, question: Question) -> list[datetime]:
    """Return the beginnings of all windows: who commits nothing in one has a rate of nothing there."""
    width = question.width.total_seconds()
    number = int(since.timestamp() // width)
    moments = []
    while number * width < question.end.timestamp():
        moments.append(datetime.fromtimestamp(number * width, UTC))
        number += 1
    return moments


def _moves(found: "DataFrame") -> tuple[Rows, int, int]:
    """Return time, group, kind, partitions, records, farthest, who, host, metadata of each request.

    The farthest is topic, partition, from and to of the partition that moved most: sums of offsets mean nothing.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    requests = found.groupBy("time", "group", "kind", "client_id", "host", "member").agg(
        f.count("*").alias("partitions"),
        f.sum(f.col("records").cast("decimal(38,0)")).cast("double").alias("records"),
        f.max_by(f.struct("topic", "partition", "from_offset", "to_offset"), "records").alias("farthest"),
        f.max("metadata").alias("metadata"),
    )
    columns = ("time", "group", "kind", "partitions", "records", "farthest", "client_id", "host", "metadata")
    # If not all can be told, then those that reprocess or skip most.
    rows = _rows(requests.orderBy(f.desc("records"), "time", "group").select(*columns))
    shown = [(*row[:4], int(row[4]), tuple(row[5]), *row[6:]) for row in rows.shown]
    shown.sort(key=lambda row: row[:2])
    rewinds = sum(row[2] == "rewind" for row in shown)
    if not rows.whole:
        rewinds = requests.where(f.col("kind") == "rewind").count()
    return Rows(tuple(shown), rows.total), rewinds, rows.total - rewinds


def _gaps(known: "DataFrame", question: Question) -> Rows:
    """Return group, from, to, seconds, ended of each gap that reaches into the window, the longest first."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    found = gaps(known, question.silence, until=question.end)
    return _rows(found.where(f.col("to").isNull() | (f.col("to") > f.lit(question.start))))


def _owners(found: "DataFrame") -> tuple[Rows, int]:
    """Return group, topic, partitions, takeovers, returns, owners, last of each topic of a group.

    A return is a takeover by somebody who had had the partition before: owners that take turns have many.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    who = f.concat_ws(" ", "client_id", "host", "member")
    before = f.concat_ws(" ", "from_client_id", "from_host", "from_member")
    partitions = (
        found.withColumns({"who": who, "before": before})
        .groupBy("group", "topic", "partition")
        .agg(
            f.count("*").alias("takeovers"),
            f.array_distinct(f.concat(f.collect_set("who"), f.collect_set("before"))).alias("owners"),
            f.max("time").alias("last"),
        )
        .withColumn("returns", f.col("takeovers") - f.size("owners") + 1)
    )
    topics = partitions.groupBy("group", "topic").agg(
        f.count("*").alias("partitions"),
        f.sum("takeovers").alias("takeovers"),
        f.sum("returns").alias("returns"),
        f.size(f.array_distinct(f.flatten(f.collect_list("owners")))).alias("owners"),
        f.max("last").alias("last"),
    )
    rows = _rows(topics.orderBy(f.desc("returns"), f.desc("takeovers"), "group", "topic"))
    return rows, sum(row[3] for row in rows.shown) if rows.whole else found.count()


def _removals(found: "DataFrame") -> tuple[Rows, int]:
    """Return time, group, topics, offsets, why, whole, who, host of each removal."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    requests = found.groupBy("time", "group", "reason", "whole", "client_id", "host").agg(
        f.array_join(f.sort_array(f.collect_set("topic")), ", ").alias("topics"), f.count("*").alias("offsets")
    )
    columns = ("time", "group", "topics", "offsets", "reason", "whole", "client_id", "host")
    rows = _rows(requests.orderBy(f.desc("time"), "group").select(*columns))
    return rows, sum(row[3] for row in rows.shown) if rows.whole else found.count()


def _lag(
    known: "DataFrame", question: Question, samples: "DataFrame | None"
) -> tuple[dict[str, Curve] | None, Rows, int]:
    """Return the curves of the groups that were farthest behind, and how many samples there were.

    The rows are group, lag at first, at most, in the end, and lost records.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    if samples is None:
        return None, Rows(), 0
    taken = _within(samples, f.lit(question.start), f.lit(question.end)).cache()
    behind = (
        lag(known, taken)
        .groupBy("time", "group")
        .agg(
            f.sum(f.col("lag").cast("decimal(38,0)")).cast("double").alias("lag"),
            f.sum(f.col("lost").cast("decimal(38,0)")).cast("double").alias("lost"),
        )
        .cache()
    )
    try:
        groups = behind.groupBy("group").agg(
            f.min_by("lag", "time").alias("first"),
            f.max("lag").alias("most"),
            f.max_by("lag", "time").alias("last"),
            f.max("lost").alias("lost"),
        )
        rows = _rows(groups.orderBy(f.desc("most"), "group"))
        whole = tuple((row[0], *(int(value) for value in row[1:])) for row in rows.shown)
        names = [row[0] for row in whole[:CURVES]]
        # The most of each window: a peak between two points would be lost otherwise.
        span = f.window("time", f"{int(question.width.total_seconds())} seconds")
        points = (
            behind.where(f.col("group").isin(names))
            .groupBy("group", span.alias("span"))
            .agg(f.max("lag").alias("lag"), f.max_by("time", "lag").alias("time"))
            .orderBy("time")
            .select("group", "time", "lag")
        )
        curves: dict[str, Curve] = {name: [] for name in names}
        for group, moment, value in _collected(points):
            curves[group].append((moment, value))
        return curves, Rows(whole, rows.total), taken.select("time").distinct().count()
    finally:
        behind.unpersist()
        taken.unpersist()


def _rows(frame: "DataFrame") -> Rows:
    found = _collected(frame.limit(ROWS_MAX + 1))
    # Most have few, and need not be asked twice.
    return Rows(tuple(found[:ROWS_MAX]), len(found) if len(found) <= ROWS_MAX else frame.count())


def _collected(frame: "DataFrame") -> list[Row]:
    return [tuple(_aware(value) for value in row) for row in frame.collect()]


def _aware(value: Any) -> Any:
    # Spark gives times of this machine's zone, without saying so.
    return value.astimezone(UTC) if isinstance(value, datetime) else value
