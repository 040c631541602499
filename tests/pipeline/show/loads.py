"""A small load for tests of what people see of it."""

from datetime import UTC, datetime
from typing import Final

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.plan import Check, Plan, Range, Reason
from offsetd.pipeline.load.summary import Summary

RANGES: Final = (
    Range(topic="orders", partition=0, start=1_000, end=3_500, reason=Reason.MANIFEST),
    Range(topic="orders", partition=1, start=0, end=40, reason=Reason.EARLIEST),
)
IDLE: Final = (Range(topic="audit", partition=0, start=7, end=7, reason=Reason.COMMITTED),)


def plan(group: str | None = "lake", *, ranges: tuple[Range, ...] = RANGES) -> Plan:
    """Return a plan of two partitions with news and one without."""
    return Plan(
        group=group,
        out="/lake/events",
        number=7,
        ranges=ranges,
        idle=IDLE,
        positions={item.key: item.end for item in (*ranges, *IDLE)},
        checks={"orders": Check.EXACT},
        ends={item.key: item.end for item in ranges},
    )


def summary(planned: Plan | None = None, *, committed: bool = True, unparsed: int = 0) -> Summary:
    """Return a load that brought all but five records of its plan."""
    planned = planned or plan()
    rows = {item.key: item.records for item in planned.ranges}
    if rows:
        rows[RANGES[0].key] -= 5
    return Summary(
        plan=planned,
        rows=rows,
        files=len(planned.ranges),
        bytes=1_536,
        stages=(("plan", 0.5), ("write", 4.0), ("publish", 0.5)),
        lag_before={item.key: item.records for item in planned.ranges},
        lag_after={TopicPartition("orders", 0): 12, TopicPartition("audit", 0): 0},
        committed=committed,
        started_at=datetime(2026, 11, 18, 14, 5, tzinfo=UTC),
        checked={"orders": Check.BOUNDS},
        unparsed=unparsed,
    )
