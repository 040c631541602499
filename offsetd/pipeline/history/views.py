"""What groups did, as tables made of the history: each view takes a DataFrame of records and returns another.

A record has the columns of `offsetd.history.columns.schema()`. Times are the broker's (`batch_time`). Where a group
stood is told in `offsetd.pipeline.history.state`, how far behind it was in `offsetd.pipeline.history.lag`. Nothing here
reads a file.
"""

from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from offsetd.pipeline.history.line import BEATS, KEY, WHO, described, difference, lines
from offsetd.record import Kind, Reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def commit_rate(records: "DataFrame", width: timedelta) -> "DataFrame":
    """Return how many offsets each group committed in each window of time; windows without any are not shown.

    Who commits the same offset again and again is written down once a minute at most, as a repeat.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # not there without the extra

    span = f.window("batch_time", f"{width // timedelta(microseconds=1)} microseconds")
    counted = (
        records.where(f.col("type").isin(*BEATS))
        .groupBy("group", span.alias("span"))
        .agg(
            f.count(f.when(f.col("type") == int(Kind.COMMIT), 1)).alias("commits"),
            f.count(f.when(f.col("type") == int(Kind.TOUCH), 1)).alias("repeats"),
        )
        .select(
            f.col("span.start").alias("from"),
            f.col("span.end").alias("to"),
            "group",
            "commits",
            "repeats",
            (f.col("commits") / width.total_seconds()).alias("per_second"),
        )
    )
    return described(
        counted.orderBy("from", "group"),
        commits="offsets committed, each partition of a request counted",
        repeats="offsets committed again unchanged, as far as that is written down",
        per_second="commits by the window's length",
    )


def moves(records: "DataFrame", *, jump_min: int) -> "DataFrame":
    """Return the rewinds, and the jumps ahead by at least so many records: who, from where, to where, and when.

    A partition that was removed and committed anew has not moved.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    step = difference(f.col("offset"), f.col("from_offset"))
    found = (
        lines(records)
        .where((f.col("type") == int(Kind.COMMIT)) & f.col("from_offset").isNotNull())
        .where((step < 0) | (step >= jump_min))
        .select(
            f.col("batch_time").alias("time"),
            *KEY,
            f.when(step < 0, "rewind").otherwise("jump").alias("kind"),
            "from_offset",
            f.col("offset").alias("to_offset"),
            f.abs(step).alias("records"),
            *WHO,
            "from_client_id",
            "metadata",
            "sequence",
        )
    )
    ordered = found.orderBy("time", *KEY, "sequence").drop("sequence")
    return described(
        ordered,
        kind="rewind or jump",
        records="how far",
        client_id="who moved it",
        from_client_id="who had committed before",
        metadata="what the commit said of itself",
    )


def owners(records: "DataFrame") -> "DataFrame":
    """Return each time that a partition was committed by another member, client or host than before."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    changed = reduce(lambda a, b: a | b, (~f.col(name).eqNullSafe(f.col(f"from_{name}")) for name in WHO))
    found = (
        lines(records)
        .where(f.col("type").isin(*BEATS) & f.col("from_offset").isNotNull() & changed)
        .select(
            f.col("batch_time").alias("time"),
            *KEY,
            # A touch stands where the commit before it did.
            f.coalesce("offset", "from_offset").alias("offset"),
            *(each for name in WHO for each in (f"from_{name}", name)),
            "sequence",
        )
    )
    ordered = found.orderBy("time", *KEY, "sequence").drop("sequence")
    return described(ordered, offset="where it was taken over", from_member="who had committed before")


def removals(records: "DataFrame") -> "DataFrame":
    """Return each offset that was removed: where it stood, why it went, and who removed it."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    reason = f.when(f.col("reason") == int(Reason.EXPIRED), "expired").when(
        f.col("reason") == int(Reason.DELETED), "deleted"
    )
    found = (
        lines(records)
        .where(f.col("type").isin(int(Kind.TOMBSTONE), int(Kind.GROUP_TOMBSTONE)) & f.col("from_offset").isNotNull())
        .select(
            f.col("batch_time").alias("time"),
            *KEY,
            f.col("from_offset").alias("offset"),
            reason.alias("reason"),
            (f.col("type") == int(Kind.GROUP_TOMBSTONE)).alias("whole"),
            *WHO,
            "sequence",
        )
    )
    ordered = found.orderBy("time", *KEY, "sequence").drop("sequence")
    return described(
        ordered,
        offset="where the group had stood",
        reason="expired or deleted",
        whole="whether its whole group was removed with it",
        client_id="who removed it; offsetd itself where it expired",
    )


def gaps(records: "DataFrame", longer_than: timedelta, *, until: datetime | None = None) -> "DataFrame":
    """Return the times in which a group that had offsets committed nothing for longer than this, the longest first.

    A gap ends with the next commit, or when the last offset of the group is removed. A commit that changes nothing is
    written down once a minute at most, so that gaps of up to that length are seen where there were none.

    Args:
        until: also count the time from a group's last commit to this moment, as a gap that has no end yet.
    """
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    line = lines(records)
    come = f.when((f.col("type") == int(Kind.COMMIT)) & f.col("from_offset").isNull(), 1)
    gone = f.when(~f.col("type").isin(*BEATS) & f.col("from_offset").isNotNull(), -1)
    # How many offsets a group has changes seldom, so that this line is short.
    count = f.sum("change").over(Window.partitionBy("group").orderBy("sequence"))
    emptied = (
        line.withColumn("change", f.coalesce(come, gone))
        .where(f.col("change").isNotNull())
        .withColumn("left", count)
        .where(f.col("left") == 0)
        .select("group", "sequence", f.col("batch_time").alias("at"), f.lit("removal").alias("event"))
        .distinct()
    )
    beats = (
        line.where(f.col("type").isin(*BEATS))
        .groupBy("group", f.col("batch_time").alias("at"))
        .agg(f.max("sequence").alias("sequence"))
        .select("group", "sequence", "at", f.lit("commit").alias("event"))
    )
    order = Window.partitionBy("group").orderBy("sequence")
    found = (
        beats.unionByName(emptied)
        .select(
            "group",
            "event",
            f.col("at").alias("from"),
            f.lead("at").over(order).alias("to"),
            f.lead("event").over(order).alias("ended"),
        )
        .where(f.col("event") == "commit")
    )
    end = f.coalesce(f.col("to"), f.lit(until).cast("timestamp"))
    length = (f.unix_micros(end) - f.unix_micros("from")) / 1_000_000
    long = (
        found.select("group", "from", "to", length.alias("seconds"), "ended")
        .where(f.col("seconds") > longer_than.total_seconds())
        .orderBy(f.desc("seconds"), "group", "from")
    )
    return described(
        long,
        **{"from": "the last commit before it", "to": "when it ended; none if it has not yet"},
        ended="by a commit, or by the removal of the group's last offset",
    )
