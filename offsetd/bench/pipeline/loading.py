"""The load beside Spark's own plain job from Kafka to Parquet: same session, same topic, same columns."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from offsetd.bench.pipeline.rounds import Contest, contest
from offsetd.pipeline.load.loader import load
from offsetd.pipeline.load.request import Request
from offsetd.pipeline.load.upstream import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS: Final = "offsetd pipeline load"
PLAIN: Final = "Spark's own job"
#: What Spark does, in either contestant; all else is the loader's own work.
_SPARKS_STAGES: Final = frozenset({"start", "write"})


@dataclass(slots=True, kw_only=True)
class Loading:
    """Both contestants, and what of ours was not Spark's work."""

    rounds: Contest
    own_shares: list[float] = field(default_factory=list)


def run_loading(
    spark: "SparkSession",
    *,
    kafka: str,
    offsets: str,
    topic: str,
    records: int,
    directory: Path,
    rounds: int,
    told: Callable[[str], None],
) -> Loading:
    """Load the whole topic again and again, each time into a table of its own and for a group of its own."""
    numbers: Iterator[int] = count()
    shares: list[float] = []

    def ours() -> None:
        number = next(numbers)
        out = directory / f"ours-{number}"
        summary = load(
            Request(
                group=f"bench-{number}", topics=Topics(names=(topic,)), out=str(out), upstream=kafka, offsets=offsets
            ),
            lambda: spark,
        )
        assert summary.total_rows == records, f"{summary.total_rows} of {records} rows were loaded"
        assert summary.committed, "a load that nobody knows of is not done"
        own = sum(seconds for name, seconds in summary.stages if name not in _SPARKS_STAGES)
        shares.append(own / summary.seconds)
        shutil.rmtree(out)

    def plain() -> None:
        out = directory / f"plain-{next(numbers)}"
        (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", kafka)
            .option("subscribe", topic)
            .option("includeHeaders", "true")
            .option("startingOffsets", "earliest")
            .option("endingOffsets", "latest")
            .load()
            .write.parquet(str(out))
        )
        shutil.rmtree(out)

    found = contest("load", {PLAIN: plain, OURS: ours}, records=records, rounds=rounds, told=told)
    return Loading(rounds=found, own_shares=shares[-rounds:])
