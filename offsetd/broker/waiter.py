"""What is on its way through the log, and who waits for it."""

from collections.abc import Callable, Sequence
from typing import Any

from offsetd.broker.client import Client, Clock
from offsetd.broker.turns import REQUEST_BYTES_LEAST, Turn, Turns
from offsetd.log import Log
from offsetd.record import Entry, Kind, Who
from offsetd.table import SlotTable
from protocol.errors import Code


class Waiter(Turn):
    """A request, or part of a sweep, whose entry is on its way."""

    __slots__ = (
        "after",
        "answered",
        "appended",
        "entry",
        "group_id",
        "ready",
        "refuse",
        "started",
        "table",
        "time_ms",
        "topics",
        "turns",
        "who",
    )

    def __init__(self, table: SlotTable, group_id: str, time_ms: int, who: Who) -> None:
        self.read = None
        self.reply = None
        self.held_bytes = REQUEST_BYTES_LEAST
        self.parked = None
        self.table = table
        self.group_id = group_id
        self.time_ms = time_ms
        self.who = who
        # A commit brings its topics ready to apply; any other entry is applied as it was written.
        self.topics: Sequence[Any] | None = None
        self.entry: Entry | None = None
        self.turns: Turns | None = None
        self.ready = b""
        self.refuse: Callable[[Code], bytes] | None = None
        # Hears what became of an entry that is no commit, when it has been applied or refused.
        self.after: Callable[[Code], None] | None = None
        # When its request came in, for the latency, and when it was appended, for the time-out.
        self.started = 0.0
        self.appended = 0.0
        self.answered = False


class Waiters:
    """All that is between append and settled, by group and in order."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        # Entries on their way, by group: while there are any, a commit that repeats the applied state is no repetition.
        self.pending: dict[str, int] = {}
        # Of these, the groups whose newest entry removes them: they are as good as gone.
        self._removed: set[str] = set()
        self._unsettled: dict[Waiter, None] = {}

    def append(self, entry: bytes, waiter: Waiter, client: Client | None) -> None:
        """Hand an entry to the log; the client's turn waits for it."""
        pending = self.pending
        pending[waiter.group_id] = pending.get(waiter.group_id, 0) + 1
        self._unsettled[waiter] = None
        if waiter.entry is not None and waiter.entry[0] == Kind.GROUP_TOMBSTONE:
            self._removed.add(waiter.group_id)
        elif self._removed:
            self._removed.discard(waiter.group_id)
        waiter.appended = self._clock.monotonic()
        if client is not None:
            waiter.started = client.received_at
            waiter.turns = client.turns
            client.turns.wait(waiter)
        self._log.append(entry, waiter)

    def remove(self, waiter: Waiter) -> None:
        """Take out what is settled or refused."""
        del self._unsettled[waiter]
        pending = self.pending
        left = pending[waiter.group_id] - 1
        if left:
            pending[waiter.group_id] = left
        else:
            del pending[waiter.group_id]
            self._removed.discard(waiter.group_id)

    def will_exist(self, group_id: str, *, exists: bool) -> bool:
        """Tell whether a group will be there when all that is on its way has been applied."""
        return group_id not in self._removed if group_id in self.pending else exists

    def older_than(self, appended: float) -> list[Waiter]:
        """Return those that have waited since before a moment and were not answered yet."""
        late = []
        for waiter in self._unsettled:
            if waiter.appended >= appended:
                break
            if not waiter.answered:
                late.append(waiter)
        return late

    def held_bytes(self) -> int:
        """Return about how much memory they take, whether or not their clients still wait."""
        return sum(waiter.held_bytes for waiter in self._unsettled)

    def __len__(self) -> int:
        return len(self._unsettled)
