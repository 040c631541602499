"""What Parquet files hold, by their footers and their offset column: rows, partition, first and last offset."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from offsetd.pipeline.load.manifest import DataFile
from offsetd.pipeline.load.refusal import NotVerified

#: Decoding lets go of the interpreter, so threads help; more than this only fight for the disk.
_THREADS: Final = 4


def read_files(directory: Path) -> tuple[DataFile, ...]:
    """Return every data file below a load's directory, by path.

    Raises:
        NotVerified: a file cannot be read, or its offsets do not rise.
    """
    paths = sorted(path for path in directory.rglob("*.parquet") if not path.name.startswith((".", "_")))
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda path: _read(path, directory), paths))
    return tuple(file for file in found if file is not None)


def _read(path: Path, directory: Path) -> DataFile | None:
    # Imported here: it takes half a second, and is not there without the extra.
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    name = str(path.relative_to(directory))
    try:
        with parquet.ParquetFile(path) as file:
            metadata = file.metadata
            if metadata.num_rows == 0:
                return None
            first, last = _bounds(metadata, "offset")
            partitions = _bounds(metadata, "partition")
            _check_offsets(file, name)
            unparsed = _present(metadata, "value_raw")
    except (OSError, pa.ArrowException, KeyError) as error:
        raise NotVerified(f"{path} cannot be read back: {error}. Nothing was published; run again.") from error
    if partitions[0] != partitions[1]:
        raise NotVerified(f"{path} holds partitions {partitions[0]}..{partitions[1]}, want one. Nothing was published.")
    return DataFile(
        path=name,
        topic=topic_of(name),
        partition=partitions[0],
        rows=metadata.num_rows,
        bytes=path.stat().st_size,
        first=first,
        last=last,
        unparsed=unparsed,
    )


def topic_of(name: str) -> str:
    """Return the topic that a file's path names.

    Raises:
        KeyError: it names none.
    """
    for part in name.split("/"):
        key, equals, value = part.partition("=")
        if equals and key == "topic":
            return unquote(value)
    raise KeyError("topic")


def _column(metadata: Any, name: str) -> int | None:
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    return names.index(name) if name in names else None


def _bounds(metadata: Any, name: str) -> tuple[int, int]:
    column = _column(metadata, name)
    if column is None:
        raise KeyError(f"no column {name}")
    groups = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
    if any(statistics is None or not statistics.has_min_max for statistics in groups):
        raise KeyError(f"no statistics of column {name}")
    return min(statistics.min for statistics in groups), max(statistics.max for statistics in groups)


def _present(metadata: Any, name: str) -> int:
    """Return how many rows have a value in a column; 0 if there is no such column."""
    column = _column(metadata, name)
    if column is None:
        return 0
    groups = [metadata.row_group(number).column(column) for number in range(metadata.num_row_groups)]
    return sum(group.num_values - group.statistics.null_count for group in groups)


def _check_offsets(file: Any, name: str) -> None:
    """Look at every offset: counts and bounds alone would let a record that came twice hide one that is missing."""
    import pyarrow.compute as pc  # noqa: PLC0415

    last = None
    for batch in file.iter_batches(columns=["offset"], batch_size=1 << 20):
        offsets = batch.column(0)
        rising = len(offsets) < 2 or pc.all(pc.greater(offsets[1:], offsets[:-1])).as_py()
        if offsets.null_count or not rising or (last is not None and offsets[0].as_py() <= last):
            raise NotVerified(
                f"{name}: its offsets do not rise, so a record may be in it twice. Nothing was published."
            )
        last = offsets[-1].as_py()
