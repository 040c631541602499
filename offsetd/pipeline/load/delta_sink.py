"""A load into a Delta table: staged and verified as Parquet, then data and positions in one commit of the table's log.

    OUT/_staging/                    as of a Parquet table; Delta does not see names that begin with `_`
    OUT/load-000007-…/topic=…/day=…  the files of a load; without a commit that names them they are no part of the table

Between the move and the commit a load that is killed leaves files that nobody sees; VACUUM removes them, as it does for
any writer of Delta.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from offsetd.failpoint import failpoint
from offsetd.pipeline.load.delta_actions import actions
from offsetd.pipeline.load.delta_log import DeltaLog, Transaction
from offsetd.pipeline.load.manifest import Manifest
from offsetd.pipeline.load.plan import Range, Reason
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused
from offsetd.pipeline.load.sink import Draft, Stored, stored, write_verified
from offsetd.pipeline.load.steps import Steps
from offsetd.pipeline.load.table import Table, delta_directory, outrun, sync, sync_tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: Properties under which files must be written in ways that ours are not.
_BEYOND_US: Final = ("delta.columnMapping.mode", "delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2")
_OFF: Final = ("", "none", "false")


class DeltaSink:
    """A Delta table in a directory of this machine."""

    def __init__(self, out: str, session: Callable[[], "SparkSession"]) -> None:
        self.table = Table(out)
        self._session = session

    @property
    def out(self) -> Path:
        """The table's directory."""
        return self.table.out

    # --- what is there ----------------------------------------------------------------------------------------------

    def newest(self) -> Manifest | None:
        """Return the newest load.

        Raises:
            BadRequest: the table is not one of loads, or is of another kind.
            LoadRefused: RESTORE has taken rows of loads away.
        """
        if self.table.numbers():
            raise BadRequest(f"{self.out} holds loads as plain Parquet: leave out --format, or choose another --out.")
        if not delta_directory(self.out).is_dir():
            return None
        log = self._log()
        newest = log.newest()
        if newest is None and log.is_foreign():
            raise BadRequest(f"{self.out} is a Delta table with data that no load has brought: choose another --out.")
        if newest is not None and not log.holds(newest.number):
            raise LoadRefused(
                f"{self.out} was restored to a version before load {newest.number}. RESTORE takes rows back and leaves "
                "positions as they are, so the next load would leave a gap. Restore the table to a version from load "
                f"{newest.number} on (DESCRIBE HISTORY shows it in userMetadata), or load into a new table."
            )
        return newest

    def live(self) -> list[Manifest]:
        """Return what each load still has in the table, by its rows."""
        from pyspark.sql.functions import col, max, min  # noqa: A004, PLC0415

        found = self._log().rows().groupBy("load", "topic", "partition")
        bounds = found.agg(min("offset").alias("first"), max("offset").alias("last")).orderBy(col("load"))
        ranges: dict[int, list[Range]] = {}
        for row in bounds.collect():
            ranges.setdefault(row["load"], []).append(
                Range(
                    topic=row["topic"],
                    partition=row["partition"],
                    start=row["first"],
                    end=row["last"] + 1,
                    reason=Reason.MANIFEST,
                )
            )
        return [_of_rows(number, tuple(items)) for number, items in ranges.items()]

    def put_right(self) -> list[str]:
        """Sweep what loaders that ended have left."""
        swept = self.table.sweep()
        return [f"removed {swept} unfinished loads of earlier runs from {self.table.staging}."] if swept else []

    # --- a load -----------------------------------------------------------------------------------------------------

    def store(self, frame: "DataFrame | None", draft: Draft, steps: Steps) -> Stored:
        """Write to staging, hold the files against the plan, and commit them with the positions."""
        from pyspark.sql.functions import lit  # noqa: PLC0415

        number = draft.plan.number
        if frame is not None:
            frame = frame.withColumn("load", lit(number).cast("bigint"))
        with steps.stage("prepare"):
            log = self._log()
            self._prepare(log, frame)
            transaction = log.begin()
        if transaction.number != number - 1:
            raise outrun(number, transaction.number)
        with self.table.stage(number) as stage:
            manifest = write_verified(frame, stage, draft, steps)
            with steps.stage("publish"):
                self._publish(log, transaction, stage, draft, manifest)
        return stored(manifest)

    def _prepare(self, log: DeltaLog, frame: "DataFrame | None") -> None:
        """Make the table if it is the first load; else see whether it takes rows of ours."""
        with self.table.locked():
            if not delta_directory(self.out).is_dir():
                assert frame is not None, "the first load of a table has records"
                log.create(_table_schema(frame.schema))
                return
        _refuse_beyond_us(self.out, log.properties())
        if frame is not None:
            _refuse_other_columns(self.out, _table_schema(frame.schema), log.schema())

    def _publish(self, log: DeltaLog, transaction: Transaction, stage: Path, draft: Draft, manifest: Manifest) -> None:
        removals = self._removals(log, transaction, manifest)
        # Not below a name that begins with `_`: VACUUM would never look there.
        place = self.out / f"load-{stage.name}"
        stage.mkdir(exist_ok=True)
        sync_tree(stage)
        stage.rename(place)
        sync(self.out)
        failpoint("load_manifested")
        committed = actions(manifest, directory=place.name, day=draft.day, time_ms=round(place.stat().st_mtime * 1000))
        try:
            self._commit(log, transaction, committed, removals, manifest)
        except LoadRefused:
            shutil.rmtree(place, ignore_errors=True)
            raise
        failpoint("load_published")

    def _commit(
        self, log: DeltaLog, transaction: Transaction, committed: list[str], removals: list[Any], manifest: Manifest
    ) -> None:
        from py4j.protocol import Py4JError  # noqa: PLC0415
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            transaction.commit(committed, removals, manifest.number)
        except (PySparkException, Py4JError) as error:
            # An error says little of the commit: it may stand, and only what comes after it have failed.
            newest = log.newest()
            if newest is not None and newest.writer == manifest.writer:
                return
            if newest is not None and newest.number >= manifest.number:
                raise outrun(manifest.number, newest.number) from error
            if "Concurrent" in _java_class(error) or "Changed" in _java_class(error):
                raise LoadRefused(
                    f"another program changed the table {self.out} while load {manifest.number} was written. Nothing "
                    "of it was published; run again."
                ) from error
            raise

    def _removals(self, log: DeltaLog, transaction: Transaction, manifest: Manifest) -> list[Any]:
        """Return the actions that take the files of replaced loads out of the table."""
        if not manifest.supersedes:
            return []
        from pyspark.sql.functions import col, max, min  # noqa: A004, PLC0415

        oldest = manifest.supersedes[0]
        held = log.rows(transaction.version).groupBy(col("_metadata.file_path").alias("path"))
        bounds = held.agg(min("load").alias("oldest"), max("load").alias("newest")).where(col("newest") >= oldest)
        found = bounds.collect()
        mixed = sorted({row["oldest"] for row in found if row["oldest"] < oldest})
        if mixed:
            raise BadRequest(
                f"{self.out} has files that hold rows of load {mixed[-1]} and of load {oldest}, which is to be "
                f"replaced: OPTIMIZE has joined them. Nothing was published. Go back further with --from-time, to "
                f"before load {mixed[0]}, or load into a table of its own with --into."
            )
        return transaction.removals(_below(self.out, row["path"]) for row in found)

    def _log(self) -> DeltaLog:
        return DeltaLog(self._session(), self.out)


