"""All of a broker's history as one frame: sealed files by Spark's own reader, and what is not sealed yet by ours."""

from pathlib import Path
from typing import TYPE_CHECKING

from offsetd.journal.sealed import SealedFile, list_sealed
from offsetd.pipeline.history.listing import Lister
from offsetd.pipeline.history.options import local_directory
from offsetd.pipeline.history.places import locate
from offsetd.pipeline.history.span import format_spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The names of sealed files and of nothing else, for Hadoop; what is being written has another.
_SEALED_NAMES = "-".join(["[0-9]" * 20] * 2) + ".parquet"


def register(spark: "SparkSession") -> None:
    """Let a session know the format `offsetd`."""
    from offsetd.pipeline.history.source import OffsetdSource  # noqa: PLC0415  # pyspark is not there without the extra

    spark.dataSource.register(OffsetdSource)


def records(
    spark: "SparkSession", directory: str | Path, *, broker_id: int | None = None, fail_on_data_loss: bool = True
) -> "DataFrame":
    """Return every record of a broker's history, once, as it is at this moment.

    The frame stays what it is: segments that are compacted or sealed later are read from where they are then. What
    retention takes before it is read is an error.

    Args:
        spark: the session; the source is registered there.
        directory: a data directory, or a copy of a broker's history; executors must see it under the same path.
        broker_id: whose history; None for the only one there.
        fail_on_data_loss: whether a hole in the history is an error, or what there is is read.

    Raises:
        HistoryRefused: there is no history, or it has a hole.
        Damage, NewerFormat: the journal's last segment cannot be read.
    """
    from offsetd.pipeline.history.reading import all_columns  # noqa: PLC0415  # as in `register`
    from offsetd.pipeline.history.source import FORMAT, spark_schema  # noqa: PLC0415  # as in `register`

    path = local_directory(str(directory))
    places = locate(path, broker_id)
    schema = spark_schema(all_columns())
    frames: list[DataFrame] = []

    def listed_by_spark(sealed: Path) -> list[SealedFile]:
        """Let Spark list the files, once, and return which ones it will read."""
        frames.clear()
        if not list_sealed(sealed):
            return []
        reader = spark.read.schema(schema).option("pathGlobFilter", _SEALED_NAMES)
        frame = reader.parquet(f"file:{sealed}")
        frames.append(frame)
        names = {uri.rpartition("/")[2] for uri in frame.inputFiles()}
        return [file for file in list_sealed(sealed) if file.path.name in names]

    listing = Lister(places).look(listed_by_spark)
    if fail_on_data_loss:
        listing.check_whole()
    if listing.unsealed:
        register(spark)
        rest = (
            spark.read.format(FORMAT)
            .option("directory", str(path))
            .option("batches", format_spans(listing.unsealed))
            .option("failOnDataLoss", str(fail_on_data_loss).lower())
        )
        frames.append((rest if broker_id is None else rest.option("brokerId", broker_id)).load())
    if not frames:
        return spark.createDataFrame([], schema)
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole
