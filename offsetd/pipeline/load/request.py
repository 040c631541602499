"""What is asked of a load."""

from dataclasses import dataclass, field
from enum import Enum

from offsetd.pipeline.load.reconcile import Choice
from offsetd.pipeline.load.refusal import BadRequest
from offsetd.pipeline.load.upstream import Topics
from offsetd.pipeline.load.value import Values


class TableFormat(Enum):
    """What kind of table a load goes to."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A load, as it was asked for."""

    group: str | None
    """None: the table belongs to no group, and offsetd is neither asked nor told."""
    topics: Topics
    out: str
    upstream: str
    """Bootstrap of the Kafka cluster that has the records."""
    offsets: str = "127.0.0.1:9092"
    """Bootstrap of the offsetd that has the group."""
    format: TableFormat = TableFormat.PARQUET
    values: Values = field(default_factory=Values)
    from_time_ms: int | None = None
    records_max: int | None = None
    split: int | None = None
    choice: Choice = Choice.STOP
    supersede: bool = False
    exact: bool = False
    """Refuse to publish if an offset brought no row."""
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.supersede and self.from_time_ms is None:
            raise BadRequest("--supersede replaces loads from a time on: say which with --from-time.")
        if self.supersede and self.records_max is not None:
            raise BadRequest("--supersede must reach as far as what it replaces: leave out --max-records.")
        if self.group == "":
            raise BadRequest("--group is empty: a group needs a name.")
        for name, value in (("--max-records", self.records_max), ("--split", self.split)):
            if value is not None and value < 1:
                raise BadRequest(f"{name} is {value}, want 1 or more.")
