"""Small journals for tests: built by hand, read back, or written by the real writer over a fake disk."""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgpack

from offsetd.journal.batch import Batch, cluster_seed, encode_batch, frame_crc
from offsetd.journal.files import Files
from offsetd.journal.marker import DURABLE, Marker, encode_marker
from offsetd.journal.policy import WriterSettings
from offsetd.journal.recovery import Recovered, recover
from offsetd.journal.reserve import Reserve
from offsetd.journal.segment import encode_header, segment_name
from offsetd.journal.syncer import SyncFiles
from offsetd.journal.writer import JournalWriter

CLUSTER = bytes(range(16))
JOURNAL = Path("/data/broker-1/journal")
QUARANTINE = Path("/data/broker-1/quarantine")
SLOTS = 2


def entry(value: int, size: int = 0) -> bytes:
    """Return an entry that holds a number, and so many more bytes."""
    packed: bytes = msgpack.packb([1, 1, 0, value, b"x" * size])
    return packed


def values_of(batch: Batch) -> list[int]:
    """Return the numbers in a batch's entries."""
    return [each[3] for each in msgpack.unpackb(batch.body)]


def frames_of(
    numbers: Sequence[int],
    *,
    previous_crc: int = 0,
    size: int = 0,
    synced: Callable[[int], int] = lambda number: number - 1,
    cluster: bytes = CLUSTER,
    epoch: int = 1,
) -> list[bytes]:
    """Return batches with these numbers; each holds its number as its only value."""
    frames = []
    for number in numbers:
        frame = encode_batch(
            [entry(number, size)],
            seed=cluster_seed(cluster),
            number=number,
            previous_crc=previous_crc,
            synced_number=synced(number),
            epoch=epoch,
            time_ms=1_000 + number,
        )
        previous_crc = frame_crc(frame)
        frames.append(frame)
    return frames


def small_journal(
    *,
    segments: int = 3,
    batches: int = 4,
    size: int = 0,
    synced: Callable[[int], int] = lambda number: number - 1,
    durable: int | None = None,
    cluster: bytes = CLUSTER,
) -> tuple[dict[Path, bytes], list[list[bytes]]]:
    """Return a journal's files, and the pieces (header, then frames) of each segment."""
    files: dict[Path, bytes] = {}
    pieces: list[list[bytes]] = []
    crcs = {0: 0}
    for segment in range(segments):
        first = segment * batches + 1
        header = encode_header(
            cluster=cluster,
            first_number=first,
            previous_crc=crcs[first - 1],
            epoch=1,
            created_ms=1_000,
            next_sequences=[first] * SLOTS,
        )
        numbers = range(first, first + batches)
        frames = frames_of(numbers, previous_crc=crcs[first - 1], size=size, synced=synced, cluster=cluster)
        crcs |= {number: frame_crc(frame) for number, frame in zip(numbers, frames, strict=True)}
        pieces.append([header, *frames])
        files[JOURNAL / segment_name(first)] = b"".join(pieces[-1])
    number = (segments - 1) * batches if durable is None else durable
    marker = Marker(number=number, first_number=1, position=0, crc=crcs[number])
    files[JOURNAL / DURABLE] = encode_marker(marker)
    return files, pieces


def recover_all(
    files: Files, *, journal: Path = JOURNAL, quarantine: Path = QUARANTINE, after_number: int = 0
) -> tuple[Recovered, list[int]]:
    """Run a recovery to its end; return what it found and the values that it handed out."""
    values: list[int] = []
    steps = recover(
        journal,
        quarantine,
        files=files,
        cluster=CLUSTER,
        slots=SLOTS,
        after_number=after_number,
        on_batch=lambda batch: values.extend(values_of(batch)),
    )
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, values


class Values:
    """A histogram that keeps every value."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def observe(self, value: float, /) -> None:
        self.values.append(value)


class Counts:
    """What the writer counts into."""

    def __init__(self) -> None:
        self.journal_batches = 0
        self.journal_bytes_written = 0
        self.journal_records = 0
        self.journal_refusals = 0
        self.batch_entries = Values()
        self.batch_bytes = Values()
        self.sync_seconds = Values()


class Bench:
    """A real writer, and all that it told its callers."""

    def __init__(
        self,
        files: Files,
        syncer: SyncFiles,
        recovered: Recovered | None = None,
        *,
        directory: Path = JOURNAL,
        reserve_bytes: int = 0,
        **settings: Any,
    ) -> None:
        self.settled: list[object] = []
        self.batches: list[tuple[int, int]] = []
        self.refused: list[tuple[object, int | None]] = []
        self.sealed: list[Path] = []
        self.exits: list[int] = []
        self.now_ms = 1_000
        self.counts = Counts()
        self.reserve = Reserve(files, directory.parent / "reserve", reserve_bytes)
        recovered = recovered or Recovered()
        self.writer = JournalWriter(
            directory=directory,
            cluster=CLUSTER,
            epoch=recovered.last_epoch + 1,
            recovered=recovered,
            files=files,
            syncer=syncer,
            reserve=self.reserve,
            settings=WriterSettings(**settings),
            observed=self.counts,
            clock=lambda: self.now_ms,
            sequences=lambda: [len(self.settled)] * SLOTS,
            on_settled=self._settled,
            on_refused=self._refused,
            on_sealed=self.sealed.append,
            end_process=self.exits.append,
        )

    def append(self, value: int, size: int = 0) -> None:
        """Append an entry that holds this value; the value itself waits."""
        self.writer.append(entry(value, size), value)

    def _settled(self, waiters: list[object], number: int, time_ms: int) -> None:
        self.settled += waiters
        self.batches.append((number, time_ms))

    def _refused(self, waiters: list[object], error: OSError) -> None:
        self.refused += [(waiter, error.errno) for waiter in waiters]


def flip(data: bytes, bit: int) -> bytes:
    """Return the bytes with one bit turned over."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def u32(data: bytes, at: int) -> int:
    """Return the little-endian number at a place."""
    number: int = struct.unpack_from("<I", data, at)[0]
    return number
