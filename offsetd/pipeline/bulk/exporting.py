"""The offsets of a broker as a frame, and a frame as one file."""

import asyncio
import csv
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from offsetd import __version__
from offsetd.client import BlockingClient, Limits
from offsetd.client.address import Address, parse_bootstrap
from offsetd.client.connection import open_connection
from offsetd.client.errors import refusal
from offsetd.client.transient import ConnectionFailed
from offsetd.pipeline.bulk.row import COLUMNS, OffsetRow
from protocol.errors import Code
from protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA: Final = "group string, topic string, partition int, offset bigint, metadata string, leader_epoch int"
_GROUPS_PER_REQUEST: Final = 200
_CLIENT_ID: Final = "offsetd-export"


def list_groups(bootstrap: str, *, limits: Limits | None = None) -> list[str]:
    """Return the groups of every broker of a cluster, in order.

    Raises:
        ConnectionFailed: a broker cannot be reached, so its groups would be missing.
        Refused: they may not be listed.
    """
    return asyncio.run(_list_groups(parse_bootstrap(bootstrap), limits or Limits()))


async def _list_groups(bootstrap: tuple[Address, ...], limits: Limits) -> list[str]:
    brokers: set[Address] = set()
    for number, address in enumerate(bootstrap):
        try:
            asked = MetadataRequest(topics=(), allow_auto_topic_creation=False)
            found = await _ask(address, asked, MetadataResponse, limits)
        except ConnectionFailed:
            if number == len(bootstrap) - 1:
                raise
        else:
            brokers = {Address(broker.host, broker.port) for broker in found.brokers}
            break
    groups: set[str] = set()
    for address in sorted(brokers):
        reply = await _ask(address, ListGroupsRequest(), ListGroupsResponse, limits)
        if reply.error_code != Code.NONE:
            raise refusal(action="listing groups", group=None, code=reply.error_code)
        groups.update(row.group_id for row in reply.groups)
    return sorted(groups)


async def _ask(address: Address, request: Any, kind: Any, limits: Limits) -> Any:
    connection = await open_connection(
        address, client_id=_CLIENT_ID, software_version=__version__, limits=limits, ssl=None
    )
    try:
        return await connection.call(request, kind)
    finally:
        await connection.close()


def fetch_rows(bootstrap: str, groups: Iterable[str]) -> Iterator[list[OffsetRow]]:
    """Yield the committed offsets of groups, of some groups at once; nothing of those that have none.

    Raises:
        ClientError: a broker did not answer in time, or refused.
    """
    names = iter(groups)
    with BlockingClient(bootstrap, client_id=_CLIENT_ID) as client:
        while asked := dict.fromkeys(islice(names, _GROUPS_PER_REQUEST)):
            rows = [
                OffsetRow(group, at.topic, at.partition, found.offset, found.metadata, found.leader_epoch)
                for group, offsets in client.fetch_groups(asked).items()
                for at, found in offsets.items()
            ]
            if rows:
                yield rows


def read_broker(spark: "SparkSession", bootstrap: str, *, groups: Iterable[str] | None = None) -> "DataFrame":
    """Return the committed offsets of groups, of all if none are named, as a frame; tasks share the groups.

    Each group is read at one moment, and different groups at different ones.
    """
    # Imported here: pyspark is not there without the extra.
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    names = list_groups(bootstrap) if groups is None else sorted(set(groups))
    wanted = spark.createDataFrame([(name,) for name in names], "group string")

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pandas as pd  # noqa: PLC0415  # it comes with the extra

        held = (name for batch in batches for name in batch["group"])
        for rows in fetch_rows(bootstrap, held):
            yield pd.DataFrame(rows, columns=list(COLUMNS))

    tasks = spark.sparkContext.defaultParallelism
    # The plan must not be run again for each question asked of it: the broker would answer otherwise then.
    return wanted.repartition(tasks).mapInPandas(run, SCHEMA).withColumn("problem", F.lit(None).cast("string"))


def write_file(frame: "DataFrame", path: Path) -> int:
    """Write a frame to one file, CSV or Parquet by its name, which appears when it is whole; return the rows.

    Raises:
        ValueError: the name ends with neither.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path.name} ends neither with .csv nor with .parquet")
    growing = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        count = _write_csv(frame, growing) if path.suffix == ".csv" else _write_parquet(frame, growing)
        with growing.open("rb") as written:
            os.fsync(written.fileno())
        growing.replace(path)
    finally:
        growing.unlink(missing_ok=True)
    return count


def _write_csv(frame: "DataFrame", path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        # Texts in quotes: an empty one is then not taken for one that is missing.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        file.write(",".join(frame.columns) + "\n")
        for row in frame.toLocalIterator():
            writer.writerow(row)
            count += 1
    return count


def _write_parquet(frame: "DataFrame", path: Path) -> int:
    import pyarrow.parquet as pq  # noqa: PLC0415  # it comes with the extra

    table = frame.toArrow()
    pq.write_table(table, path, compression="zstd")
    return int(table.num_rows)
