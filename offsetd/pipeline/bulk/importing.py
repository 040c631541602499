"""Many offsets into a broker: Spark brings the rows of a group together, each task commits its share."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from offsetd.pipeline.bulk.outcome import ImportSummary, RefusedRow
from offsetd.pipeline.bulk.parcel import Conflict, Packer, Parcel
from offsetd.pipeline.bulk.pipelined import WINDOW, PipelinedCommitter
from offsetd.pipeline.bulk.row import COLUMNS, OffsetRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REFUSED_SCHEMA: Final = "group string, topic string, partition int, offset bigint, code int, why string"
_TALLY: Final = ("committed", "refused", "malformed", "requests", "retries")
_OUTCOME_SCHEMA: Final = REFUSED_SCHEMA + "".join(f", {name} bigint" for name in _TALLY)
#: Parcels that are packed before they are sent: enough to keep the window full.
_PARCELS_AT_ONCE: Final = 2_000


def import_offsets(
    spark: "SparkSession", frame: "DataFrame", bootstrap: str, *, connections: int | None = None, window: int = WINDOW
) -> "tuple[ImportSummary, DataFrame]":
    """Commit a frame of offsets; return how it went, and the rows that are not in the broker.

    Running it again is harmless, as is Spark's running a task again: the same offsets are committed once more.

    Args:
        frame: with the columns group, topic, partition, offset; and, if there, metadata, leader_epoch and problem (why
            a row is none: it is then counted as malformed).
        connections: tasks, each of which has one connection; as many as Spark has cores if not given.
    """
    # Imported here: pyspark is not there without the extra.
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    kinds = {"metadata": "string", "leader_epoch": "int", "problem": "string"}
    for name, kind in kinds.items():
        if name not in frame.columns:
            frame = frame.withColumn(name, F.lit(None).cast(kind))
    tasks = connections or spark.sparkContext.defaultParallelism
    ordered = (
        frame.select(*COLUMNS, "problem")
        .repartition(tasks, "group")
        .sortWithinPartitions("group", "topic", "partition", "offset")
    )
    # Kept, so that counting, showing and writing the refused rows do not each commit everything anew.
    outcome = ordered.mapInArrow(_task(bootstrap, window), _OUTCOME_SCHEMA).persist()
    sums = outcome.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _TALLY)).head()
    counts = {name: int(sums[name]) for name in _TALLY}
    rows = counts["committed"] + counts["refused"] + counts["malformed"]
    refused = outcome.where(F.col("why").isNotNull()).select("group", "topic", "partition", "offset", "code", "why")
    return ImportSummary(rows=rows, **counts), refused


def _task(bootstrap: str, window: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        malformed: list[RefusedRow] = []
        total = 0
        with PipelinedCommitter(bootstrap, window=window) as committer:
            packed = _pack(batches, malformed)
            while parcels := list(islice(packed, _PARCELS_AT_ONCE)):
                refused = committer.commit(parcels)
                if refused:
                    yield outcome_batch(refused)
                total += len(malformed)
                if malformed:
                    yield outcome_batch(malformed)
                    malformed.clear()
            total += len(malformed)
            tally = committer.tally
        yield outcome_batch(malformed, (tally.committed, tally.refused, total, tally.requests, tally.retries))

    return run


def _pack(batches: Iterator[Any], malformed: list[RefusedRow]) -> Iterator[Parcel]:
    """Yield parcels; add to the list what cannot be in one."""
    packer = Packer()

    def sort(found: Iterator[Parcel | Conflict]) -> Iterator[Parcel]:
        for each in found:
            if isinstance(each, Parcel):
                yield each
                continue
            offsets = " and ".join(str(offset) for offset in sorted({row.offset for row in each.rows}))
            why = f"the partition is named {len(each.rows)} times, not all alike (offsets {offsets}): keep one"
            malformed.extend(
                RefusedRow(row.group, row.topic, row.partition, row.offset, None, why) for row in each.rows
            )

    for batch in batches:
        for *fields, problem in zip(*batch.to_pydict().values(), strict=True):
            row = OffsetRow(*fields)
            if problem is None:
                yield from sort(packer.feed(row))
            else:
                malformed.append(RefusedRow(row.group, row.topic, row.partition, row.offset, None, problem))
    yield from sort(packer.finish())


def outcome_batch(rows: list[RefusedRow], tally: tuple[int, ...] | None = None) -> Any:
    """Return refused rows, and behind them one with a task's numbers, as Arrow's."""
    import pyarrow as pa  # noqa: PLC0415  # it comes with the extra

    text, small, big = pa.string(), pa.int32(), pa.int64()
    records = [(*row, *(None,) * len(_TALLY)) for row in rows]
    if tally is not None:
        records.append((*(None,) * len(RefusedRow._fields), *tally))
    kinds = (text, text, small, big, small, text, *(big,) * len(_TALLY))
    columns = zip(*records, strict=True) if records else [()] * len(kinds)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[*RefusedRow._fields, *_TALLY])
