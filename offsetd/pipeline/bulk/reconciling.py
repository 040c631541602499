"""Two dumps of offsets against each other: a full outer join on group, topic and partition, a verdict per row."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from offsetd.pipeline.bulk.verdict import Side, Verdict, judge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY: Final = ("group", "topic", "partition")
SCHEMA: Final = (
    "group string, topic string, partition int, left bigint, right bigint, "
    "left_metadata string, right_metadata string, verdict string, by bigint"
)


def reconcile(left: "DataFrame", right: "DataFrame") -> "DataFrame":
    """Compare two frames of offsets, each of which has a partition of a group once at most."""
    # Imported here: pyspark is not there without the extra.
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    def side(frame: "DataFrame", name: str) -> "DataFrame":
        metadata = F.col("metadata").alias(f"{name}_metadata")
        return frame.select(*KEY, F.col("offset").alias(name), metadata)

    joined = side(left, "left").join(side(right, "right"), on=list(KEY), how="full_outer")
    columns = [*KEY, "left", "right", "left_metadata", "right_metadata"]
    return joined.select(*columns).mapInArrow(_judge_batches, SCHEMA)


def count_verdicts(rows: "DataFrame") -> dict[Verdict, int]:
    """Return how many rows have each verdict, those that none has included."""
    found = {row["verdict"]: int(row["count"]) for row in rows.groupBy("verdict").count().collect()}
    return {verdict: found.get(verdict.value, 0) for verdict in Verdict}


def split(frame: "DataFrame") -> "tuple[DataFrame, DataFrame]":
    """Return the rows that can be compared, each partition once, and the problems of the others."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    whole = frame.where(F.col("problem").isNull()).dropDuplicates()
    counted = whole.groupBy(*KEY).agg(
        F.count("*").alias("times"), F.min("offset").alias("offset"), F.min("metadata").alias("metadata")
    )
    twice = counted.where("times > 1").select(
        F.concat_ws(" ", F.lit("named more than once, not alike:"), *KEY).alias("problem")
    )
    problems = frame.where(F.col("problem").isNotNull()).select("problem").unionByName(twice)
    return counted.where("times = 1").select(*KEY, "offset", "metadata"), problems


def _judge_batches(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415  # it comes with the extra

    for batch in batches:
        if not batch.num_rows:
            continue
        columns = batch.to_pydict()
        sides = zip(columns["left"], columns["left_metadata"], columns["right"], columns["right_metadata"], strict=True)
        judged = [judge(Side(a, b), Side(c, d)) for a, b, c, d in sides]
        verdicts = pa.array([str(verdict) for verdict, _ in judged], pa.string())
        by = pa.array([ahead for _, ahead in judged], pa.int64())
        names = [*batch.schema.names, "verdict", "by"]
        yield pa.RecordBatch.from_arrays([*batch.columns, verdicts, by], names=names)
