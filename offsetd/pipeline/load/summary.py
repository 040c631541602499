"""What a load did, for people, reports and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.plan import Check, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The end of a load: its plan, what was written, how long it took, and where the group stands."""

    plan: Plan
    rows: Mapping[TopicPartition, int]
    """By partition of the plan's ranges; fewer than the range has offsets where offsets are empty."""
    files: int
    bytes: int
    stages: tuple[tuple[str, float], ...]
    """Names and seconds, in order."""
    lag_before: Mapping[TopicPartition, int]
    lag_after: Mapping[TopicPartition, int]
    """Against the log's end as it was after the load."""
    committed: bool
    """Whether offsetd knows it."""
    started_at: datetime
    """In UTC."""
    checked: Mapping[str, Check] = field(default_factory=dict)
    """By topic, the check that was made in the end."""
    unparsed: int = 0
    """Rows whose value could not be parsed, and is kept as it came."""

    @property
    def total_rows(self) -> int:
        """Rows of all partitions."""
        return sum(self.rows.values())

    @property
    def empty_offsets(self) -> int:
        """Offsets of the plan that brought no row: compacted away, aborted, or markers of transactions."""
        return self.plan.records - self.total_rows

    @property
    def seconds(self) -> float:
        """How long all stages took."""
        return sum(seconds for _, seconds in self.stages)

    @property
    def write_seconds(self) -> float:
        """How long Spark read and wrote; 0 when there was nothing to write."""
        return dict(self.stages).get("write", 0.0)
