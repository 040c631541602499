"""A log whose disk is the test: what was appended is held until the test settles or refuses it."""

import errno
import os
from collections.abc import Iterator, Sequence

from offsetd.log import Refused, Settled
from offsetd.record import Entry, decode_entries
from offsetd.table import SlotTable, apply


class FakeLog:
    """Keeps the promises of `offsetd.log.Log`, in memory and at the test's own pace."""

    def __init__(self, contents: Sequence[bytes] = (), *, broken_slot: int | None = None) -> None:
        # What a start finds, and the slot whose load fails.
        self._contents = contents
        self._broken_slot = broken_slot
        self.held: list[tuple[bytes, object]] = []
        self.written: list[bytes] = []
        self.is_loaded = False
        self._on_settled: Settled
        self._on_refused: Refused

    def connect(self, on_settled: Settled, on_refused: Refused) -> None:
        """Learn who hears what became of an entry."""
        self._on_settled = on_settled
        self._on_refused = on_refused

    # --- the test's hand --------------------------------------------------------------------------------------------

    def settle(self, count: int | None = None) -> int:
        """Make a batch of the first entries durable, of all if no count is said; return how many."""
        batch, self.held = (self.held, []) if count is None else (self.held[:count], self.held[count:])
        self.written += [entry for entry, _ in batch]
        if batch:
            self._on_settled([waiter for _, waiter in batch])
        return len(batch)

    def refuse(self, count: int | None = None) -> None:
        """Find the disk full: the first entries (or all) were certainly not kept."""
        batch, self.held = (self.held, []) if count is None else (self.held[:count], self.held[count:])
        self._on_refused([waiter for _, waiter in batch], OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def entries(self) -> list[Entry]:
        """Return what is held, decoded."""
        return [decode_entries(b"\x91" + entry)[0] for entry, _ in self.held]

    # --- the broker's side ------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """One start, one epoch."""
        return 1

    def open(self) -> Iterator[int]:
        """There is nothing to find."""
        return iter(())

    def load(self, table: SlotTable) -> Iterator[int]:
        """Apply the slot's entries one by one."""
        yield 0
        if table.slot == self._broken_slot:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        for packed in self._contents:
            (entry,) = decode_entries(b"\x91" + packed)
            if entry[2] == table.slot:
                apply(table, entry)
                yield table.live

    def loaded(self) -> None:
        """Hear that every slot has been loaded."""
        self.is_loaded = True

    def append(self, entry: bytes, waiter: object) -> None:
        """Hold an entry."""
        self.held.append((entry, waiter))

    def tick(self, now_ms: int) -> None:
        """Nothing is due."""

    async def close(self) -> None:
        """Nothing is open."""
