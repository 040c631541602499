"""How far groups were behind, wherever the ends of the logs were sampled. Nothing here reads a file."""

from typing import TYPE_CHECKING

from offsetd.pipeline.history.line import DECISIVE, KEY, described, difference, marks
from offsetd.record import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def lag(records: "DataFrame", samples: "DataFrame") -> "DataFrame":
    """Return how far each group was behind whenever a partition's log was sampled.

    A group that had no offset there had no lag. Records that the log no longer has cannot be read, so they are no lag
    either; they are told as lost.

    Args:
        samples: `time`, `topic`, `partition`, `log_start` and `log_end`.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # not there without the extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    whole = Window.partitionBy(*KEY).orderBy("sequence").rowsBetween(0, Window.unboundedFollowing)
    said = (
        marks(records)
        .where(f.col("type").isin(*DECISIVE))
        .select(
            *KEY,
            # Where the broker's clock was set back, what came before that has happened by then.
            f.min("batch_time").over(whole).alias("at"),
            f.col("sequence").alias("order"),
            f.struct((f.col("type") == int(Kind.COMMIT)).alias("live"), "offset").alias("said"),
            f.lit(None).cast("struct<log_start: bigint, log_end: bigint>").alias("log"),
        )
    )
    taken = samples.select(
        "topic", "partition", f.col("time").alias("at"), f.struct("log_start", "log_end").alias("log")
    )
    asked = said.select(*KEY).distinct().join(taken.distinct(), ["topic", "partition"]).select(
        *KEY, "at", f.lit(2**63 - 1).alias("order"),
        f.lit(None).cast("struct<live: boolean, offset: bigint>").alias("said"), "log",
    )  # fmt: skip
    # Records and samples in one line of time: each sample takes what was said last before it.
    line = Window.partitionBy(*KEY).orderBy("at", "order").rowsBetween(Window.unboundedPreceding, 0)
    held = f.last("said", ignorenulls=True).over(line)
    start, end, offset = f.col("log.log_start"), f.col("log.log_end"), f.col("held.offset")
    found = (
        said.unionByName(asked)
        .withColumn("held", held)
        .where(f.col("log").isNotNull() & f.col("held.live"))
        .select(
            f.col("at").alias("time"),
            *KEY,
            offset.alias("offset"),
            start.alias("log_start"),
            end.alias("log_end"),
            f.greatest(difference(end, f.greatest(offset, start)), f.lit(0)).alias("lag"),
            f.greatest(difference(start, offset), f.lit(0)).alias("lost"),
            f.when(offset < start, "before the log's start")
            .when(offset > end, "beyond the log's end")
            .otherwise("ok")
            .alias("state"),
        )
    )
    return described(
        found.orderBy("time", *KEY),
        lag="records that can still be read and are not yet committed",
        lost="records that were gone from the log before they were committed",
        state="ok, or where the offset lies outside of the log",
    )