def _of_rows(number: int, ranges: tuple[Range, ...]) -> Manifest:
    return Manifest(
        number=number,
        group=None,
        writer="",
        created_at="",
        value_format="",
        ranges=ranges,
        rows={},
        positions={item.key: item.end for item in ranges},
        checks={},
    )


def _below(out: Path, uri: str) -> str:
    """Return a file's path as the log has it. Neither topics nor days nor Spark's names have anything to escape."""
    return Path(unquote(urlsplit(uri).path)).relative_to(out).as_posix()


def _table_schema(schema: "StructType") -> "StructType":
    """Return the table's columns: those of the rows, each of which may be missing, and the day as a date."""
    from pyspark.sql.types import DateType, StructField, StructType  # noqa: PLC0415

    return StructType(
        [StructField(field.name, DateType() if field.name == "day" else field.dataType) for field in schema.fields]
    )


def _refuse_other_columns(out: Path, ours: "StructType", theirs: "StructType") -> None:
    there = {field.name: field.dataType.simpleString() for field in theirs.fields}
    other = [
        f"{field.name}: {field.dataType.simpleString()}, and the table has {there.get(field.name, 'none of that name')}"
        for field in ours.fields
        if there.get(field.name) != field.dataType.simpleString()
    ]
    if other:
        raise BadRequest(
            f"the table {out} has other columns than this load. Was the schema of the values changed? Change the table "
            "likewise (ALTER TABLE ... ADD COLUMNS), or choose another --out.",
            other,
        )


def _refuse_beyond_us(out: Path, properties: dict[str, str]) -> None:
    found = [name for name in _BEYOND_US if properties.get(name, "") not in _OFF]
    found += [name for name in properties if name.startswith("delta.constraints.")]
    if found:
        raise BadRequest(
            f"the table {out} has {', '.join(found)} set, which files of a load do not heed. Unset it, or choose "
            "another --out."
        )


def _java_class(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    return "" if java is None else str(java.getClass().getName())
