"""Compaction as the daemon sees it: when to start the compactor and how it went. Never two at once, never in the loop.

What the compactor does is in `compact`. The daemon has closed the checkpoint before the first run is considered.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from offsetd.journal.checkpoint import directory_bytes
from offsetd.journal.history import size as history_size
from offsetd.journal.worker import Worker

logger = structlog.get_logger(__name__)

#: Segments handed to one run, so that the command line stays within what a system takes. The rest waits its turn.
_RUN_SEGMENTS_MAX: Final = 500


class Counters(Protocol):
    """Where compaction shows how it does."""

    compaction_runs: int
    compaction_failures: int
    compaction_last_success_ms: int
    compaction_seconds: float
    compaction_lag_bytes: int


@dataclass(frozen=True, slots=True)
class Sealed:
    """A segment that waits: how large it is, and when it was sealed."""

    size_bytes: int
    sealed_ms: int


def is_due(*, sealed_bytes: int, checkpoint_bytes: int, oldest_age_ms: int, min_ratio: float, max_lag_ms: int) -> bool:
    """Return whether sealed segments are worth folding: by their share of what is on disk, or by their age."""
    if sealed_bytes <= 0:
        return False
    return sealed_bytes / (sealed_bytes + checkpoint_bytes) > min_ratio or oldest_age_ms > max_lag_ms


class Compaction:
    """The sealed segments of one broker, and the runs that fold them."""

    def __init__(
        self,
        *,
        checkpoint: Path,
        cluster_id: str,
        history: Path | None,
        sealed_history: Path | None = None,
        observed: Counters,
        clock: Callable[[], int],
        min_ratio: float = 0.5,
        max_lag_ms: int = 600_000,
        backoff_ms: int = 15_000,
        history_ms: int = 7 * 24 * 3_600_000,
        history_bytes: int = 1 << 30,
    ) -> None:
        self._checkpoint = checkpoint
        self._cluster_id = cluster_id
        self._history = history
        self._sealed_history = sealed_history
        self._observed = observed
        self._clock = clock
        self._min_ratio = min_ratio
        self._max_lag_ms = max_lag_ms
        self._backoff_ms = backoff_ms
        self._history_ms = history_ms
        self._history_bytes = history_bytes
        self._sealed: dict[Path, Sealed] = {}
        self._task: asyncio.Task[bool] | None = None
        self._worker: Worker | None = None
        self._rest_until_ms: int | None = None
        self._stopped = False

    def add(self, path: Path, sealed_ms: int) -> None:
        """Hear of a sealed segment, in the order of the journal."""
        self._sealed[path] = Sealed(path.stat().st_size, sealed_ms)
        self._show_lag()

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._task is not None

    @property
    def lag_bytes(self) -> int:
        """Sealed bytes that wait."""
        return sum(sealed.size_bytes for sealed in self._sealed.values())

    @property
    def oldest_sealed_ms(self) -> int | None:
        """When the segment that waits longest was sealed."""
        return min((sealed.sealed_ms for sealed in self._sealed.values()), default=None)

    def consider(self, now_ms: int, *, disk_full: bool = False) -> bool:
        """Start a run if one is due; return whether it was started. A full disk makes it due at once."""
        if self._stopped or self._task is not None or self._resting(now_ms):
            return False
        if disk_full:
            due = bool(self._sealed) or self._history_bytes_kept() > 0
        elif not self._sealed:
            due = False
        else:
            due = is_due(
                sealed_bytes=self.lag_bytes,
                checkpoint_bytes=directory_bytes(self._checkpoint),
                oldest_age_ms=now_ms - (self.oldest_sealed_ms or now_ms),
                min_ratio=self._min_ratio,
                max_lag_ms=self._max_lag_ms,
            )
        if due:
            self._start(disk_full=disk_full)
        return due

    async def run_now(self, *, disk_full: bool = False) -> bool:
        """Compact what is sealed, or wait for the run that is under way; return whether it ended well."""
        if self._stopped:
            return False
        task = self._task or self._start(disk_full=disk_full)
        # Shielded: whoever waits for a run may give up waiting without ending it.
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """End a run that is under way. It is safe to kill: the next one goes on where it was."""
        self._stopped = True
        task, worker = self._task, self._worker
        if task is None or worker is None:
            return
        worker.end()
        with suppress(asyncio.CancelledError):
            await task

    def _start(self, *, disk_full: bool) -> asyncio.Task[bool]:
        worker = self._worker = Worker()
        task = self._task = asyncio.get_running_loop().create_task(self._run(worker, disk_full=disk_full))
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._task = self._worker = None
        if not task.cancelled() and (error := task.exception()) is not None:
            # Not the compactor's failure but ours; the daemon lives, and the metric and the log tell.
            self._fail(repr(error), None)

    async def _run(self, worker: Worker, *, disk_full: bool) -> bool:
        paths = list(self._sealed)[:_RUN_SEGMENTS_MAX]
        ended = await worker.run("offsetd.journal.compactor", self._arguments(paths, disk_full=disk_full))
        self._forget_released(paths)
        if self._stopped and ended.code != 0:
            logger.info("compaction_stopped", segments=len(paths))
            return False
        told = _parse(ended.said) if ended.code == 0 else None
        if told is None:
            self._fail(ended.complaint, ended.code)
            return False
        observed = self._observed
        observed.compaction_runs += 1
        observed.compaction_last_success_ms = self._clock()
        observed.compaction_seconds = told["seconds"]
        if ended.complaint:
            told["remarks"] = ended.complaint
        # On a full disk the next run begins when this one's room has been tried, and not at the next tick.
        self._rest_until_ms = self._clock() + self._backoff_ms if disk_full else None
        logger.info("compaction_done", lag_bytes=self.lag_bytes, disk_full=disk_full, **told)
        return True

    def _arguments(self, paths: list[Path], *, disk_full: bool) -> list[str]:
        arguments = ["--checkpoint", str(self._checkpoint), f"--cluster-id={self._cluster_id}"]
        if self._history is not None:
            arguments += ["--history", str(self._history)]
            arguments += ["--history-ms", str(self._history_ms), "--history-bytes", str(self._history_bytes)]
        if self._sealed_history is not None:
            arguments += ["--sealed", str(self._sealed_history)]
        if disk_full:
            arguments.append("--disk-full")
        return [*arguments, "--", *map(str, paths)]

    def _forget_released(self, paths: list[Path]) -> None:
        for path in paths:
            if not path.exists():
                del self._sealed[path]
        self._show_lag()

    def _show_lag(self) -> None:
        self._observed.compaction_lag_bytes = self.lag_bytes

    def _history_bytes_kept(self) -> int:
        return 0 if self._history is None else history_size(self._history, self._sealed_history).total_bytes

    def _resting(self, now_ms: int) -> bool:
        # A clock that was set back must not make the rest longer than it was meant to be.
        until = self._rest_until_ms
        return until is not None and until - self._backoff_ms <= now_ms < until

    def _fail(self, reason: str, code: int | None) -> None:
        self._observed.compaction_failures += 1
        self._rest_until_ms = self._clock() + self._backoff_ms
        logger.error("compaction_failed", exit_code=code, reason=reason, next_try_ms=self._backoff_ms)


def _parse(said: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(said)
    except ValueError:
        return None
    return told if isinstance(told, dict) and isinstance(told.get("seconds"), float | int) else None
