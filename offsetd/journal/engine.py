"""The embedded engine: recovery, load, writer, compaction and history, behind the seam of a log."""

import asyncio
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import structlog

from offsetd import __version__
from offsetd.journal.batch import Batch
from offsetd.journal.checkpoint import Checkpoint, CheckpointRefused, directory_bytes
from offsetd.journal.compaction import Compaction
from offsetd.journal.directory import BrokerDirectory, decode_cluster_id
from offsetd.journal.examine import STRANGER, JournalRefused
from offsetd.journal.files import OsFiles
from offsetd.journal.fold import FoldRefused
from offsetd.journal.history import list_history
from offsetd.journal.history import size as history_size
from offsetd.journal.load import Loader
from offsetd.journal.policy import WriterSettings
from offsetd.journal.recovery import Recovered, recover
from offsetd.journal.reserve import Reserve
from offsetd.journal.sealed import list_sealed
from offsetd.journal.segment import segment_name
from offsetd.journal.syncer import Syncer
from offsetd.journal.writer import JournalWriter
from offsetd.log import Refused, Settled
from offsetd.observed import Observed
from offsetd.record import UnknownEntry, encode_opening
from offsetd.table import SlotTable

logger = structlog.get_logger()

#: What waits for the opening entry: nobody.
_NOBODY: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What an operator may say about the journal; the settings page explains each."""

    flush_messages: int = 1
    flush_ms: int | None = None
    segment_bytes: int = 64 * 1024 * 1024
    roll_ms: int = 3_600_000
    cleanable_ratio: float = 0.5
    compaction_lag_ms: int = 600_000
    cleaner_backoff_ms: int = 15_000
    history: bool = True
    history_ms: int = 604_800_000
    history_bytes: int = 1_073_741_824
    reserve_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What the engine holds on disk."""

    journal_bytes: int
    journal_segments: int
    checkpoint_bytes: int
    history_bytes: int
    """Of segments and sealed files together."""
    history_segments: int
    history_sealed_bytes: int
    history_sealed_files: int
    oldest_sealed_ms: int | None


