"""A consumer of a blocking library in a thread of its own, which polls it as an application does, and between two polls
does what it is told. So the library is never used by two threads at a time.
"""

import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from tests.clients.program import Row


class Polled:
    """What the consumer is about, and the calls that wait for it."""

    def __init__(self, poll: Callable[[], None], assignment: Callable[[], Iterable[Any]]) -> None:
        self._poll = poll
        self._assignment = assignment
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any], bool]] = queue.SimpleQueue()
        self._owned: list[Row] = []
        self._assignments = 0
        self._error: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def assigned(self) -> None:
        """Count an assignment; the library's listener calls it."""
        self._assignments += 1

    def look(self) -> dict[str, Any]:
        """Tell what it owns, how often it was assigned partitions, and the error that ended it."""
        return {"owned": self._owned, "assignments": self._assignments, "error": self._error}

    def call(self, work: Callable[[], Any]) -> Any:
        """Do something between two polls."""
        return self._put(work, is_last=False).result()

    def end(self, work: Callable[[], Any]) -> None:
        """Do a last thing, and poll no more."""
        self._put(work, is_last=True).result()
        self._thread.join()

    def _put(self, work: Callable[[], Any], *, is_last: bool) -> "Future[Any]":
        future: Future[Any] = Future()
        self._calls.put((work, future, is_last))
        return future

    def _run(self) -> None:
        is_last = False
        while not is_last:
            # An application that failed polls no more, but can be asked.
            if self._error is None:
                self._step()
            try:
                work, future, is_last = self._calls.get(block=self._error is not None)
            except queue.Empty:
                continue
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001  whatever the library raises is what the test wants to see
                future.set_exception(error)

    def _step(self) -> None:
        try:
            self._poll()
            self._owned = sorted([one.topic, one.partition] for one in self._assignment())
        except Exception as error:  # noqa: BLE001
            self._error = f"{type(error).__name__}: {error}"
