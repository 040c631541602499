"""Sealing as the daemon sees it: when to start the sealer and how it went. Never two at once, never in the loop.

What the sealer does is in `seal`. Nothing that is served depends on it, so a failure is told, and tried again later.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from offsetd.history.sealer import BUSY
from offsetd.journal.files import OsFiles
from offsetd.journal.history import HistorySegment, list_history
from offsetd.journal.segment import Damage, NewerFormat, load_header
from offsetd.journal.worker import Worker

logger = structlog.get_logger(__name__)

#: Released segments that are worth sealing before the oldest has waited long: they make a file or more of full size.
_WORTH_BYTES: Final = 64 * 1024 * 1024
_REST_MS_MAX: Final = 3_600_000
_NEEDED: Final = ("numpy", "pyarrow")


class Counters(Protocol):
    """Where sealing shows how it does."""

    compaction_runs: int
    sealing_runs: int
    sealing_failures: int
    sealing_last_success_ms: int
    sealing_seconds: float
    sealing_files: int
    sealing_bytes: int
    sealing_records: int


def missing() -> str | None:
    """Return what sealing needs and this Python does not have. Nothing is imported: the daemon itself needs none."""
    return next((name for name in _NEEDED if find_spec(name) is None), None)


class Sealing:
    """The released segments of one broker, and the runs that seal them."""

    def __init__(
        self,
        *,
        data: Path,
        broker_id: int,
        history: Path,
        observed: Counters,
        clock: Callable[[], int],
        max_lag_ms: int,
        rest_ms: int,
    ) -> None:
        self._data = data
        self._broker_id = broker_id
        self._history = history
        self._observed = observed
        self._clock = clock
        self._max_lag_ms = max_lag_ms
        self._rest_ms = min(rest_ms, _REST_MS_MAX)
        self._task: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._stopped = False
        # Segments are released by compactions alone, so that the directory is looked at only after one.
        self._compactions_seen = -1
        self._due_ms: int | None = None
        self._failed_in_a_row = 0
        self._rest_until_ms: int | None = None

    def consider(self, now_ms: int, *, disk_full: bool = False) -> bool:
        """Start a run if one is due; return whether it was started. On a full disk there is no room to write."""
        if self._stopped or self._task is not None or disk_full or self._resting(now_ms):
            return False
        if self._compactions_seen != self._observed.compaction_runs:
            self._compactions_seen = self._observed.compaction_runs
            self._due_ms = self._when_due(now_ms)
        if self._due_ms is None or now_ms < self._due_ms:
            return False
        worker = self._worker = Worker()
        task = self._task = asyncio.get_running_loop().create_task(self._run(worker))
        task.add_done_callback(self._ended)
        return True

    async def stop(self) -> None:
        """End a run that is under way. It is safe to kill: the next one goes on where it was."""
        self._stopped = True
        task, worker = self._task, self._worker
        if task is None or worker is None:
            return
        worker.end()
        with suppress(asyncio.CancelledError):
            await task

    def _when_due(self, now_ms: int) -> int | None:
        segments = list_history(self._history)
        if not segments:
            return None
        if sum(segment.size_bytes for segment in segments) >= _WORTH_BYTES:
            return now_ms
        # From its creation, so that a daemon that is often restarted seals too, but never later than from now.
        return min(_created_ms(segments[0]) or now_ms, now_ms) + self._max_lag_ms

    async def _run(self, worker: Worker) -> None:
        # Asked again after it: what a compaction releases meanwhile may be missed by this run.
        self._compactions_seen = -1
        ended = await worker.run(
            "offsetd.history.sealer", ["--data", str(self._data), "--broker-id", str(self._broker_id)]
        )
        told = _parse(ended.said)
        self._count(told)
        if self._stopped and ended.code != 0:
            logger.info("sealing_stopped")
        elif ended.code == BUSY:
            self._rest_until_ms = self._clock() + self._rest_ms
            logger.info("sealing_postponed", reason=ended.complaint, next_try_ms=self._rest_ms)
        elif ended.code != 0 or not told:
            self._fail(ended.complaint, ended.code, told)
        else:
            observed = self._observed
            observed.sealing_runs += 1
            observed.sealing_last_success_ms = self._clock()
            observed.sealing_seconds = told["seconds"]
            self._failed_in_a_row = 0
            logger.info("sealing_done", **told)

    def _count(self, told: dict[str, Any]) -> None:
        self._observed.sealing_files += told.get("files", 0)
        self._observed.sealing_bytes += told.get("bytes", 0)
        self._observed.sealing_records += told.get("records", 0)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = self._worker = None
        if not task.cancelled() and (error := task.exception()) is not None:
            # Not the sealer's failure but ours; the daemon lives, and the metric and the log tell.
            self._fail(repr(error), None, {})

    def _resting(self, now_ms: int) -> bool:
        # A clock that was set back must not make the rest longer than it was meant to be.
        until = self._rest_until_ms
        return until is not None and until - _REST_MS_MAX <= now_ms < until

    def _fail(self, reason: str, code: int | None, told: dict[str, Any]) -> None:
        self._observed.sealing_failures += 1
        # Twice as long each time: what is wrong is most often a damaged segment or a disk, which wait for a person.
        rest_ms = min(self._rest_ms << min(self._failed_in_a_row, 16), _REST_MS_MAX)
        self._failed_in_a_row += 1
        self._rest_until_ms = self._clock() + rest_ms
        logger.error("sealing_failed", exit_code=code, reason=reason, next_try_ms=rest_ms, **told)


def _created_ms(segment: HistorySegment) -> int | None:
    try:
        return load_header(partial(OsFiles().read, segment.path), path=segment.path).created_ms
    except (Damage, NewerFormat, OSError):
        return None  # for the sealer to judge


def _parse(said: bytes) -> dict[str, Any]:
    try:
        told = json.loads(said)
    except ValueError:
        return {}
    return told if isinstance(told, dict) and isinstance(told.get("seconds"), float | int) else {}
