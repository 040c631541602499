"""Where a load goes to: what a kind of table must be able to do, and the one of plain Parquet files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from offsetd.client.position import TopicPartition
from offsetd.failpoint import failpoint
from offsetd.pipeline.load.footers import read_files
from offsetd.pipeline.load.manifest import DataFile, Manifest
from offsetd.pipeline.load.plan import Check, Plan
from offsetd.pipeline.load.refusal import BadRequest
from offsetd.pipeline.load.steps import Steps
from offsetd.pipeline.load.table import Table, delta_directory
from offsetd.pipeline.load.verify import verify
from offsetd.pipeline.load.watch import watching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A load on its way: what its manifest will say but for what is found in the files."""

    plan: Plan
    writer: str
    created_at: str
    value_format: str
    exact: bool

    @property
    def day(self) -> str:
        """The day of the load, UTC, which all its rows carry."""
        return self.created_at[:10]

    def manifest(
        self,
        rows: Mapping[TopicPartition, int],
        checks: Mapping[str, Check],
        files: tuple[DataFile, ...],
    ) -> Manifest:
        """Return the manifest."""
        return Manifest(
            number=self.plan.number,
            group=self.plan.group,
            writer=self.writer,
            created_at=self.created_at,
            value_format=self.value_format,
            ranges=self.plan.ranges,
            rows=rows,
            positions=self.plan.positions,
            checks=checks,
            files=files,
            skipped=self.plan.skipped,
            supersedes=self.plan.supersedes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a load has put into the table."""

    rows: Mapping[TopicPartition, int]
    checks: Mapping[str, Check]
    files: int
    bytes: int
    unparsed: int


class Sink(Protocol):
    """A table that loads go to."""

    def newest(self) -> Manifest | None:
        """Return the newest load."""

    def live(self) -> list[Manifest]:
        """Return all loads that no other one replaces, oldest first."""

    def put_right(self) -> list[str]:
        """Finish or clear away what earlier runs left undone; return what was done, in sentences."""

    def store(self, frame: "DataFrame | None", draft: Draft, steps: Steps) -> Stored:
        """Write, verify and publish a load, all or nothing; no frame if it has no records.

        Raises:
            NotVerified: what was written is not what was planned.
            Outrun: another loader was first.
        """


class ParquetSink:
    """A directory of plain Parquet files."""

    def __init__(self, out: str) -> None:
        self.table = Table(out)

    def newest(self) -> Manifest | None:
        """Return the newest load.

        Raises:
            BadRequest: the table is of another kind.
        """
        if delta_directory(self.table.out).is_dir():
            raise BadRequest(f"{self.table.out} is a Delta table: say --format delta, or choose another --out.")
        return self.table.newest()

    def live(self) -> list[Manifest]:
        """Return all loads that no other one replaces."""
        return self.table.live()

    def put_right(self) -> list[str]:
        """Move replaced loads away, and sweep what loaders that ended have left."""
        done = [f"load {number} was replaced, and is moved away now." for number in self.table.settle()]
        swept = self.table.sweep()
        if swept:
            done.append(f"removed {swept} unfinished loads of earlier runs from {self.table.staging}.")
        return done

    def store(self, frame: "DataFrame | None", draft: Draft, steps: Steps) -> Stored:
        """Write to staging, hold the files against the plan, and publish them by one rename."""
        with self.table.stage(draft.plan.number) as stage:
            manifest = write_verified(frame, stage, draft, steps)
            with steps.stage("publish"):
                self.table.publish(stage, manifest)
                self.table.settle()
        return stored(manifest)


def write_verified(frame: "DataFrame | None", stage: Path, draft: Draft, steps: Steps) -> Manifest:
    """Write to staging, hold the files against the plan, and return the manifest of what was found.

    Raises:
        NotVerified: what was written is not what was planned.
    """
    if frame is not None:
        with (
            steps.stage("write", draft.plan.records),
            watching(frame.sparkSession, steps.observer.progressed, stage),
        ):
            _write(frame, stage, draft)
    failpoint("load_written")
    with steps.stage("verify"):
        files = read_files(stage)
        verified = verify(draft.plan, files, exact=draft.exact)
    return draft.manifest(verified.rows, verified.checks, files)


def stored(manifest: Manifest) -> Stored:
    """Return what a published load has put into the table."""
    return Stored(
        rows=manifest.rows,
        checks=manifest.checks,
        files=len(manifest.files),
        bytes=sum(file.bytes for file in manifest.files),
        unparsed=sum(file.unparsed for file in manifest.files),
    )


def _write(frame: "DataFrame", stage: Path, draft: Draft) -> None:
    topics = {item.topic for item in draft.plan.ranges}
    if len(topics) > 1:
        frame.write.partitionBy("topic", "day").parquet(f"file://{stage}")
        return
    # All rows go to one directory: to name it spares Spark a look at the topic and the day of every row.
    place = stage / f"topic={topics.pop()}" / f"day={draft.day}"
    frame.drop("topic", "day").write.parquet(f"file://{place}")


def quick_writes(spark: "SparkSession") -> "SparkSession":
    """Return a session of the same Spark that writes directories by value without sorting the rows first."""
    session: SparkSession = spark.newSession()
    # A task reads one partition, so all its rows go to one directory, and there is nothing to sort.
    session.conf.set("spark.sql.maxConcurrentOutputFileWriters", "2")
    # Numbers that were text, and days that were dates, stay what they are when a load is read back.
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return session
