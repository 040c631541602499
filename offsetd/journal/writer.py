"""The hot path of the journal: entries of one loop turn become one batch, one write and one sync.

The loop writes, the sync helper syncs. While a sync runs the next batch fills in memory, and it is written only when
that sync has returned, so that what a batch calls synced is. Nothing here knows what an entry means.
"""

import asyncio
import errno
import os
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

import structlog

from offsetd.failpoint import failpoint
from offsetd.journal.active import (
    FULL,
    ActiveSegment,
    AppendFailed,
    Creation,
    create_first_segment,
    create_segment,
)
from offsetd.journal.batch import ENTRY_BYTES_MAX, cluster_seed, encode_batch, fitting, frame_crc
from offsetd.journal.files import Files, replace_file
from offsetd.journal.marker import CLEAN_STOP, DURABLE, Marker, encode_marker
from offsetd.journal.policy import Counters, WriterSettings
from offsetd.journal.recovery import Recovered
from offsetd.journal.reserve import Reserve
from offsetd.journal.syncer import SyncerGone, SyncFiles

logger = structlog.get_logger(__name__)

EXIT_CODE: Final = 70


class JournalClosed(RuntimeError):
    """An entry came after the writer was closed."""


class _Awaited(Enum):
    NOTHING = 0
    SYNC = 1
    ROLL = 2


