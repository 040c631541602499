"""Reads that take more than a moment: a slice of one of them in each turn of the loop, so that nobody waits for them.

They are made one after the other, in the order in which their turns came, so that only one of them holds what it has
made so far.
"""

from collections import deque
from collections.abc import Callable

from offsetd.broker.turns import Turn, Turns
from offsetd.coordinator.slices import Slices
from protocol.wire import ProtocolError

#: How long to wait before looking again, when nobody could be sent a long reply.
_BLOCKED_SECONDS = 0.01


class ReplyTooLarge(ProtocolError):
    """Even the refusal of a request would be too large to be sent."""

    def __init__(self, *, limit_bytes: int) -> None:
        super().__init__(f"an answer, or a refusal of each partition asked for, takes over {limit_bytes} bytes")
        self.limit_bytes = limit_bytes


class LongReads:
    """The reads that did not end with their first slice."""

    def __init__(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        self._later = later
        self._queue: deque[tuple[Turns, Turn, Slices]] = deque()
        self._begun = False

    def read(self, turns: Turns, turn: Turn, slices: Slices) -> bytes | None:
        """Evaluate a read whose turn has come: now if one slice is enough, else when the others are done."""
        try:
            next(slices)
        except StopIteration as end:
            reply: bytes = end.value
            return reply
        self._queue.append((turns, turn, slices))
        if len(self._queue) == 1:
            self._later(0, self._step)
        return None

    def _step(self) -> None:
        turns, turn, slices = self._queue[0]
        if not self._begun and turns.blocked and not _is_gone(turns, turn):
            # What is made now could not be sent: another's turn. Only one that was begun is made to its end.
            self._queue.rotate(-1)
            self._later(_BLOCKED_SECONDS, self._step)
            return
        self._begun = True
        if self._is_over(turns, turn, slices):
            self._queue.popleft()
            self._begun = False
        if self._queue:
            self._later(0, self._step)

    @staticmethod
    def _is_over(turns: Turns, turn: Turn, slices: Slices) -> bool:
        if _is_gone(turns, turn):
            slices.close()
            return True
        try:
            next(slices)
        except StopIteration as end:
            # It may have to wait again, until it can be sent.
            turn.held_bytes += len(end.value)
            turns.resume(turn, lambda _, reply=end.value: reply)  # type: ignore[misc]
            return True
        except Exception as error:  # noqa: BLE001
            turns.resume(turn, _raising(error))
            return True
        return False


def _is_gone(turns: Turns, turn: Turn) -> bool:
    """Tell whether nobody waits for the reply any more."""
    return not turns.queue or turns.queue[0] is not turn


def _raising(error: Exception) -> Callable[[Turn], bytes]:
    """Return a read that fails, so that the connection hears of it in the usual way."""

    def fail(_: Turn) -> bytes:
        raise error

    return fail
