"""Clocks that move only when a test says so, and the timers that hang on them."""

import heapq
import itertools
from collections.abc import Callable

NOW_MS = 1_800_000_000_000


class FakeTimer:
    """A call that will be made, unless it is cancelled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not make it."""
        self._callback = None

    def __call__(self) -> None:
        if self._callback is not None:
            self._callback()


class FakeClock:
    """Wall and monotonic time, together or apart; `later` is the loop's `call_later`."""

    def __init__(self, wall_ms: int = NOW_MS) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = 1_000_000
        self._timers: list[tuple[int, int, FakeTimer]] = []
        self._order = itertools.count()

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._wall_ms

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._monotonic_ms / 1000

    def later(self, seconds: float, callback: Callable[[], None]) -> FakeTimer:
        """Call back when so much time has passed."""
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self._monotonic_ms + int(seconds * 1000), next(self._order), timer))
        return timer

    def advance(self, ms: int) -> None:
        """Let time pass on both clocks, and run what falls due, each at its own moment."""
        end_ms = self._monotonic_ms + ms
        while self._timers and self._timers[0][0] <= end_ms:
            due_ms, _, callback = heapq.heappop(self._timers)
            self._pass(max(due_ms - self._monotonic_ms, 0))
            callback()
        self._pass(end_ms - self._monotonic_ms)

    def turn(self) -> int:
        """Run what is due now and no more, as one turn of the loop does; tell how much that was."""
        due = [timer for timer in self._timers if timer[0] <= self._monotonic_ms]
        self._timers = [timer for timer in self._timers if timer[0] > self._monotonic_ms]
        heapq.heapify(self._timers)
        for _, _, callback in sorted(due, key=lambda timer: timer[:2]):
            callback()
        return len(due)

    def jump(self, ms: int) -> None:
        """Set the wall clock forward or back; no time passes."""
        self._wall_ms += ms

    def _pass(self, ms: int) -> None:
        self._monotonic_ms += ms
        self._wall_ms += ms
