"""Load: a slot's table from its rows in the checkpoint and what the journal says after them.

The tail of the journal is taken once, split by slot; then slot after slot is filled in slices, so that the caller can
give the loop a turn between them. Which batches there are is the recovery's business.
"""

from collections.abc import Iterator
from typing import Final

from offsetd.journal.batch import Batch
from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.fold import Place, SlotMark, follows
from offsetd.record import NO_SLOT, decode_entry, record_count, split_entries
from offsetd.rows import restore
from offsetd.table import SlotTable, apply

#: Rows of the checkpoint, or entries of the tail, between two turns of the loop: about a millisecond.
SLICE_ROWS: Final = 256


class Loader:
    """What a start knows of the journal: an open checkpoint, and the entries after it, by slot."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._marks = checkpoint.place.slots
        # As bytes: decoded they would take five times the memory, all at one moment.
        self._overlays: dict[int, list[bytes]] = {}
        self._loaded: set[int] = set()
        self._end = checkpoint.place
        #: The highest epoch that was opened; the next start takes a higher one.
        self.epoch = checkpoint.place.epoch

    @property
    def folded_number(self) -> int:
        """The last batch that the checkpoint holds; the tail begins after it."""
        return self._checkpoint.place.number

    @property
    def last_number(self) -> int:
        """The last batch seen, in the checkpoint or after it."""
        return self._end.number

    @property
    def last_time_ms(self) -> int:
        """The time of that batch."""
        return self._end.time_ms

    def add_batch(self, batch: Batch) -> None:
        """Take the next batch of the tail; one that the checkpoint holds already is passed over.

        Raises:
            FoldRefused: it does not follow the checkpoint, or the batch before.
            UnknownEntry: a newer offsetd wrote it.
        """
        if batch.number <= self.folded_number:
            return
        follows(self._end, batch)
        overlays = self._overlays
        for slot, entry in split_entries(batch.body):
            overlay = overlays.get(slot)
            if overlay is None:
                overlay = overlays[slot] = []
            overlay.append(entry)
        for opening in overlays.pop(NO_SLOT, ()):
            self.epoch = max(self.epoch, decode_entry(opening)[3])
        self.epoch = max(self.epoch, batch.epoch)
        self._end = Place(number=batch.number, crc=batch.crc, epoch=batch.epoch, time_ms=batch.time_ms)

    def load(self, table: SlotTable) -> Iterator[int]:
        """Fill an empty table in slices, once; yields the offsets it holds so far.

        Raises:
            CheckpointRefused: a block of the checkpoint is damaged.
        """
        assert not table.groups, "a slot is loaded into an empty table"
        mark = self._marks.get(table.slot, SlotMark())
        table.sequence, table.newest_ms = mark.sequence, mark.newest_ms
        left = SLICE_ROWS
        for group_id, topic, value in self._checkpoint.rows(table.slot):
            restore(table, group_id, topic, value)
            left -= 1
            if not left:
                left = SLICE_ROWS
                yield table.live
        for done, entry in enumerate(self._overlays.get(table.slot, ()), start=1):
            apply(table, decode_entry(entry))
            if not done % SLICE_ROWS:
                yield table.live
        self._loaded.add(table.slot)
        # Taken out, so that the memory of the tail goes as the slots become ready.
        self._overlays.pop(table.slot, None)
        yield table.live

    def next_sequence(self, table: SlotTable) -> int:
        """Return the next sequence of a slot, whether it has been loaded yet or not."""
        if table.slot in self._loaded:
            return table.sequence
        tail = self._overlays.get(table.slot, ())
        return self._marks.get(table.slot, SlotMark()).sequence + sum(record_count(decode_entry(each)) for each in tail)

    def close(self) -> None:
        """Let LevelDB go: after the last slot, or when the load is given up. Harmless a second time."""
        self._overlays.clear()
        self._checkpoint.close()
