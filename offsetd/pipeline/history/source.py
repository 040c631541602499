"""`spark.read.format("offsetd")`: history that is not sealed yet, and the live state, as Spark's own kind of source.

It runs in processes that Spark starts: options come as texts, partitions are pickled. All of the reading is elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from offsetd.pipeline.history.listing import Lister
from offsetd.pipeline.history.options import (
    HistoryOptions,
    LiveOptions,
    check_batch_read,
    check_stream,
    read_options,
)
from offsetd.pipeline.history.reading import Wanted, all_columns, read
from offsetd.pipeline.history.refusal import HistoryRefused

if TYPE_CHECKING:
    from offsetd.pipeline.history.live import Share
    from offsetd.pipeline.history.stream import StreamReader

FORMAT: Final = "offsetd"


@dataclass(frozen=True)
class HistoryPartition(InputPartition):  # type: ignore[misc]  # pyspark has no types here
    """What one task reads of history."""

    wanted: Wanted


@dataclass(frozen=True)
class LivePartition(InputPartition):  # type: ignore[misc]  # as above
    """What one task reads of the live state."""

    share: "Share"


class OffsetdSource(DataSource):  # type: ignore[misc]  # as above
    """The source that Spark makes for each `load()`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns."""
        return spark_schema(_columns(read_options(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what plans and reads a batch query; `schema` may name some of the columns only."""
        options = read_options(self.options)
        check_batch_read(self.options)
        columns = chosen(schema, _columns(options))
        if isinstance(options, LiveOptions):
            return LiveReader(options, columns)
        return HistoryReader(options, columns)

    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802  # Spark's name
        """Return what plans and reads micro-batches."""
        from offsetd.pipeline.history.stream import StreamReader  # noqa: PLC0415

        check_stream(self.options)
        options = read_options(self.options)
        assert isinstance(options, HistoryOptions), "the live state is not for streams, as was checked"
        return StreamReader(options, chosen(schema, all_columns()))


class HistoryReader(DataSourceReader):  # type: ignore[misc]  # as above
    """Reads batches of history, a task for each segment."""

    def __init__(self, options: HistoryOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Pin the batches that are read, wherever they will lie by then."""
        options = self._options
        places = options.locate()
        spans = options.spans
        if spans is None:
            listing = Lister(places).look()
            if options.fail_on_data_loss:
                listing.check_whole()
            spans = tuple(listing.unsealed)
        return [
            HistoryPartition(Wanted(places, span, self._columns, fail_on_data_loss=options.fail_on_data_loss))
            for span in spans
        ]

    def read(self, partition: HistoryPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield what a task reads; Spark makes one of None where there is nothing to read."""
        return iter(()) if partition is None else read(partition.wanted)


class LiveReader(DataSourceReader):  # type: ignore[misc]  # as above
    """Reads committed offsets from brokers."""

    def __init__(self, options: LiveOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """List the groups, and share them out."""
        # Imported here: whoever reads history needs no client.
        from offsetd.pipeline.history.live import shares  # noqa: PLC0415

        return [LivePartition(share) for share in shares(self._options.bootstrap)]

    def read(self, partition: LivePartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the offsets of a share of the groups."""
        from offsetd.pipeline.history.live import read_live  # noqa: PLC0415

        return iter(()) if partition is None else read_live(partition.share, self._columns)


def _columns(options: HistoryOptions | LiveOptions) -> pa.Schema:
    if isinstance(options, HistoryOptions):
        return all_columns()
    from offsetd.pipeline.history.live import SCHEMA  # noqa: PLC0415

    return SCHEMA


def spark_schema(columns: pa.Schema) -> StructType:
    """Return Arrow's columns as Spark's; all may be null, as Spark has it for files."""
    schema = from_arrow_schema(columns)
    for field in schema.fields:
        field.nullable = True
    return schema


def chosen(schema: StructType, columns: pa.Schema) -> tuple[str, ...]:
    """Return the names of the columns that are asked for.

    Raises:
        HistoryRefused: there is no such column, or it is of another type.
    """
    types = {field.name: field.dataType for field in spark_schema(columns).fields}
    for field in schema.fields:
        if field.name not in types:
            raise HistoryRefused(f"there is no column {field.name!r}; there are {', '.join(types)}")
        if types[field.name] != field.dataType:
            found, asked = types[field.name].simpleString(), field.dataType.simpleString()
            raise HistoryRefused(f"the column {field.name!r} is {found}, and was asked for as {asked}")
    return tuple(schema.fieldNames())
