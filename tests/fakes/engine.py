"""A real journal engine over a real directory, in this process: under test itself, or to leave data for a daemon."""

import asyncio
import os
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from offsetd.coordinator.slot import slot_of
from offsetd.journal.directory import open_directory
from offsetd.journal.engine import EngineSettings, JournalEngine
from offsetd.journal.syncer import Syncer
from offsetd.observed import Observed
from offsetd.record import TopicOffsets, UnknownEntry, Who, decode_entries, encode_commit
from offsetd.table import SlotTable, TopicIndex, apply

WAIT_SECONDS = 60.0
WHO = Who("past", "/127.0.0.1", "")


class EngineLife:
    """One engine from its opening to its end. Entries are applied when they are settled, as the broker does."""

    def __init__(
        self,
        data: Path,
        *,
        slots: int = 3,
        settings: EngineSettings | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        identity, self.directory, self._lock = open_directory(data, broker_id=1, slots=slots, random_bytes=os.urandom)
        index = TopicIndex()
        self.observed = Observed()
        self.tables = [SlotTable(slot, index) for slot in range(slots)]
        self.settled: list[bytes] = []
        self.refused: list[tuple[bytes, OSError]] = []
        syncer = Syncer()
        syncer.start()
        self.engine = JournalEngine(
            directory=self.directory,
            cluster_id=identity.cluster_id,
            slots=slots,
            settings=settings or EngineSettings(reserve_bytes=0),
            observed=self.observed,
            clock=clock,
            syncer=syncer,
        )
        self.engine.connect(on_settled=self._settled, on_refused=self._refused, tables=self.tables)

    def open(self) -> list[int]:
        """Recover and open; return what was said of the progress."""
        return list(self.engine.open())

    def load(self) -> None:
        """Fill every table."""
        for table in self.tables:
            list(self.engine.load(table))
        self.engine.loaded()

    def append(self, entry: bytes) -> None:
        """Append an entry, which waits for itself."""
        self.engine.append(entry, entry)

    async def settle(self, entries: Sequence[bytes]) -> None:
        """Append entries, and wait until all of them are settled."""
        before = len(self.settled)
        for entry in entries:
            self.append(entry)
        await self.wait_until(lambda: len(self.settled) - before == len(entries))

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Let the loop work until something has come about."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():
                await asyncio.sleep(0.001)

    async def compact(self) -> None:
        """Fold every sealed segment into the checkpoint."""
        assert await self.engine._compaction.run_now()

    async def close(self) -> None:
        """End it cleanly."""
        await self.engine.close()
        self._lock.release()

    def offsets(self) -> dict[tuple[str, str, int], int]:
        """Return every live offset, by group, topic and partition."""
        return {
            (group_id, name, partition): offset.offset
            for table in self.tables
            for group_id, group in table.groups.items()
            for name in group.names()
            for partition, offset in group.rows(name)
        }

    def _settled(self, waiters: Sequence[object]) -> None:
        for entry in waiters:
            if isinstance(entry, bytes):
                self.settled.append(entry)
                # A test may leave what only a later release would write, or none.
                with suppress(UnknownEntry, IndexError):
                    decoded = decode_entries(b"\x91" + entry)[0]
                    apply(self.tables[decoded[2]], decoded)

    def _refused(self, waiters: Sequence[object], error: OSError) -> None:
        self.refused += [(entry, error) for entry in waiters if isinstance(entry, bytes)]


def commit_entry(group: str, offsets: Mapping[tuple[str, int], int], *, time_ms: int, slots: int = 3) -> bytes:
    """Return the entry of a commit that was made at this time."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append((partition, offset))
    packed = [
        TopicOffsets(
            topic,
            struct.pack(f">{len(rows)}i", *(partition for partition, _ in rows)),
            struct.pack(f">{len(rows)}q", *(offset for _, offset in rows)),
        )
        for topic, rows in topics.items()
    ]
    return encode_commit(slot_of(group, slots), group, time_ms, WHO, packed)


async def leave(
    data: Path,
    entries: Iterable[bytes],
    *,
    slots: int = 3,
    settings: EngineSettings | None = None,
    compacted: bool = False,
) -> None:
    """Leave a data directory that holds these entries, cleanly stopped, each in a batch of its own."""
    life = EngineLife(data, slots=slots, settings=settings)
    try:
        life.open()
        life.load()
        for entry in entries:
            await life.settle([entry])
        if compacted:
            await life.compact()
    finally:
        await life.close()
