"""The sweep: tombstones for offsets whose retention is over, in slices that do not stall the loop."""

from collections.abc import Iterator

import structlog

from offsetd.broker.client import Clock
from offsetd.broker.groups import Groups
from offsetd.broker.slots import Slots
from offsetd.broker.waiter import Waiter, Waiters
from offsetd.coordinator.expiry import Expired, ExpiryClock, expired, is_large
from offsetd.coordinator.limits import Limits
from offsetd.observed import Observed
from offsetd.record import Reason, Who, decode_entry, encode_group_tombstone, encode_tombstone
from offsetd.table import SlotTable

logger = structlog.get_logger()

#: A tombstone names at most this many partitions, so that one entry stays small.
_PARTITIONS_MAX = 10_000
#: The loop gets a turn after about so many offsets were looked at: less than a millisecond.
_SLICE_ROWS = 1000
_OURSELVES = Who("offsetd", "", "")


class Expiries:
    """Looks for expired offsets; made when every slot is loaded, never before."""

    def __init__(
        self, *, slots: Slots, waiters: Waiters, groups: Groups, limits: Limits, observed: Observed, clock: Clock
    ) -> None:
        assert slots.are_whole(), "expiry begins when every slot is loaded: it counts what there is"
        self._slots = slots
        self._waiters = waiters
        self._groups = groups
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
        for _, found in self._look(now_ms):
            if found is None:
                yield 0
            else:
                due += _count(found)
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
        for table, found in self._look(now_ms):
            if found is None:
                yield gone
            # Nothing awaits between looking and appending, so no commit can come between.
            elif found.group_id not in self._waiters.pending:
                gone += self._expire(table, found)
        if gone:
            logger.info("offsets_expired", offsets=gone, live=live - gone)

    def _look(self, now_ms: int) -> Iterator[tuple[SlotTable, Expired | None]]:
        """Yield each group with what has expired of it, and None in between whenever it is time for others."""
        left = _SLICE_ROWS
        for table in self._slots.tables:
            look = expired(
                table,
                now_ms=now_ms,
                retention_ms=self._limits.retention_ms,
                memberships=self._groups.memberships,
            )
            for found in look:
                left -= 1 + table.groups[found.group_id].live
                yield table, found
                if left <= 0:
                    left = _SLICE_ROWS
                    yield table, None

    def _expire(self, table: SlotTable, found: Expired) -> int:
        group_id = found.group_id
        if found.whole:
            now_ms = self._clock.wall_ms()
            self._groups.forget(group_id)
            entry = encode_group_tombstone(table.slot, group_id, now_ms, _OURSELVES, Reason.EXPIRED)
            self._append(table, group_id, now_ms, entry)
            return _count(found)
        for name, partitions in found.topics:
            for start in range(0, len(partitions), 4 * _PARTITIONS_MAX):
                some = partitions[start : start + 4 * _PARTITIONS_MAX]
                now_ms = self._clock.wall_ms()
                entry = encode_tombstone(table.slot, group_id, now_ms, _OURSELVES, Reason.EXPIRED, [(name, some)])
                self._append(table, group_id, now_ms, entry)
        return _count(found)

    def _append(self, table: SlotTable, group_id: str, now_ms: int, entry: bytes) -> None:
        waiter = Waiter(table, group_id, now_ms, _OURSELVES)
        waiter.entry = decode_entry(entry)
        self._waiters.append(entry, waiter, None)


def _count(found: Expired) -> int:
    return sum(len(partitions) // 4 for _, partitions in found.topics)
