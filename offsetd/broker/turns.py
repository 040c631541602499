"""The order of replies on one connection: requests may overlap, replies leave in the order of the requests.

A read is evaluated when its turn to reply comes, never when it is decoded, so that a fetch sent behind a commit on the
same connection sees that commit; and never while the peer takes no replies, so that none pile up.
"""

from collections import deque
from collections.abc import Callable
from typing import NoReturn

#: What a request takes in memory, whatever its own size.
REQUEST_BYTES_LEAST = 512


class Turn:
    """One request's place in the order."""

    __slots__ = ("held_bytes", "parked", "read", "reply")

    def __init__(self, reply: bytes | None = None, read: "Callable[[Turn], bytes | None] | None" = None) -> None:
        self.reply = reply
        # Makes the reply when the turn has come; answers None if it will say `done` or `resume` later.
        self.read = read
        # Goes on with the reply when a wait is over. Kept here and not with the timer, so that it goes with the client.
        self.parked: Callable[[Turn], bytes | None] | None = None
        # What the request takes in memory; the connection says so where it is more than the least.
        self.held_bytes = REQUEST_BYTES_LEAST

    def drop(self) -> None:
        """Let go of all that was kept for the reply: nobody waits for it any more."""
        self.parked = self.read = self.reply = None


def _raise(error: Exception) -> NoReturn:
    raise error


class Turns:
    """The requests of one connection that have not been answered yet."""

    __slots__ = ("_drained", "_failed", "_send", "blocked", "queue")

    def __init__(
        self,
        send: Callable[[bytes], None],
        drained: Callable[[], None],
        failed: Callable[[Exception], None] = _raise,
    ) -> None:
        self.queue: deque[Turn] = deque()
        self._send = send
        self._drained = drained
        # Hears of a read that failed; it may be others' replies that brought its turn, and they go on.
        self._failed = failed
        # No reads are evaluated for the time being.
        self.blocked = False

    def reply(self, reply: bytes) -> None:
        """Answer a request that needs no waiting."""
        if self.queue:
            self.queue.append(Turn(reply))
        else:
            self._send(reply)

    def read(self, read: Callable[[Turn], bytes | None]) -> None:
        """Answer a read, now or when its turn comes."""
        turn = Turn(None, read)
        self.queue.append(turn)
        if self.queue[0] is turn:
            self._drain()

    def resume(self, turn: Turn, read: Callable[[Turn], bytes | None]) -> None:
        """Go on with a read whose turn has come but which could not be answered at once."""
        turn.read = read
        if self.queue and self.queue[0] is turn:
            self._drain()
            self._drained()

    def unpark(self, turn: Turn) -> None:
        """Go on with a read whose wait is over, unless its client is gone."""
        if turn.parked is not None:
            self.resume(turn, turn.parked)

    def hurry(self) -> None:
        """End the wait of the read whose turn it is."""
        if self.queue:
            self.unpark(self.queue[0])

    def wait(self, turn: Turn) -> None:
        """Take a place for a request whose reply comes later through `done`."""
        self.queue.append(turn)

    def done(self, turn: Turn, reply: bytes) -> None:
        """Give a waiting request its reply, and send all whose turn has come."""
        queue = self.queue
        if queue and queue[0] is turn:
            queue.popleft()
            self._send(reply)
            if queue:
                self._drain()
            self._drained()
        else:
            turn.reply = reply

    def block(self) -> None:
        """Evaluate no more reads for the time being."""
        self.blocked = True

    def unblock(self) -> None:
        """Go on with the reads whose turn has come."""
        self.blocked = False
        self._drain()

    def drop(self) -> None:
        """Forget all: the client is gone. What is on its way through the log completes without it."""
        for turn in self.queue:
            turn.drop()
        self.queue.clear()

    def _drain(self) -> None:
        queue = self.queue
        while queue:
            turn = queue[0]
            reply = turn.reply
            if reply is None:
                read = turn.read
                if read is None or self.blocked:
                    return
                turn.read = None
                try:
                    reply = read(turn)
                except Exception as error:  # noqa: BLE001  (whose fault it is, the connection tells)
                    self.drop()
                    self._failed(error)
                    return
                if reply is None:
                    return
            queue.popleft()
            self._send(reply)
