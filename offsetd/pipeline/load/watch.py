"""Watching Spark at work: how many records it has written, told to an observer while the job runs."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from offsetd.failpoint import failpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS: Final = 0.2


@contextmanager
def watching(spark: "SparkSession", progressed: Callable[[int], None], stage: Path | None = None) -> Iterator[None]:
    """Tell how many records jobs of this thread have written, for the length of a block.

    Args:
        stage: the directory they write to: the failpoint `load_writing` is passed once, when data stands there, or at
            the latest when they are done.
    """
    context = spark.sparkContext
    group = f"offsetd-{uuid.uuid4().hex}"
    context.setJobGroup(group, "offsetd pipeline load", interruptOnCancel=True)
    watcher = _Watcher(context, group, progressed, stage)
    watcher.start()
    try:
        yield
    finally:
        watcher.stop()
        context.setLocalProperty("spark.jobGroup.id", None)
    if watcher.failure is not None:
        raise watcher.failure
    watcher.pass_failpoint()


class _Watcher(threading.Thread):
    def __init__(self, context: Any, group: str, progressed: Callable[[int], None], stage: Path | None) -> None:
        super().__init__(name="offsetd-watch", daemon=True)
        self._context = context
        self._group = group
        self._progressed = progressed
        self._stage = stage
        self._ended = threading.Event()
        self._passed = False
        self.failure: OSError | None = None

    def run(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            if not self._passed and self._stage is not None and _has_data(self._stage):
                try:
                    self.pass_failpoint()
                except OSError as failure:
                    self.failure = failure
            self._tell()

    def stop(self) -> None:
        self._ended.set()
        self.join()
        # Between the last look and the end most of a small load is written.
        self._tell()

    def _tell(self) -> None:
        from py4j.protocol import Py4JError  # noqa: PLC0415

        # A JVM that is gone is noticed by whoever waits for its job.
        with suppress(Py4JError):
            self._progressed(self._records())

    def pass_failpoint(self) -> None:
        if not self._passed:
            self._passed = True
            failpoint("load_writing")

    def _records(self) -> int:
        tracker = self._context.statusTracker()
        store = self._context._jsc.sc().statusStore()  # noqa: SLF001  # Spark shows it to Java only
        stages = [stage for job in tracker.getJobIdsForGroup(self._group) for stage in _stages(tracker, job)]
        return sum(_written(store, stage) for stage in stages)


def _stages(tracker: Any, job: int) -> list[int]:
    info = tracker.getJobInfo(job)
    return [] if info is None else list(info.stageIds)


def _written(store: Any, stage: int) -> int:
    from py4j.protocol import Py4JError  # noqa: PLC0415

    try:
        return int(store.lastStageAttempt(stage).outputRecords())
    except Py4JError:
        return 0  # not begun, or forgotten already


def _has_data(directory: Path) -> bool:
    try:
        return any(path.is_file() and path.stat().st_size for path in directory.rglob("*.parquet"))
    except OSError:
        return False  # a task's file was moved to its place while we looked
