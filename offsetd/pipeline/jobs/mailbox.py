"""What waits to be committed: of each group the newest position only, so that a slow broker costs no memory."""

import threading
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from offsetd.pipeline.jobs.position import QueryPosition

#: Groups that may wait at once. A driver has a handful of named queries; this many is a fault of the program.
GROUPS_MAX: Final = 10_000

#: Finds a position when its turn comes: what has to read a checkpoint does not do so in Spark's thread.
Finding: TypeAlias = Callable[[], QueryPosition | None]
Work: TypeAlias = QueryPosition | Finding


class Mailbox:
    """Filled by Spark's threads, emptied by one of ours."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, QueryPosition] = {}
        self._findings: dict[str, Finding] = {}
        self._newest: dict[str, tuple[str, int]] = {}
        self._busy = False
        self._closed = False

    def begin(self, group: str) -> None:
        """Hear that a query starts: its batches may count from an earlier one than those of the run before."""
        with self._changed:
            self._newest.pop(group, None)

    def put(self, position: QueryPosition) -> bool:
        """Take a position in place of the one that waits; False if it is older than what was heard, or too many do."""
        with self._changed:
            query_id, batch_id = self._newest.get(position.group, ("", -1))
            if query_id == position.query_id and position.batch_id < batch_id:
                return False
            if position.group not in self._waiting and len(self._waiting) >= GROUPS_MAX:
                return False
            self._newest[position.group] = (position.query_id, position.batch_id)
            self._waiting[position.group] = position
            self._changed.notify_all()
            return True

    def put_finding(self, group: str, finding: Finding) -> None:
        """Take something that finds a position when it is its turn."""
        with self._changed:
            if group in self._findings or len(self._findings) < GROUPS_MAX:
                self._findings[group] = finding
                self._changed.notify_all()

    def put_back(self, position: QueryPosition) -> None:
        """Let a position wait again that could not be committed, unless a newer one has come."""
        with self._changed:
            self._waiting.setdefault(position.group, position)

    def take(self) -> Work | None:
        """Wait for something to do, and return it; None when the mailbox is closed."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._waiting or self._findings)
            if self._closed:
                return None
            self._busy = True
            # Findings first: what they find is older than what waits, or the same.
            if self._findings:
                return self._findings.pop(next(iter(self._findings)))
            return self._waiting.pop(next(iter(self._waiting)))

    def pause(self, pause_s: float) -> None:
        """Wait before another attempt, not longer than until the mailbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, timeout=pause_s)

    def wait_until_empty(self, timeout_s: float) -> bool:
        """Return whether everything that was put in has been dealt with, waiting for it if need be."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._busy or self._waiting or self._findings), timeout=deadline - time.monotonic()
            )

    def close(self) -> None:
        """Let `take` return None from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
