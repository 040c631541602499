"""`report_progress`: every streaming query of a session becomes a group that lag tools can see."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from offsetd.pipeline.jobs.committer import Counts, PositionCommitter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMIT_TIMEOUT_S: Final = 10.0
RETRY_PAUSE_S: Final = 2.0
CLOSE_TIMEOUT_S: Final = 30.0


class ProgressReports:
    """Reports that run until `close`, or until the driver ends."""

    def __init__(self, session: "SparkSession", committer: PositionCommitter, listener: Any) -> None:
        self._session = session
        self._committer = committer
        self._listener = listener
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def counts(self) -> Counts:
        """What was heard and committed so far, and what failed last."""
        return self._committer.counts

    def repair(self, query_name: str, checkpoint: str) -> None:
        """Commit the position of a checkpoint: the truth about a query, also of one that does not run now."""
        self._listener.repair(query_name, checkpoint)

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until what has happened so far is committed; return whether it is.

        Spark delivers events some time after the fact, also after `awaitTermination` has returned. So this waits first
        for Spark to deliver what it holds, then for the broker.
        """
        deadline = time.monotonic() + timeout_s
        # Spark's own bus, which has no other name in Python: without this, an event could still be on its way to us.
        bus = self._session.sparkContext._jsc.sc().listenerBus()  # noqa: SLF001
        try:
            bus.waitUntilEmpty(int(timeout_s * 1000))
        except Exception as error:  # noqa: BLE001  # py4j's and Java's, not ours to name: a timeout, or another Spark
            self._committer.note_failure("Spark has not delivered all events of its queries", error)
            delivered = False
        else:
            delivered = True
        emptied = self._committer.mailbox.wait_until_empty(max(0.0, deadline - time.monotonic()))
        return delivered and emptied and self.counts.last_error is None

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Flush, and hear no more; return whether everything was committed."""
        if self._closed:
            return True
        self._closed = True
        flushed = self.flush(timeout_s)
        self._session.streams.removeListener(self._listener)
        self._committer.close()
        return flushed


def report_progress(
    spark: "SparkSession",
    bootstrap: str,
    *,
    checkpoints: Mapping[str, str] | None = None,
    allow_rewind: bool = False,
    commit_timeout_s: float = COMMIT_TIMEOUT_S,
    retry_pause_s: float = RETRY_PAUSE_S,
) -> ProgressReports:
    """Commit the position of every named streaming query of a session as the group ``spark.<query name>``.

    It is for display: the truth is the query's checkpoint, from which the group is repaired when the query starts and
    when it ends. An unreachable broker never hurts a query; the newest position is committed when it is back.

    Args:
        bootstrap: where offsetd, or any broker of Kafka's protocol, listens.
        checkpoints: checkpoint directories by query name, committed at once; for queries not named here the directory
            is learned from Spark when they start.
        allow_rewind: also move a group back, with a warning; otherwise what would go back is left where it is.
        commit_timeout_s: how long one commit is tried before it is put back to wait.
        retry_pause_s: the pause before it is tried again.

    Raises:
        ValueError: `bootstrap` is no address.
    """
    # Imported here: pyspark is not there without the extra.
    from offsetd.pipeline.jobs.listener import PositionListener  # noqa: PLC0415

    committer = PositionCommitter(
        bootstrap, allow_rewind=allow_rewind, commit_timeout_s=commit_timeout_s, retry_pause_s=retry_pause_s
    )
    listener = PositionListener(spark, committer, {})
    for name, place in (checkpoints or {}).items():
        listener.repair(name, place)
    spark.streams.addListener(listener)
    return ProgressReports(spark, committer, listener)
