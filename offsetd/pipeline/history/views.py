"""Tables made of the history: each view takes a DataFrame of records and returns another. Nothing here reads a file.

A record has the columns of sealed history: `slot`, `sequence`, `type` (1 commit, 0 tombstone), `group`, `topic`,
`partition`, `offset`, `commit_time`, `client_id`, `host`, `member`. A tombstone without a topic takes its whole group.
Records of one group stand in one slot, so `sequence` is their order, whatever clocks and clients say of the time.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

KEY: Final = ("group", "topic", "partition")
COMMIT: Final = 1


def as_of(records: "DataFrame", moment: datetime) -> "DataFrame":
    """Return the offsets as they stood at a moment, that moment included: what was removed by then is not shown."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    before = records.where(f.col("commit_time") <= f.lit(moment))
    whole = (
        before.where((f.col("type") != COMMIT) & f.col("topic").isNull())
        .groupBy("group")
        .agg(f.max("sequence").alias("removed"))
    )
    fields = ("type", "offset", "commit_time", "client_id", "host", "member")
    newest = (
        before.where(f.col("topic").isNotNull())
        .groupBy(*KEY)
        .agg(f.max("sequence").alias("sequence"), f.max_by(f.struct(*fields), "sequence").alias("row"))
    )
    live = newest.join(whole, "group", "left").where(
        (f.col("row.type") == COMMIT) & (f.col("removed").isNull() | (f.col("removed") < f.col("sequence")))
    )
    shown = live.select(*KEY, *(f.col(f"row.{name}").alias(name) for name in fields[1:]))
    return _described(
        shown.orderBy(*KEY),
        offset="where the group stood",
        commit_time="when that was committed",
        client_id="who committed it",
    )


def commit_rate(records: "DataFrame", width: timedelta) -> "DataFrame":
    """Return how many offsets each group committed in each window of time; windows without any are not shown."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    span = f.window("commit_time", f"{_microseconds(width)} microseconds")
    counted = (
        _commits(records)
        .groupBy("group", span.alias("span"))
        .agg(f.count("*").alias("commits"))
        .select(
            f.col("span.start").alias("from"),
            f.col("span.end").alias("to"),
            "group",
            "commits",
            (f.col("commits") / width.total_seconds()).alias("per_second"),
        )
    )
    return _described(
        counted.orderBy("from", "group"),
        commits="offsets committed, each partition of a request counted",
        per_second="commits by the window's length",
    )


def moves(records: "DataFrame", *, jump_min: int) -> "DataFrame":
    """Return the rewinds, and the jumps ahead by at least so many records: who, from where, to where, and when.

    A partition that was removed and committed anew has not moved.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    step = f.col("offset") - f.col("from_offset")
    found = (
        _with_previous(records, {"offset": "from_offset"})
        .where((step < 0) | (step >= jump_min))
        .select(
            f.col("commit_time").alias("time"),
            *KEY,
            f.when(step < 0, "rewind").otherwise("jump").alias("kind"),
            "from_offset",
            f.col("offset").alias("to_offset"),
            f.abs(step).alias("records"),
            "client_id",
            "host",
            "member",
            "sequence",
        )
    )
    ordered = found.orderBy("time", *KEY, "sequence").drop("sequence")
    return _described(ordered, kind="rewind or jump", records="how far", client_id="who moved it")


def gaps(records: "DataFrame", longer_than: timedelta, *, until: datetime | None = None) -> "DataFrame":
    """Return the times in which a group committed nothing for longer than this, the longest first.

    Args:
        until: also count the time from a group's last commit to this moment, as a gap that has no end yet.
    """
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    times = _commits(records).select("group", "commit_time").distinct()
    following = f.lead("commit_time").over(Window.partitionBy("group").orderBy("commit_time"))
    found = times.select("group", f.col("commit_time").alias("from"), following.alias("to"))
    end = f.coalesce(f.col("to"), f.lit(until).cast("timestamp"))
    length = (f.unix_micros(end) - f.unix_micros("from")) / 1_000_000
    long = found.withColumn("seconds", length).where(f.col("seconds") > longer_than.total_seconds())
    return _described(
        long.orderBy(f.desc("seconds"), "group", "from"),
        **{"from": "the last commit before it", "to": "the next commit; none if there was none yet"},
    )


