"""The live state of a running cluster: every group's committed offsets, groups shared by tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from offsetd.client.transient import ConnectionFailed
from offsetd.pipeline.bulk.exporting import fetch_rows, list_groups
from offsetd.pipeline.history.refusal import HistoryRefused

SCHEMA: Final = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
    ]
)
#: Few enough that a large broker keeps every core busy, enough that a connection is worth its while.
_TASK_GROUPS: Final = 2000


@dataclass(frozen=True, slots=True)
class Share:
    """The groups that one task reads."""

    bootstrap: str
    groups: tuple[str, ...]


def shares(bootstrap: str) -> list[Share]:
    """Return the groups of a cluster in shares.

    Raises:
        HistoryRefused: a broker cannot be reached.
        ClientError: the groups may not be listed.
    """
    try:
        groups = list_groups(bootstrap)
    except ConnectionFailed as failed:
        raise HistoryRefused(f"the groups of {bootstrap} cannot be listed: {failed}") from failed
    return [Share(bootstrap, part) for part in split(groups, _TASK_GROUPS)]


def split(groups: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """Return groups in parts of about one size, none above the most."""
    parts = -(-len(groups) // most)
    return [tuple(groups[number::parts]) for number in range(parts)]


def read_live(share: Share, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the offsets of some groups, each group as it is at one moment.

    Raises:
        ClientError: a broker did not answer in time, or refused.
    """
    for rows in fetch_rows(share.bootstrap, share.groups):
        group, topic, partition, offset, metadata, leader_epochs = zip(*rows, strict=True)
        epochs = [None if epoch is None or epoch < 0 else epoch for epoch in leader_epochs]
        found = [group, topic, partition, offset, epochs, metadata]
        arrays = [pa.array(column, field.type) for column, field in zip(found, SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA).select(list(columns))
