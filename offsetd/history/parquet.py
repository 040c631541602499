"""The bytes of a sealed file: records sorted by what people ask for, in Parquet that every reader knows.

Nothing here knows files or days. What the columns are is said in `columns`.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from offsetd.history.columns import plain, schema

FORMAT: Final = 1

#: Rows that a reader must read together: few enough that one group's are found without reading the others'.
_GROUP_ROWS: Final = 131_072

#: Numbers that differ little from one row to the next when rows are sorted. All others repeat, and get a dictionary.
_DELTAS: Final = ("sequence", "partition", "offset", "commit_time", "expiry_time", "batch", "batch_time")


def encode(pieces: Sequence[pa.RecordBatch], *, cluster_id: str) -> bytes:
    """Return the file that holds these records, as `Columns.take` gave them, sorted.

    By group, topic, partition and sequence; what has none of one of them stands before what has.
    """
    told = schema().with_metadata({"offsetd-history-format": str(FORMAT), "offsetd-cluster-id": cluster_id})
    sink = pa.BufferOutputStream()
    writer = pq.ParquetWriter(
        sink,
        told,
        compression="zstd",
        use_dictionary=[field.name for field in told if field.name not in _DELTAS],
        column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
        write_page_index=True,
    )
    with writer:
        if pieces:
            _write(writer, pa.Table.from_batches(pieces).unify_dictionaries(), told)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _write(writer: pq.ParquetWriter, table: pa.Table, told: pa.Schema) -> None:
    order = _order(table)
    for start in range(0, len(order), _GROUP_ROWS):
        # Taken piece by piece, because all of it twice would be twice the memory.
        taken = table.take(order[start : start + _GROUP_ROWS]).combine_chunks().to_batches()[0]
        writer.write_batch(plain(taken).replace_schema_metadata(told.metadata), _GROUP_ROWS)


def _order(table: pa.Table) -> npt.NDArray[np.int64]:
    """Return which row stands where."""
    keys = [_ranks(table["group"]), _ranks(table["topic"]), _numbers(table["partition"]), _numbers(table["sequence"])]
    return np.lexsort(keys[::-1])


def _ranks(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return for each row the place of its text among the different ones, -1 for none."""
    ranks: list[npt.NDArray[Any]] = []
    for chunk in column.chunks:
        texts = chunk.dictionary.to_pylist()
        # As UTF-8, which is how readers of Parquet compare.
        order = sorted(range(len(texts)), key=lambda at: texts[at].encode())
        places = np.empty(len(texts), np.int32)
        places[order] = np.arange(len(texts))
        numbers = chunk.indices.fill_null(0).to_numpy()
        ranks.append(np.where(chunk.is_valid().to_numpy(zero_copy_only=False), places[numbers], -1))
    return np.concatenate(ranks)


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    # What has no partition or no sequence has no topic or no group either, so that it is never among those that do.
    return np.concatenate([chunk.fill_null(-1).to_numpy() for chunk in column.chunks])
