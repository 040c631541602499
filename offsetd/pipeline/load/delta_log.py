"""The log of a Delta table as a load needs it: the newest load, one transaction, and what became of loads since.

Delta's own transaction is used from Java, where it lives: Spark's DataFrame writer puts neither files that were
verified before nor positions into a commit. Actions cross over as JSON, in the words of Delta's open protocol.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from offsetd.pipeline.load import manifest as manifests
from offsetd.pipeline.load.delta_actions import APP, DOMAIN, mark
from offsetd.pipeline.load.manifest import Manifest
from offsetd.pipeline.load.refusal import LoadRefused
from offsetd.pipeline.load.table import delta_directory, sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: What tables are made with: a place for positions in the log, and statistics of the columns that loads are found by.
_PROPERTIES: Final = {
    "delta.feature.domainMetadata": "supported",
    "delta.dataSkippingStatsColumns": "load,partition,offset,timestamp",
}
_PARTITIONED_BY: Final = ("topic", "day")


class DeltaLog:
    """The log of the table in a directory, where there is one."""

    def __init__(self, spark: "SparkSession", out: Path) -> None:
        self.out = out
        self.directory = delta_directory(out)
        self._spark = spark
        self._jvm: Any = spark._jvm  # noqa: SLF001  # Delta shows its transactions to Java only
        self._log: Any = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            spark._jsparkSession,  # noqa: SLF001
            str(out),
        )

    # --- what is there ----------------------------------------------------------------------------------------------

    def newest(self) -> Manifest | None:
        """Return the newest load."""
        return self._manifest(self._snapshot())

    def is_foreign(self) -> bool:
        """Return whether the table holds data that no load has brought."""
        snapshot = self._snapshot()
        return self._manifest(snapshot) is None and int(snapshot.numOfFiles()) > 0

    def schema(self) -> "StructType":
        """Return the table's columns."""
        from pyspark.sql.types import StructType  # noqa: PLC0415

        return StructType.fromJson(json.loads(self._snapshot().metadata().schemaString()))

    def properties(self) -> dict[str, str]:
        """Return the table's properties."""
        configuration = self._snapshot().metadata().configuration()
        return dict(self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(configuration))

    def holds(self, number: int) -> bool:
        """Return whether the table's present state comes after a load, rather than from before it by RESTORE.

        RESTORE brings rows back to what they were, and leaves positions as they are.
        """
        return stands(self.directory, int(self._snapshot().version()), number)

    def rows(self, version: int | None = None) -> "DataFrame":
        """Return the rows, of a version if one is named."""
        reader = self._spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(str(self.out))

    # --- what is written --------------------------------------------------------------------------------------------

    def create(self, schema: "StructType") -> None:
        """Make an empty table."""
        empty = self._spark.createDataFrame([], schema).write.format("delta")
        empty.options(**_PROPERTIES).partitionBy(*_PARTITIONED_BY).mode("errorifexists").save(str(self.out))

    def begin(self) -> "Transaction":
        """Begin a transaction of the table as it is now."""
        none = self._jvm.scala.Option.empty()
        return Transaction(self, self._jvm, self._log.startTransaction(none, none))

    def _snapshot(self) -> Any:
        none = self._jvm.scala.Option.empty()
        return self._log.update(False, none, none)  # noqa: FBT003  # Java has no names

    def _manifest(self, snapshot: Any) -> Manifest | None:
        for domain in self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(snapshot.domainMetadata()):
            if domain.domain() == DOMAIN and not domain.removed():
                return manifests.decode(domain.configuration(), f"the Delta log of {self.out}")
        return None


class Transaction:
    """One transaction. It is refused if another load has committed since it was begun."""

    def __init__(self, log: DeltaLog, jvm: Any, transaction: Any) -> None:
        self._log = log
        self._jvm = jvm
        self._transaction = transaction
        #: Reading it is what makes Delta refuse this transaction when another one sets it.
        self.number = max(int(transaction.txnVersion(APP)), 0)
        self.version = int(transaction.snapshot().version())

    def removals(self, paths: Iterable[str]) -> list[Any]:
        """Return the actions that take files out of the table; after that, any change by others is a conflict.

        Raises:
            LoadRefused: the log knows a file by another name.
        """
        from pyspark.sql.functions import col  # noqa: PLC0415

        self._transaction.readWholeTable()
        wanted = set(paths)
        files = self._transaction.snapshot().allFiles().filter(col("path").isin(list(wanted))._jc)  # noqa: SLF001
        found = [file.remove() for file in files.collectAsList()]
        if len(found) != len(wanted):
            raise LoadRefused(
                f"the Delta log of {self._log.out} names {len(found)} of {len(wanted)} files that are to be replaced. "
                "Nothing was published."
            )
        return found

    def commit(self, actions: Sequence[str], removals: Sequence[Any], number: int) -> None:
        """Commit, and have the disk keep it."""
        jvm = self._jvm
        read = [jvm.org.apache.spark.sql.delta.actions.Action.fromJson(action) for action in actions]
        none = jvm.scala.Option.empty()
        write = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
        operation = write(jvm.org.apache.spark.sql.SaveMode.Append, none, none, jvm.scala.Option.apply(mark(number)))
        version = int(self._transaction.commit(self._sequence([*read, *removals]), operation))
        self._sync(version)

    def _sequence(self, items: Iterable[Any]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for item in items:
            found.add(item)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()

    def _sync(self, version: int) -> None:
        """Sync what Delta leaves to the page cache: our commit, and those of others since the version that was read."""
        for each in range(max(self.version, 0), version + 1):
            with suppress(FileNotFoundError):
                sync(_commit_file(self._log.directory, each))
        sync(self._log.directory)


def stands(log: Path, version: int, number: int) -> bool:
    """Return whether a version of a table comes after the commit of a load, following what RESTORE has skipped."""
    restored = False
    while version >= 0:
        info = _commit_info(_commit_file(log, version))
        if info is None:
            # Delta forgets commits after a month, and nobody restores what is forgotten.
            return not restored
        if info.get("userMetadata") == mark(number):
            return True
        if info.get("operation") == "RESTORE":
            target = info.get("operationParameters", {}).get("version")
            if target is None:
                return False  # by time; which version that was, the log does not say
            restored, version = True, int(target)
        else:
            version -= 1
    return False


def _commit_file(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _commit_info(path: Path) -> dict[str, Any] | None:
    try:
        with path.open() as lines:
            for line in lines:
                found = json.loads(line).get("commitInfo")
                if found is not None:
                    return dict(found)
    except FileNotFoundError:
        return None
    return {}
