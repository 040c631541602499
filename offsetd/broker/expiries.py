"""The sweep: tombstones for offsets whose retention is over, in slices that do not stall the loop."""

from collections.abc import Iterator, Sequence

import structlog

from offsetd.broker.client import Clock
from offsetd.broker.slots import Slots
from offsetd.broker.waiter import Waiter, Waiters
from offsetd.coordinator.expiry import ExpiryClock, expired, is_large
from offsetd.coordinator.limits import Limits
from offsetd.observed import Observed
from offsetd.record import Reason, Who, decode_entries, encode_tombstone
from offsetd.table import SlotTable

logger = structlog.get_logger()

#: A tombstone names at most this many partitions, so that one entry stays small.
_PARTITIONS_MAX = 10_000
#: The loop gets a turn after about so many offsets were looked at: less than a millisecond.
_SLICE_ROWS = 1000
_OURSELVES = Who("offsetd", "", "")


class Expiries:
    """Looks for expired offsets; made when every slot is loaded, never before."""

    def __init__(self, *, slots: Slots, waiters: Waiters, limits: Limits, observed: Observed, clock: Clock) -> None:
        assert slots.are_whole(), "expiry begins when every slot is loaded: it counts what there is"
        self._slots = slots
        self._waiters = waiters
        self._limits = limits
        self._observed = observed
        self._clock = clock
        wall_ms = clock.wall_ms()
        self._time = ExpiryClock(
            newest_ms=slots.newest_ms() or wall_ms, wall_ms=wall_ms, monotonic_ms=int(clock.monotonic() * 1000)
        )
        self._postponed = False

    def sweep(self) -> Iterator[int]:
        """Expire what is due; yields the offsets expired so far."""
        monotonic_ms = int(self._clock.monotonic() * 1000)
        now_ms = self._time.now_ms(wall_ms=self._clock.wall_ms(), monotonic_ms=monotonic_ms)
        due = 0
        for _, _, topics in self._look(now_ms):
            if topics is None:
                yield 0
            else:
                due += sum(len(partitions) // 4 for _, partitions in topics)
        live = self._slots.live()
        if is_large(due, live) and not self._postponed:
            self._postponed = True
            logger.warning(
                "expiry_postponed",
                due=due,
                live=live,
                reason="over a tenth of all offsets at once: a second sweep decides",
            )
            return
        self._postponed = False
        gone = 0
        for table, group_id, topics in self._look(now_ms):
            if topics is None:
                yield gone
            # Nothing awaits between looking and appending, so no commit can come between.
            elif topics and group_id not in self._waiters.pending:
                gone += self._expire(table, group_id, topics)
        if gone:
            logger.info("offsets_expired", offsets=gone, live=live - gone)

    def _look(self, now_ms: int) -> Iterator[tuple[SlotTable, str, Sequence[tuple[str, bytes]] | None]]:
        """Yield each group with what has expired of it, and None in between whenever it is time for others."""
        left = _SLICE_ROWS
        for table in self._slots.tables:
            for group_id, topics in expired(table, now_ms=now_ms, retention_ms=self._limits.retention_ms):
                left -= 1 + table.groups[group_id].live
                yield table, group_id, topics
                if left <= 0:
                    left = _SLICE_ROWS
                    yield table, group_id, None

    def _expire(self, table: SlotTable, group_id: str, topics: Sequence[tuple[str, bytes]]) -> int:
        gone = 0
        for name, partitions in topics:
            for start in range(0, len(partitions), 4 * _PARTITIONS_MAX):
                some = partitions[start : start + 4 * _PARTITIONS_MAX]
                now_ms = self._clock.wall_ms()
                entry = encode_tombstone(table.slot, group_id, now_ms, _OURSELVES, Reason.EXPIRED, [(name, some)])
                waiter = Waiter(table, group_id, now_ms, _OURSELVES)
                waiter.entry = decode_entries(b"\x91" + entry)[0]
                self._waiters.append(entry, waiter, None)
                gone += len(some) // 4
        return gone