class JournalWriter:
    """The one writer of a journal. All methods belong to the loop's thread."""

    def __init__(
        self,
        *,
        directory: Path,
        cluster: bytes,
        epoch: int,
        recovered: Recovered,
        files: Files,
        syncer: SyncFiles,
        reserve: Reserve,
        settings: WriterSettings,
        observed: Counters,
        clock: Callable[[], int],
        sequences: Callable[[], Sequence[int]],
        on_settled: Callable[[list[object], int, int], None],
        on_refused: Callable[[list[object], OSError], None],
        on_sealed: Callable[[Path], None],
        end_process: Callable[[int], None] = os._exit,
    ) -> None:
        """Take what recovery found as the end to write on from; `open` does the first input and output."""
        self._directory = directory
        self._cluster = cluster
        self._seed = cluster_seed(cluster)
        self._epoch = epoch
        self._recovered = recovered
        self._files = files
        self._syncer = syncer
        self._reserve = reserve
        self._settings = settings
        self._every_batch = settings.flush_messages <= 1
        self._observed = observed
        self._clock = clock
        self._sequences = sequences
        self._on_settled = on_settled
        self._on_refused = on_refused
        self._on_sealed = on_sealed
        self._end_process = end_process

        self._number = recovered.last_batch_number
        self._crc = recovered.last_crc
        self._synced_number = recovered.last_batch_number
        # What the next batch is made of.
        self._entries: list[bytes] = []
        self._waiters: list[object] = []
        # True while a flush is scheduled or must wait for an answer, so that an append need not ask for one.
        self._busy = True
        self._awaited = _Awaited.NOTHING
        self._asked_number = 0
        self._asked_at = 0.0
        self._settling: tuple[list[object], int, int] | None = None
        self._creation: Creation | None = None
        self._unsynced_entries = 0
        self._timer: asyncio.TimerHandle | None = None
        self._roll_wanted = False
        self._closed = False
        self._idle: asyncio.Future[None] | None = None
        self._segment: ActiveSegment
        self._loop: asyncio.AbstractEventLoop

    # Life

    def open(self) -> None:
        """Open the last segment, or create the first; from here on entries may be appended."""
        self._loop = asyncio.get_running_loop()
        if self._recovered.segments:
            last = self._recovered.segments[-1]
            descriptor = self._files.open_append(last.path)
            assert self._files.size(descriptor) == last.end, "recovery has cut or refused anything behind the end"
            header = last.header
            self._segment = ActiveSegment(
                self._files, last.path, descriptor, header.first_number, header.created_ms, last.end
            )
        else:
            self._segment = create_first_segment(
                self._files,
                self._directory,
                cluster=self._cluster,
                epoch=self._epoch,
                created_ms=self._clock(),
                next_sequences=self._sequences(),
            )
        if not self._reserve.take():
            logger.warning("disk_reserve_not_taken", directory=str(self._directory))
        self._syncer.use(self._segment.descriptor)
        self._loop.add_reader(self._syncer.fileno(), self._answered)
        self._busy = False

    async def close(self) -> None:
        """Write and sync what was appended, say in the clean-stop file that it was, and let the helper end."""
        self._closed = True
        self._idle = self._loop.create_future()
        self._rest()
        await self._idle
        self._loop.remove_reader(self._syncer.fileno())
        marker = encode_marker(self._end())
        try:
            # First the marker that stays: the clean-stop file is gone before the next start has read anything.
            replace_file(self._files, self._directory / DURABLE, marker)
            failpoint("before_clean_stop")
            replace_file(self._files, self._directory / CLEAN_STOP, marker)
        except OSError as error:
            logger.warning("clean_stop_not_written", reason=error.strerror)
        self._segment.close()
        self._syncer.close()

    @property
    def full(self) -> bool:
        """Whether the disk took nothing at the last try, so that commits are refused."""
        return self._reserve.full

    @property
    def last_batch_number(self) -> int:
        """The number of the last batch written."""
        return self._number

    @property
    def synced_number(self) -> int:
        """The number of the last batch known to be on disk."""
        return self._synced_number

    @property
    def active_path(self) -> Path:
        """The segment that is being appended to."""
        return self._segment.path

    @property
    def active_bytes(self) -> int:
        """How long that segment is."""
        return self._segment.position

    def roll_soon(self) -> None:
        """Seal the segment before the next batch is written, whatever its size and age."""
        self._roll_wanted = True

    def try_to_heal(self) -> None:
        """Take commits again if the disk has room again, also when no commit comes to find out."""
        if self._reserve.full and not self._busy and self._reserve.may_try(self._loop.time()):
            self._heal()

    # In

    def append(self, entry: bytes, waiter: object) -> None:
        """Put an encoded entry into the next batch; `waiter` comes back when it is settled or refused."""
        if len(entry) > ENTRY_BYTES_MAX or self._closed:
            self._reject(entry)
        self._entries.append(entry)
        self._waiters.append(waiter)
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._flush)

    def _reject(self, entry: bytes) -> None:
        if self._closed:
            raise JournalClosed("the journal is closed and takes no more entries")
        raise ValueError(f"an entry of {len(entry)} bytes exceeds the limit of {ENTRY_BYTES_MAX}")

    # Forward

    def _flush(self) -> None:
        self._advance()
        self._rest()

    def _advance(self) -> None:
        """Write the next batch and ask for what must follow; nothing that it would have to wait for is under way."""
        if not self._entries:
            self._busy = False
            return
        if self._reserve.full and not self._reserve.may_try(self._loop.time()):
            self._refuse(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._segment.path)))
            return
        now_ms = self._clock()
        try:
            if self._roll_due(now_ms):
                self._roll(now_ms)
                return
            batch = self._write(now_ms)
        except OSError as error:
            self._meet_full_disk(error)
            return
        except (AppendFailed, SyncerGone) as error:
            self._fail(str(error))
            return
        if self._every_batch:
            self._settling = batch
            self._ask_for_sync()
            return
        self._sync_by_policy()
        self._on_settled(*batch)
        if self._entries:
            self._loop.call_soon(self._flush)
        else:
            self._busy = False

    def _write(self, now_ms: int) -> tuple[list[object], int, int]:
        entries, waiters = self._entries, self._waiters
        taken = fitting(entries)
        batch = entries if taken == len(entries) else entries[:taken]
        frame = encode_batch(
            batch,
            seed=self._seed,
            number=self._number + 1,
            previous_crc=self._crc,
            synced_number=self._synced_number,
            epoch=self._epoch,
            time_ms=now_ms,
        )
        self._segment.append(frame)
        # Only now are they out of the queue: after a failed append they are all refused together.
        self._entries, self._waiters = entries[taken:], waiters[taken:]
        self._number += 1
        self._crc = frame_crc(frame)
        self._unsynced_entries += taken
        observed = self._observed
        observed.journal_batches += 1
        observed.journal_bytes_written += len(frame)
        observed.journal_records += taken
        observed.batch_entries.observe(taken)
        observed.batch_bytes.observe(len(frame))
        if self._reserve.full:
            self._heal()
        return waiters[:taken], self._number, now_ms

    def _ask_for_sync(self) -> None:
        failpoint("before_sync_request")
        self._awaited = _Awaited.SYNC
        self._asked_number = self._number
        self._asked_at = time.monotonic()
        self._unsynced_entries = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            self._syncer.request()
        except SyncerGone as gone:
            self._fail(str(gone))

    def _sync_by_policy(self) -> None:
        """Ask for a sync if so many entries are unsynced, or see to it that one is asked for in time."""
        if self._awaited is not _Awaited.NOTHING or self._synced_number == self._number:
            return
        if self._unsynced_entries >= self._settings.flush_messages:
            self._ask_for_sync()
        elif self._timer is None and self._settings.flush_ms is not None:
            self._timer = self._loop.call_later(self._settings.flush_ms / 1000, self._timed_out)

    def _timed_out(self) -> None:
        self._timer = None
        if self._awaited is _Awaited.NOTHING and self._synced_number != self._number:
            self._ask_for_sync()

    # Back

    def _answered(self) -> None:
        try:
            code = self._syncer.read_answer()
        except BlockingIOError:
            return
        except SyncerGone as gone:
            self._fail(str(gone))
            return
        awaited, self._awaited = self._awaited, _Awaited.NOTHING
        if code:
            self._fail(f"a sync of {self._segment.path} failed: {os.strerror(code)}")
        elif awaited is _Awaited.ROLL:
            self._rolled()
        else:
            self._synced()
        self._rest()

    def _synced(self) -> None:
        self._synced_number = self._asked_number
        # Not the loop's own time, which stands still within a turn and counts whole milliseconds.
        self._observed.sync_seconds.observe(time.monotonic() - self._asked_at)
        settled, self._settling = self._settling, None
        if settled is None:
            if self._busy and self._entries and self._roll_due(self._clock()):
                self._advance()  # it waited for this sync to seal the segment
            else:
                self._sync_by_policy()
        elif self._roll_due(self._clock()):
            # A new segment names the next sequences, so what is settled is applied before it is begun.
            self._on_settled(*settled)
            self._advance()
        else:
            self._advance()  # first: the disk works while the settled batch is applied and answered
            failpoint("after_settled")
            self._on_settled(*settled)

    # Rolling

    def _roll_due(self, now_ms: int) -> bool:
        segment = self._segment
        if self._number < segment.first_number:
            return False
        return (
            segment.position >= self._settings.segment_bytes
            or now_ms - segment.created_ms >= self._settings.roll_ms
            or self._roll_wanted
        )

    def _roll(self, now_ms: int) -> None:
        """Begin a new segment, as soon as all of the old one is synced."""
        failpoint("before_roll")
        if self._awaited is not _Awaited.NOTHING:
            return  # the answer comes back here
        if self._synced_number != self._number:
            self._ask_for_sync()
            return
        failpoint("after_seal")
        self._creation = create_segment(
            self._files,
            self._directory,
            cluster=self._cluster,
            marker=self._end(),
            epoch=self._epoch,
            created_ms=now_ms,
            next_sequences=self._sequences(),
        )
        self._awaited = _Awaited.ROLL
        self._syncer.request_roll(self._creation.segment.descriptor, self._creation.others)

    def _rolled(self) -> None:
        assert self._creation is not None, "an answer to a roll that was never asked for"
        sealed = self._segment
        self._segment, self._creation = self._creation.finish(), None
        sealed.close()
        self._roll_wanted = False
        if self._reserve.full:
            self._heal()
        self._loop.call_soon(self._on_sealed, sealed.path)
        self._advance()

    # Trouble

    def _meet_full_disk(self, error: OSError) -> None:
        if error.errno not in FULL:
            self._fail(f"the journal in {self._directory} could not be written: {error}")
            return
        if not self._reserve.full:
            logger.error("disk_full", reason=error.strerror, segment=str(self._segment.path))
        self._reserve.meet_full_disk(self._loop.time())
        self._refuse(error)

    def _heal(self) -> None:
        self._reserve.full = False
        logger.info("journal_writes_again", segment=str(self._segment.path))

    def _refuse(self, error: OSError) -> None:
        waiters = self._waiters
        self._entries, self._waiters = [], []
        self._observed.journal_refusals += len(waiters)
        self._busy = False  # before the callback, which may append again
        self._on_refused(waiters, error)

    def _fail(self, reason: str) -> None:
        """End the process: what the page cache says is not to be trusted any more, so nothing more is settled."""
        self._busy = True
        self._closed = True
        self._settling = None
        self._entries, self._waiters = [], []
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._syncer.fileno())
        logger.error("journal_failed", reason=reason, exit_code=EXIT_CODE)
        self._end_process(EXIT_CODE)

    # Rest

    def _end(self) -> Marker:
        segment = self._segment
        return Marker(number=self._number, first_number=segment.first_number, position=segment.position, crc=self._crc)

    def _rest(self) -> None:
        """Tell `close` when nothing is under way any more; what a lax policy left unsynced is synced first."""
        if self._idle is None or self._idle.done() or self._entries or self._awaited is not _Awaited.NOTHING:
            return
        if self._synced_number != self._number:
            self._ask_for_sync()
        elif not self._idle.done():
            self._idle.set_result(None)
