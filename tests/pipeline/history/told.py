"""Small histories as tables of records: steps of groups, in batches that were written at a moment."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from struct import pack
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from offsetd.history.columns import Columns, plain, schema
from offsetd.journal.batch import Batch
from offsetd.record import Generation, GenerationMember, Who, encode_opening
from tests.histories import (
    SLOTS,
    Commit,
    Completed,
    GroupTombstone,
    Row,
    Step,
    Tombstone,
    Touch,
    encode,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ADMIN = Who("admin", "/admin", "")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def in_ms(seconds: float) -> int:
    return round(at(seconds).timestamp() * 1000)


def who(name: str) -> Who:
    return Who(name, f"/{name}", f"m-{name}")


def commit(
    offset: int, seconds: float, *, group: str = "billing", partition: int = 0, by: str = "a", topic: str = "orders",
    own_time: float | None = None, expires: float | None = None, metadata: str = "",
) -> Commit:  # fmt: skip
    row = Row(partition, offset, -1, None if own_time is None else in_ms(own_time), metadata)
    expiry_ms = None if expires is None else in_ms(expires)
    return Commit(group, in_ms(seconds), who(by), ((topic, (row,), expiry_ms),))


def touch(seconds: float, *, group: str = "billing", partition: int = 0, by: str = "a") -> Touch:
    return Touch(group, in_ms(seconds), who(by), (("orders", (partition,)),))


def deletion(seconds: float, *partitions: int, group: str = "billing") -> Tombstone:
    return Tombstone(group, in_ms(seconds), ADMIN, (("orders", partitions or (0,)),))


def expiry(seconds: float, *, group: str = "billing") -> GroupTombstone:
    return GroupTombstone(group, in_ms(seconds), Who("offsetd", "", ""))


def generation(seconds: float, *members: str, group: str = "billing") -> Completed:
    joined = tuple(GenerationMember(f"m-{name}", None, name, f"/{name}", 1, 1, b"", b"") for name in members)
    return Completed(group, in_ms(seconds), who("a"), Generation("consumer", 1, "range", None, joined))


def table(spark: "SparkSession", *steps: Step) -> "DataFrame":
    """Return a history of which each step is a batch of its own, written when the step was made."""
    return spark.createDataFrame(told([(step.time_ms, [step]) for step in steps]))


def told(batches: Sequence[tuple[int, Sequence[Step]]]) -> pa.Table:
    """Return the records of batches, as the readers of segments do; behind an opening, as every journal begins."""
    columns = Columns([0] * SLOTS)
    opening = [encode_opening(1, batches[0][0], "0.1.0")] if batches else []
    written = [(batches[0][0], opening)] if batches else []
    written += [(time_ms, [encode(step) for step in steps]) for time_ms, steps in batches]
    for number, (time_ms, entries) in enumerate(written, start=1):
        body = pack(">BI", 0xDD, len(entries)) + b"".join(entries)
        columns.add(Batch(number, 0, 0, 0, 1, len(entries), time_ms, body, 0, 0))
    return pa.Table.from_batches([plain(columns.take())], schema=schema())


def rows(frame: "DataFrame", *names: str) -> list[tuple[Any, ...]]:
    """Return some columns; times as seconds after noon."""
    found = []
    for row in frame.select(*names).collect():
        values = (each.astimezone(UTC) - NOON if isinstance(each, datetime) else each for each in row)
        found.append(tuple(each.total_seconds() if isinstance(each, timedelta) else each for each in values))
    return found
