"""An import of many offsets by Spark, beside what a fresh broker takes of the same commits from the load generator."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from offsetd.bench.cell import generate
from offsetd.bench.server import DaemonProcess
from offsetd.pipeline.bulk.importing import import_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GROUP_PARTITIONS: Final = 10
_START_SECONDS_MAX: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Importing:
    """Offsets per second of both."""

    offsets: int
    import_seconds: float
    generator_offsets_per_second: float

    @property
    def offsets_per_second(self) -> float:
        """Return the rate of the import, with what Spark needs to plan and to shuffle it."""
        return self.offsets / self.import_seconds


def run_importing(spark: "SparkSession", *, offsets: int, directory: Path, told: Callable[[str], None]) -> Importing:
    """Import into one fresh broker, and load another one."""
    groups = offsets // _GROUP_PARTITIONS
    daemon = DaemonProcess(directory / "imported")
    try:
        daemon.wait_for("slots_loaded", _START_SECONDS_MAX)
        address = f"127.0.0.1:{daemon.port}"
        # A first small one, so that the job's own start is not what is measured.
        import_offsets(spark, _frame(spark, 10, "warm"), address)
        began = time.monotonic()
        summary, _ = import_offsets(spark, _frame(spark, groups, "import"), address)
        seconds = time.monotonic() - began
        assert summary.committed == groups * _GROUP_PARTITIONS, f"{summary} of {groups * _GROUP_PARTITIONS} offsets"
        told(f"import: {groups * _GROUP_PARTITIONS:,} offsets in {seconds:.1f} s")
    finally:
        daemon.kill()
    daemon = DaemonProcess(directory / "generated")
    try:
        daemon.wait_for("slots_loaded", _START_SECONDS_MAX)
        result = generate(
            daemon,
            operation="commit",
            partitions=_GROUP_PARTITIONS,
            groups=groups,
            connections=2,
            depth=16,
            warmup=0,
            seconds=600,
            requests=groups,
        )
    finally:
        daemon.kill()
    return Importing(
        offsets=groups * _GROUP_PARTITIONS,
        import_seconds=round(seconds, 3),
        generator_offsets_per_second=result.requests_per_second * _GROUP_PARTITIONS,
    )


def _frame(spark: "SparkSession", groups: int, prefix: str) -> "DataFrame":
    return spark.range(groups * _GROUP_PARTITIONS).selectExpr(
        f"concat('{prefix}-', id div {_GROUP_PARTITIONS}) as group",
        "'orders' as topic",
        f"cast(id % {_GROUP_PARTITIONS} as int) as partition",
        "id as offset",
    )
