"""Parquet files written behind one another into one, and read back against them row by row. Memory stays bounded."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from offsetd.pipeline.load.refusal import NotVerified

#: What is held in memory of a file at a time, and what a row group of the folded file holds, before compression.
_BATCH_BYTES: Final = 8 * 1024 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024
_BATCH_ROWS_MAX: Final = 65_536


def merge(sources: Sequence[Path], target: Path) -> None:
    """Write the rows of all sources to the target, in order, with the schema and compression of the first.

    Raises:
        NotVerified: the sources differ in their schema, or cannot be read.
    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    with parquet.ParquetFile(sources[0]) as first:
        schema, options = first.schema_arrow, _options(first.metadata)
    with parquet.ParquetWriter(target, schema, **options) as writer:
        held: list[Any] = []
        size = 0
        for batch in _batches(sources, schema):
            held.append(batch)
            size += batch.nbytes
            if size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, schema), row_group_size=1 << 30)
                held, size = [], 0
        if held:
            writer.write_table(pa.Table.from_batches(held, schema), row_group_size=1 << 30)


def compare(sources: Sequence[Path], target: Path) -> None:
    """Hold every row of the target against the sources.

    Raises:
        NotVerified: a row differs, is missing or is too many.
    """
    from pyarrow import parquet  # noqa: PLC0415

    with parquet.ParquetFile(sources[0]) as first:
        schema = first.schema_arrow
    theirs, row = _Rows(_batches([target], schema)), 0
    for batch in _batches(sources, schema):
        done = 0
        while done < batch.num_rows:
            part = theirs.take(batch.num_rows - done)
            if part is None or not part.equals(batch.slice(done, part.num_rows)):
                raise NotVerified(f"{target}: from row {row + done} on it is not what was folded. Nothing was changed.")
            done += part.num_rows
        row += batch.num_rows
    if theirs.take(1) is not None:
        raise NotVerified(f"{target}: it has more than the {row} rows that were folded. Nothing was changed.")


class _Rows:
    """Batches, given out in pieces of the size that is asked for, or less."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._left: Any = None

    def take(self, rows: int) -> Any:
        while self._left is None or not self._left.num_rows:
            self._left = next(self._batches, None)
            if self._left is None:
                return None
        part = self._left.slice(0, rows)
        self._left = self._left.slice(part.num_rows)
        return part


def _batches(paths: Sequence[Path], schema: Any) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                if not file.schema_arrow.equals(schema):
                    raise NotVerified(f"{path}: its columns are not those of the files beside it. Nothing was changed.")
                yield from file.iter_batches(batch_size=_batch_rows(file.metadata))
        except pa.ArrowException as error:
            raise NotVerified(f"{path} cannot be read: {error}. Nothing was changed.") from error


def _batch_rows(metadata: Any) -> int:
    size = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
    rows: int = max(1, min(_BATCH_ROWS_MAX, _BATCH_BYTES * metadata.num_rows // max(size, 1)))
    return rows


def _options(metadata: Any) -> dict[str, Any]:
    columns = range(metadata.num_columns)
    group = metadata.row_group(0) if metadata.num_row_groups else None
    return {
        "compression": group.column(0).compression.lower() if group is not None else "snappy",
        # Spark's old timestamps would come back as nanoseconds, which Spark does not read.
        "use_deprecated_int96_timestamps": any(metadata.schema.column(at).physical_type == "INT96" for at in columns),
        "store_schema": False,
    }