def expiring(records: "DataFrame", now: datetime, *, retention: timedelta, within: timedelta) -> "DataFrame":
    """Return the groups whose newest commit grows too old within a span of time, the most urgent first.

    It goes by commits alone: a group that still has members does not expire, which the history does not tell.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    limit = f.expr(f"make_dt_interval(0, 0, 0, {retention.total_seconds():.6f})")
    newest = as_of(records, now).groupBy("group").agg(
        f.max("commit_time").alias("newest_commit"), f.count("*").alias("partitions")
    )  # fmt: skip
    due = newest.withColumn("expires", f.col("newest_commit") + limit).where(f.col("expires") <= f.lit(now + within))
    return _described(
        due.orderBy("expires", "group"),
        partitions="offsets that would be lost",
        expires="newest commit and the retention",
    )


def owners(records: "DataFrame") -> "DataFrame":
    """Return each time that a partition was committed by another member, client or host than before."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    names = ("member", "client_id", "host")
    followed = _with_previous(records, {name: f"from_{name}" for name in names} | {"offset": "from_offset"})
    changed = [~f.col(name).eqNullSafe(f.col(f"from_{name}")) for name in names]
    found = followed.where(f.col("from_offset").isNotNull() & reduce(lambda a, b: a | b, changed))
    columns = [f.col("commit_time").alias("time"), *KEY, "offset"]
    shown = found.select(*columns, *(each for name in names for each in (f"from_{name}", name)), "sequence")
    ordered = shown.orderBy("time", *KEY, "sequence").drop("sequence")
    return _described(ordered, offset="where it was taken over", from_member="who had committed before")


def lag(records: "DataFrame", samples: "DataFrame") -> "DataFrame":
    """Return how far each group was behind whenever a partition's log end was sampled.

    Args:
        samples: `time`, `topic`, `partition` and `log_end`. A sample before a group's first commit tells nothing of it.
    """
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    taken = samples.select(f.col("time").alias("sampled"), "topic", "partition", "log_end").distinct()
    keys = _marks(records).where(f.col("topic").isNotNull()).select(*KEY).distinct()
    asked = keys.join(taken, ["topic", "partition"]).select(
        *KEY, f.col("sampled").alias("at"), f.lit(2**63 - 1).alias("order"), f.lit(None).cast("long").alias("offset"),
        f.lit(None).cast("boolean").alias("live"), "log_end",
    )  # fmt: skip
    marks = _marks(records).select(
        *KEY, f.col("commit_time").alias("at"), f.col("sequence").alias("order"), "offset",
        (f.col("type") == COMMIT).alias("live"), f.lit(None).cast("long").alias("log_end"),
    )  # fmt: skip
    # Commits and samples in one line of time: each sample takes what was committed last before it.
    line = Window.partitionBy(*KEY).orderBy("at", "order").rowsBetween(Window.unboundedPreceding, 0)
    held = f.last(f.when(f.col("live").isNotNull(), f.struct("live", "offset")), ignorenulls=True).over(line)
    found = (
        marks.unionByName(asked)
        .withColumn("held", held)
        .where(f.col("log_end").isNotNull() & f.col("held.live"))
        .select(
            f.col("at").alias("time"),
            *KEY,
            f.col("held.offset").alias("offset"),
            "log_end",
            f.greatest(f.col("log_end") - f.col("held.offset"), f.lit(0)).alias("lag"),
        )
    )
    return _described(found.orderBy("time", *KEY), lag="records not yet committed; 0 for a group ahead of the sample")


def _commits(records: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f  # noqa: PLC0415

    return records.where(f.col("type") == COMMIT)


def _marks(records: "DataFrame") -> "DataFrame":
    """Return the records with a group's removal told for each partition that it had, so that each line is whole."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    single = records.where(f.col("topic").isNotNull())
    whole = records.where(f.col("topic").isNull() & (f.col("type") != COMMIT)).drop("topic", "partition")
    return single.unionByName(whole.join(single.select(*KEY).distinct(), "group"))


def _with_previous(records: "DataFrame", wanted: dict[str, str]) -> "DataFrame":
    """Return the commits, each with what the record before it of the same partition said; nothing after a removal."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    line: WindowSpec = Window.partitionBy(*KEY).orderBy("sequence")
    live = f.lag("type").over(line) == COMMIT
    before: Sequence[Column] = [f.when(live, f.lag(name).over(line)).alias(new) for name, new in wanted.items()]
    return _commits(_marks(records).select("*", *before))


def _described(frame: "DataFrame", **comments: str) -> "DataFrame":
    for name, comment in comments.items():
        frame = frame.withMetadata(name, {"comment": comment})
    return frame


def _microseconds(width: timedelta) -> int:
    return width // timedelta(microseconds=1)