class JournalEngine:
    """A log in the data directory. It keeps the promises of `offsetd.log.Log`."""

    def __init__(
        self,
        *,
        directory: BrokerDirectory,
        cluster_id: str,
        slots: int,
        settings: EngineSettings,
        observed: Observed,
        clock: Callable[[], int],
        syncer: Syncer,
    ) -> None:
        self._directory = directory
        self._cluster_id = cluster_id
        self._slots = slots
        self._settings = settings
        self._observed = observed
        self._clock = clock
        self._syncer = syncer
        self._files = OsFiles()
        self._reserve = Reserve(self._files, directory.reserve, settings.reserve_bytes)
        self._compaction = Compaction(
            checkpoint=directory.checkpoint,
            cluster_id=cluster_id,
            history=directory.history if settings.history else None,
            sealed_history=directory.sealed if settings.history else None,
            observed=observed,
            clock=clock,
            min_ratio=settings.cleanable_ratio,
            max_lag_ms=settings.compaction_lag_ms,
            backoff_ms=settings.cleaner_backoff_ms,
            history_ms=settings.history_ms,
            history_bytes=settings.history_bytes,
        )
        self._epoch = 0
        self._loader: Loader | None = None
        self._writer: JournalWriter | None = None
        self._tables: Sequence[SlotTable] = ()
        self._on_settled: Settled
        self._on_refused: Refused

    def connect(self, *, on_settled: Settled, on_refused: Refused, tables: Sequence[SlotTable]) -> None:
        """Learn who hears of settled and refused entries, and whose sequences stand in a new segment's header."""
        self._on_settled = on_settled
        self._on_refused = on_refused
        self._tables = tables

    @property
    def epoch(self) -> int:
        """One more at every start."""
        return self._epoch

    @property
    def full(self) -> bool:
        """Whether commits are refused for want of space."""
        return self._writer is not None and self._writer.full

    @property
    def batch_number(self) -> int:
        """The number of the last batch known to be on disk."""
        return 0 if self._writer is None else self._writer.synced_number

    def open(self) -> Iterator[int]:
        """Recover the journal's end and open a new epoch on it; yields bytes scanned."""
        checkpoint = self._open_checkpoint()
        loader = self._loader = Loader(checkpoint)
        recovered: Recovered = yield from recover(
            self._directory.journal,
            self._directory.quarantine,
            files=self._files,
            cluster=decode_cluster_id(self._cluster_id),
            slots=self._slots,
            after_number=loader.folded_number,
            after_crc=checkpoint.place.crc,
            on_batch=self._take_batch,
        )
        if recovered.torn is not None:
            self._observed.recovered_torn_bytes = recovered.torn.size
            logger.warning(
                "torn_tail_cut",
                segment=str(recovered.torn.path),
                position=recovered.torn.position,
                bytes=recovered.torn.size,
                reason=recovered.torn.reason,
                kept_at=str(recovered.torn.quarantine),
            )
        self._epoch = max(loader.epoch, recovered.last_epoch) + 1
        settings = self._settings
        writer = JournalWriter(
            directory=self._directory.journal,
            cluster=decode_cluster_id(self._cluster_id),
            epoch=self._epoch,
            recovered=recovered,
            files=self._files,
            syncer=self._syncer,
            reserve=self._reserve,
            settings=WriterSettings(
                segment_bytes=settings.segment_bytes,
                roll_ms=settings.roll_ms,
                flush_messages=settings.flush_messages,
                flush_ms=settings.flush_ms,
            ),
            observed=self._observed,
            clock=self._clock,
            sequences=self._sequences,
            on_settled=lambda waiters, _number, _time_ms: self._on_settled(waiters),
            on_refused=self._on_refused,
            on_sealed=self._sealed,
        )
        writer.open()
        # Only now: one that could not be opened has nothing to settle when the engine is closed.
        self._writer = writer
        # Sealed in an earlier life, when the segment after each was created.
        for sealed, after in pairwise(recovered.segments):
            self._compaction.add(sealed.path, after.header.created_ms)
        writer.append(encode_opening(self._epoch, self._clock(), __version__), _NOBODY)

    def _open_checkpoint(self) -> Checkpoint:
        directory = self._directory
        path = directory.checkpoint
        known = any(directory.journal.iterdir()) or list_history(directory.history) or list_sealed(directory.sealed)
        if not Checkpoint.exists(path) and not known:
            return Checkpoint.create(path, cluster_id=self._cluster_id, made_by=f"offsetd {__version__}")
        # Where there was ever anything, a checkpoint that is gone is a loss and not a beginning.
        try:
            return Checkpoint.open(path, cluster_id=self._cluster_id)
        except CheckpointRefused as refused:
            if os.strerror(errno.ENOSPC) not in refused.reason:
                raise
        # LevelDB writes a little whenever it is opened. On a full disk that is what the reserve is for, too.
        self._reserve.meet_full_disk(asyncio.get_running_loop().time())
        logger.error("disk_full", reason=os.strerror(errno.ENOSPC), checkpoint=str(path))
        return Checkpoint.open(path, cluster_id=self._cluster_id)

    def _take_batch(self, batch: Batch) -> None:
        """Hand a batch of the tail to the loader; what it will not take is named by its place."""
        assert self._loader is not None, "the tail is read before the slots are loaded"
        try:
            self._loader.add_batch(batch)
        except UnknownEntry as unknown:
            raise JournalRefused(
                self._segment_of(batch.number),
                batch.position,
                f"batch {batch.number} holds an entry of kind {unknown.kind} version {unknown.version}, which this "
                "release does not know",
                "It was written by a newer offsetd: start that release, or a later one",
            ) from unknown
        except FoldRefused as refused:
            raise JournalRefused(
                self._segment_of(batch.number),
                batch.position,
                f"batch {batch.number} does not follow the checkpoint, which ends with batch {refused.folded_number}",
                STRANGER,
            ) from refused

    def _segment_of(self, number: int) -> Path:
        """Return the segment that holds a batch."""
        paths = [segment.path for segment in list_history(self._directory.journal)]
        return max((path for path in paths if path.name <= segment_name(number)), default=self._directory.journal)

    def _sequences(self) -> list[int]:
        """Return the next sequence of every slot, also of those that are still being loaded."""
        loader = self._loader
        if loader is None:
            return [table.sequence for table in self._tables]
        return [loader.next_sequence(table) for table in self._tables]

    def load(self, table: SlotTable) -> Iterator[int]:
        """Fill one slot from the checkpoint and the journal's tail."""
        assert self._loader is not None, "a slot is loaded between open and loaded"
        return self._loader.load(table)

    def loaded(self) -> None:
        """Let LevelDB go, so that compaction may have it."""
        assert self._loader is not None, "loaded once"
        self._loader.close()
        self._loader = None

    def append(self, entry: bytes, waiter: object) -> None:
        """Put an entry into the next batch."""
        assert self._writer is not None, "nothing is appended before the log is open"
        self._writer.append(entry, waiter)

    def _sealed(self, path: Path) -> None:
        now_ms = self._clock()
        self._compaction.add(path, now_ms)
        self.tick(now_ms)

    def tick(self, now_ms: int) -> None:
        """Let a full disk heal, and start a compaction if one is due; whole slots only, so that LevelDB is free."""
        if self._writer is None or self._loader is not None:
            return
        self._writer.try_to_heal()
        self._compaction.consider(now_ms, disk_full=self._writer.full)

    def sizes(self) -> Sizes:
        """Look at the directory."""
        journal = history_size(self._directory.journal)
        history = history_size(self._directory.history, self._directory.sealed)
        return Sizes(
            journal_bytes=journal.size_bytes,
            journal_segments=journal.segments,
            checkpoint_bytes=directory_bytes(self._directory.checkpoint),
            history_bytes=history.total_bytes,
            history_segments=history.segments,
            history_sealed_bytes=history.sealed_bytes,
            history_sealed_files=history.sealed_files,
            oldest_sealed_ms=self._compaction.oldest_sealed_ms,
        )

    async def close(self) -> None:
        """Settle what was appended and stop cleanly; a compaction under way goes on at the next start."""
        await self._compaction.stop()
        if self._writer is not None:
            await self._writer.close()
        else:
            self._syncer.close()
        # Last: should the writer roll once more, it asks for the sequences of slots that were never loaded.
        if self._loader is not None:
            self._loader.close()
