"""The line of records behind each offset, in the order of the log: what stands there, and what stood there before.

All views are made of these few things. Which record comes first is told by `sequence`, within a group; which time it
was is told by `batch_time`, the broker's clock when it wrote the batch. `commit_time` may be the client's own, so it
only says what the client said. Nothing here reads a file.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from offsetd.record import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY: Final = ("group", "topic", "partition")
#: Who made a record, as far as its request said.
WHO: Final = ("client_id", "host", "member")
#: Kinds that say where a group stands, or that it no longer does.
DECISIVE: Final = (int(Kind.COMMIT), int(Kind.TOMBSTONE), int(Kind.GROUP_TOMBSTONE))
#: Kinds by which a group says that it is there.
BEATS: Final = (int(Kind.COMMIT), int(Kind.TOUCH))
#: Kinds that name a partition.
_SINGLE: Final = (int(Kind.COMMIT), int(Kind.TOUCH), int(Kind.TOMBSTONE))

_INT64_MAX: Final = (1 << 63) - 1


def until(records: "DataFrame", moment: datetime | None) -> "DataFrame":
    """Return the records up to the last batch that was written at a moment or before it; all of them for no moment.

    So it is always a whole beginning of the log, also where the broker's clock was once set back.
    """
    if moment is None:
        return records
    from pyspark.sql import functions as f  # noqa: PLC0415  # not there without the extra

    last = records.where(f.col("batch_time") <= f.lit(moment)).agg(f.max("batch").alias("last_batch"))
    return records.join(f.broadcast(last), f.col("batch") <= f.col("last_batch")).drop("last_batch")


def marks(records: "DataFrame") -> "DataFrame":
    """Return the records that are about a partition, a group's removal told for each partition that it ever had."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    single = records.where(f.col("type").isin(*_SINGLE))
    whole = records.where(f.col("type") == int(Kind.GROUP_TOMBSTONE)).drop("topic", "partition")
    return single.unionByName(whole.join(single.select(*KEY).distinct(), "group"))


def lines(records: "DataFrame") -> "DataFrame":
    """Return the records that are about a partition, each with what stood there before it.

    `from_offset` is none where nothing stood there: at its first record in this history, and after a removal. `from_…`
    of who is whoever had committed or repeated the offset last. A touch of what is not there says nothing, and is left
    out.
    """
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    before = Window.partitionBy(*KEY).orderBy("sequence").rowsBetween(Window.unboundedPreceding, -1)
    held = f.last(f.when(f.col("type").isin(*DECISIVE), f.struct("type", "offset")), ignorenulls=True)
    owner = f.last(f.when(f.col("type").isin(*BEATS), f.struct(*WHO)), ignorenulls=True)
    stood = (
        marks(records)
        .withColumns({"held": held.over(before), "owner": owner.over(before)})
        .withColumn("from_offset", f.when(f.col("held.type") == int(Kind.COMMIT), f.col("held.offset")))
    )
    known = f.col("from_offset").isNotNull()
    owners = {f"from_{name}": f.when(known, f.col(f"owner.{name}")) for name in WHO}
    return stood.withColumns(owners).drop("held", "owner").where((f.col("type") != int(Kind.TOUCH)) | known)


def difference(higher: "Column", lower: "Column") -> "Column":
    """Return how far two offsets are apart, or the farthest that can be told: clients may commit any number."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    far = f.when(higher < lower, f.lit(-_INT64_MAX)).otherwise(f.lit(_INT64_MAX))
    # Its absolute value must be a number, too.
    return f.greatest(f.coalesce(f.try_subtract(higher, lower), far), f.lit(-_INT64_MAX))


def described(frame: "DataFrame", **comments: str) -> "DataFrame":
    """Return a frame whose columns say what they mean, to whoever asks its schema."""
    for name, comment in comments.items():
        frame = frame.withMetadata(name, {"comment": comment})
    return frame
