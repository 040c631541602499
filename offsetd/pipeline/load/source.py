"""The records of a plan as a DataFrame, read by Spark's own Kafka source with every offset pinned."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from offsetd.pipeline.load.manifest import encode_positions
from offsetd.pipeline.load.plan import Plan, Range, by_topic
from offsetd.pipeline.load.value import Values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(
    spark: "SparkSession", upstream: str, plan: Plan, values: Values, *, day: str, split: int | None = None
) -> "DataFrame":
    """Return the records of all ranges of a plan, one task per partition.

    Args:
        day: the day of the load, UTC, which all its rows carry.
        split: let several tasks share a partition that has more records than this.
    """
    from pyspark.sql.functions import col, lit  # noqa: PLC0415

    options = {
        "kafka.bootstrap.servers": upstream,
        # Without it records of transactions that were given up would be loaded.
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        # A record that is gone since the plan was made must end the load, not leave a hole.
        "failOnDataLoss": "true",
        # Partitions without news are not named: each would cost a task, and perhaps an empty file.
        "assign": json.dumps(
            {topic: [item.partition for item in ranges] for topic, ranges in by_topic(plan.ranges).items()}
        ),
        "startingOffsets": json.dumps(encode_positions({item.key: item.start for item in plan.ranges})),
        "endingOffsets": json.dumps(encode_positions({item.key: item.end for item in plan.ranges})),
    }
    if split is not None:
        options["minPartitions"] = str(tasks(plan.ranges, split))
    return (
        spark.read.format("kafka")
        .options(**options)
        .load()
        .select(
            col("key"),
            *(column.alias(name) for name, column in values.columns().items()),
            col("headers"),
            col("timestamp"),
            col("timestampType").alias("timestamp_type"),
            col("partition"),
            col("offset"),
            col("topic"),
            lit(day).alias("day"),
        )
    )


def tasks(ranges: Sequence[Range], split: int) -> int:
    """Return how many tasks there are when each takes at most about `split` records."""
    return sum(-(-item.records // split) for item in ranges)
