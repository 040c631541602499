"""The same question to the same records: sealed, read by Spark alone and by `records`, and not sealed, read by ours."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from offsetd.bench.pipeline.journal import write_history
from offsetd.bench.pipeline.rounds import Contest, contest
from offsetd.history.seal import Done, seal
from offsetd.journal.directory import broker_directory
from offsetd.pipeline.history import records as read_records
from offsetd.pipeline.history import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLAIN: Final = "Spark on sealed files"
SEALED: Final = "records(), all sealed"
UNSEALED: Final = "records(), none sealed"
ONE_COLUMN: Final = "none sealed, one column"


def run_history(
    spark: "SparkSession", *, records: int, directory: Path, rounds: int, told: Callable[[str], None]
) -> Contest:
    """Count the commits and add up their offsets, again and again."""
    unsealed, sealed = directory / "unsealed", directory / "sealed"
    identity = write_history(unsealed, records)
    shutil.copytree(unsealed, sealed)
    done = Done()
    seal(broker_directory(sealed, 1), identity, done=done)
    files = broker_directory(sealed, 1).sealed
    told(f"history: {done.records:,} records in {done.segments} segments sealed as {done.files} files")

    register(spark)
    expected = _answer(spark.read.parquet(str(files)))

    def asks(frame: "Callable[[], DataFrame]") -> Callable[[], None]:
        def ask() -> None:
            found = _answer(frame())
            assert found == expected, f"{found} is not {expected}"

        return ask

    try:
        return contest(
            "history",
            {
                PLAIN: asks(lambda: spark.read.parquet(str(files))),
                SEALED: asks(lambda: read_records(spark, sealed)),
                UNSEALED: asks(lambda: read_records(spark, unsealed)),
                ONE_COLUMN: asks(lambda: spark.read.format("offsetd").schema("offset bigint").load(str(unsealed))),
            },
            records=done.records,
            rounds=rounds,
            told=told,
        )
    finally:
        shutil.rmtree(unsealed)
        shutil.rmtree(sealed)


def _answer(frame: "DataFrame") -> tuple[int, int]:
    found = frame.selectExpr("count(*)", "sum(offset)").collect()[0]
    return int(found[0]), int(found[1])
