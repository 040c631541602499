"""The order of replies on one connection: requests may overlap, replies leave in the order of the requests.

A read is evaluated when its turn to reply comes, never when it is decoded, so that a fetch sent behind a commit on the
same connection sees that commit.
"""

from collections import deque
from collections.abc import Callable


class Turn:
    """One request's place in the order."""

    __slots__ = ("read", "reply")

    def __init__(self, reply: bytes | None = None, read: "Callable[[Turn], bytes | None] | None" = None) -> None:
        self.reply = reply
        # Makes the reply when the turn has come; answers None if it will say `done` later.
        self.read = read


class Turns:
    """The requests of one connection that have not been answered yet."""

    __slots__ = ("_drained", "_send", "queue")

    def __init__(self, send: Callable[[bytes], None], drained: Callable[[], None]) -> None:
        self.queue: deque[Turn] = deque()
        self._send = send
        self._drained = drained

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

    def _drain(self) -> None:
        queue = self.queue
        while queue:
            turn = queue[0]
            reply = turn.reply
            if reply is None:
                read = turn.read
                if read is None:
                    return
                turn.read = None
                reply = read(turn)
                if reply is None:
                    return
            queue.popleft()
            self._send(reply)
