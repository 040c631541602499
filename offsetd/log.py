"""The seam: what a log engine promises to the broker. Engines live in rooms of their own; nothing here does I/O."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from offsetd.table import SlotTable

#: Called in log order with the waiters of a batch that will never be taken back.
Settled = Callable[[Sequence[object]], None]
#: Called with the waiters of entries that were certainly not kept, and why.
Refused = Callable[[Sequence[object], OSError], None]


class Log(Protocol):
    """An append-only log of entries, compacted by itself, from which every slot can be loaded."""

    @property
    def epoch(self) -> int:
        """The epoch that this broker writes with."""

    def open(self) -> Iterator[int]:
        """Find the log's end, in slices: yields the bytes looked at so far, and returns when appending is possible."""

    def load(self, table: SlotTable) -> Iterator[int]:
        """Fill one slot's table, in slices: yields the offsets restored so far."""

    def loaded(self) -> None:
        """Hear that every slot has been loaded."""

    def append(self, entry: bytes, waiter: object) -> None:
        """Take one entry; its waiter comes back through `Settled` or `Refused`, in the order of appending."""

    def tick(self, now_ms: int) -> None:
        """Do what is due by time: roll, compact, let history go."""

    async def close(self) -> None:
        """Settle what was appended and stop cleanly."""
