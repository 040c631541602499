"""Where groups stood at a moment, and what of that will soon be too old to be kept. Nothing here reads a file.

What was committed before the history begins, and never since, is not known here.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from offsetd.pipeline.history.line import BEATS, DECISIVE, KEY, WHO, described, until
from offsetd.record import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GROUPS: Final = (int(Kind.GROUP), int(Kind.GROUP_TOMBSTONE))


def as_of(records: "DataFrame", moment: datetime | None = None) -> "DataFrame":
    """Return the offsets as they stood at a moment, that moment included; as they stand at the end for no moment.

    It is what a fetch would have been told: a removed offset is not shown, and one that was committed again unchanged
    has the time of that.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # not there without the extra

    fields = ("offset", "leader_epoch", "metadata", "commit_time", "expiry_time", *WHO)
    before = until(records, moment)
    whole = (
        before.where(f.col("type") == int(Kind.GROUP_TOMBSTONE))
        .groupBy("group")
        .agg(f.max("sequence").alias("removed"))
    )
    # Structs are compared by their first field, and no two records of a group have the same sequence.
    newest = (
        before.where(f.col("topic").isNotNull())
        .groupBy(*KEY)
        .agg(
            f.max(f.when(f.col("type").isin(*DECISIVE), f.struct("sequence", "type", "batch_time", *fields))).alias(
                "row"
            ),
            f.max(f.when(f.col("type").isin(*BEATS), f.struct("sequence", "commit_time"))).alias("beat"),
        )
    )
    live = newest.join(whole, "group", "left").where(
        (f.col("row.type") == int(Kind.COMMIT))
        & (f.col("removed").isNull() | (f.col("removed") < f.col("row.sequence")))
    )
    shown = live.select(
        *KEY,
        *(f.col(f"{'beat' if name == 'commit_time' else 'row'}.{name}").alias(name) for name in fields),
        f.col("row.batch_time").alias("since"),
    )
    return described(
        shown.orderBy(*KEY),
        offset="where the group stood",
        commit_time="when that was committed or repeated, by the client's clock if it gave a time of its own",
        expiry_time="when it expires, where its commit said so",
        client_id="who put it there",
        since="when it was put there, by the broker's clock",
    )


def expiring(records: "DataFrame", now: datetime, *, retention: timedelta | None, within: timedelta) -> "DataFrame":
    """Return the groups that lose offsets within a span of time, the most urgent first.

    The broker's own rules: an offset expires at the time that its commit named, else when its commit is older than the
    retention, else, in a group whose members have all left, that long after the last one left. In a group with members
    nothing grows old (but for topics that they no longer read, which is not told here).

    Args:
        retention: None if offsets are kept for ever.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    generation = f.struct("sequence", "type", "commit_time", f.size("members").alias("members"))
    groups = (
        until(records, now)
        .where(f.col("type").isin(*_GROUPS))
        .groupBy("group")
        .agg(f.max(generation).alias("last"))
        .where(f.col("last.type") == int(Kind.GROUP))
        .select("group", f.col("last.members").alias("members"), f.col("last.commit_time").alias("left"))
    )
    old = f.lit(None).cast("timestamp")
    if retention is not None:
        limit = f.expr(f"make_dt_interval(0, 0, 0, {retention.total_seconds():.6f})")
        old = f.coalesce("left", "commit_time") + limit
    ageing = (
        as_of(records, now)
        .join(groups, "group", "left")
        .where(f.col("members").isNull() | (f.col("members") == 0))
        .withColumn("expires", f.coalesce(f.col("expiry_time"), old))
    )
    due = f.col("expires") <= f.lit(now + within)
    found = (
        ageing.groupBy("group")
        .agg(
            f.min(f.when(due, f.col("expires"))).alias("expires"),
            f.count(f.when(due, 1)).alias("offsets"),
            f.count("*").alias("of"),
            f.max("commit_time").alias("newest_commit"),
            f.max("left").alias("left"),
        )
        .where(f.col("offsets") > 0)
    )
    return described(
        found.orderBy("expires", "group"),
        expires="when the first of them does; the broker looks every few minutes",
        offsets="how many will be lost in the span",
        of="how many the group has",
        left="when its last member left; none if it had no members",
    )
