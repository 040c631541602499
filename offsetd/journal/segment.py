"""One file of the journal: its name, its header, and the batches in it read in order.

Reading only. Who may append to a segment is the writer's business, what a defect means is the recovery's.
"""

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import crc32c

from offsetd.journal.batch import (
    BODY_BYTES_MAX,
    HEADER_BYTES,
    Batch,
    Bytes,
    NotABatch,
    cluster_seed,
    decode_batch,
    frame_bytes,
)

MAGIC: Final = b"OFFSETDJ"
FORMAT_VERSION: Final = 1
SUFFIX: Final = ".segment"
SLOTS_MAX: Final = 65_535

# magic | version | flags | header length | cluster uuid | first number | previous crc | epoch | created ms
# | slot count | reserved | reserved        (little-endian, 64 bytes), then u64 per slot, a reserved u32, crc32c
_FIXED: Final = struct.Struct("<8sHHI16sQIIQHHI")
_TAIL: Final = struct.Struct("<II")
_CRC: Final = struct.Struct("<I")
_NAME: Final = re.compile(r"^(\d{20})\.segment$")
FIXED_BYTES: Final = _FIXED.size
HEADER_BYTES_MAX: Final = FIXED_BYTES + 8 * SLOTS_MAX + _TAIL.size
CHUNK_BYTES: Final = 1024 * 1024

assert CHUNK_BYTES < BODY_BYTES_MAX


class Damage(Exception):
    """A place in the journal where the next batch should stand whole, and does not."""

    def __init__(self, path: Path, position: int, reason: str) -> None:
        super().__init__(f"{path}: damaged at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class NewerFormat(Exception):
    """A segment that a later offsetd wrote; nothing in it may be touched."""

    def __init__(self, path: Path, version: int, flags: int) -> None:
        super().__init__(
            f"{path} is of journal format {version} (flags {flags}); this offsetd knows format {FORMAT_VERSION} "
            "without flags. Start the offsetd that wrote it, or a later one."
        )
        self.path = path
        self.version = version


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentHeader:
    """What a segment says of itself before its first batch."""

    cluster: bytes
    first_number: int
    previous_crc: int
    epoch: int
    created_ms: int
    next_sequences: tuple[int, ...]
    length: int


def header_bytes(slots: int) -> int:
    """Return how long the header of a segment with so many slots is."""
    return FIXED_BYTES + 8 * slots + _TAIL.size


def segment_name(first_number: int) -> str:
    """Return the file name of the segment that begins with this batch."""
    return f"{first_number:020d}{SUFFIX}"


def segment_number(name: str) -> int | None:
    """Return the number of the first batch that a file name claims, None for a name that is no segment's."""
    found = _NAME.match(name)
    return int(found[1]) if found and int(found[1]) > 0 else None


def encode_header(
    *,
    cluster: bytes,
    first_number: int,
    previous_crc: int,
    epoch: int,
    created_ms: int,
    next_sequences: Sequence[int],
) -> bytes:
    """Return the header block of a new segment."""
    slots = len(next_sequences)
    length = header_bytes(slots)
    fixed = _FIXED.pack(
        MAGIC, FORMAT_VERSION, 0, length, cluster, first_number, previous_crc, epoch, created_ms, slots, 0, 0
    )
    covered = fixed + struct.pack(f"<{slots}QI", *next_sequences, 0)
    return covered + _CRC.pack(crc32c.crc32c(covered))


def read_header(data: Bytes, path: Path = Path("segment")) -> SegmentHeader:
    """Read the header at the start of a segment's bytes.

    Raises:
        Damage: it is cut short or harmed.
        NewerFormat: it is whole, and of a format that this offsetd does not know.
    """
    if len(data) < FIXED_BYTES:
        raise Damage(path, 0, f"the segment has {len(data)} bytes, its header needs {FIXED_BYTES}")
    (magic, version, flags, length, cluster, first, previous, epoch, created, slots, spare, spare_too) = (
        _FIXED.unpack_from(data)
    )
    if magic != MAGIC:
        raise Damage(path, 0, "the segment header does not begin as one")
    if length != header_bytes(slots) and version == FORMAT_VERSION:
        raise Damage(path, 0, f"the segment header claims {length} bytes and {slots} slots")
    if len(data) < length or length < FIXED_BYTES + _TAIL.size:
        raise Damage(path, 0, f"the segment header claims {length} bytes, the segment has {len(data)}")
    (crc,) = _CRC.unpack_from(data, length - _CRC.size)
    if crc32c.crc32c(data[: length - _CRC.size]) != crc:
        raise Damage(path, 0, "the checksum of the segment header does not match")
    if version != FORMAT_VERSION or flags or spare or spare_too:
        raise NewerFormat(path, version, flags)
    sequences = struct.unpack_from(f"<{slots}Q", data, FIXED_BYTES)
    return SegmentHeader(
        cluster=cluster,
        first_number=first,
        previous_crc=previous,
        epoch=epoch,
        created_ms=created,
        next_sequences=sequences,
        length=length,
    )


@dataclass(slots=True)
class Chain:
    """Where the chain of batches stands: each next one must follow what is kept here."""

    number: int
    crc: int
    epoch: int

    @classmethod
    def before(cls, header: SegmentHeader) -> "Chain":
        """Return the link to which a segment's first batch is tied."""
        return cls(number=header.first_number - 1, crc=header.previous_crc, epoch=header.epoch)

    def follow(self, batch: Batch) -> None:
        """Take the next batch.

        Raises:
            NotABatch: it is a whole batch, but not the next one of this journal.
        """
        if batch.number != self.number + 1:
            raise NotABatch(f"batch {batch.number} stands where batch {self.number + 1} should")
        if batch.previous_crc != self.crc:
            raise NotABatch(f"batch {batch.number} does not follow the batch before it")
        if batch.epoch < self.epoch:
            raise NotABatch(f"batch {batch.number} is of epoch {batch.epoch}, after epoch {self.epoch}")
        self.number, self.crc, self.epoch = batch.number, batch.crc, batch.epoch


def iterate(
    data: Bytes, header: SegmentHeader, *, path: Path = Path("segment"), chain: Chain | None = None
) -> Iterator[Batch]:
    """Yield the batches of a whole segment held in memory.

    Raises:
        Damage: at the first place where the next batch cannot be read.
    """
    reader = memoryview(data)

    def read(position: int, size: int) -> bytes:
        return bytes(reader[position : position + size])

    yield from _walk(read, header, path=path, chain=chain or Chain.before(header))


def walk(
    read: Callable[[int, int], bytes], *, path: Path, chain: Chain | None = None
) -> tuple[SegmentHeader, Iterator[Batch]]:
    """Read a segment's header, and return it with an iterator over its batches.

    Args:
        read: gives the bytes at (position, size), fewer only at the end of the file.
        path: named in what is raised.
        chain: the link before the first batch, where it is known from the segment before.
    """
    header = load_header(read, path=path)
    return header, _walk(read, header, path=path, chain=chain or Chain.before(header))


def walk_on(
    read: Callable[[int, int], bytes], header: SegmentHeader, *, path: Path, chain: Chain, position: int
) -> Iterator[Batch]:
    """Yield the batches from a place on that an earlier walk has reached; `chain` is where it stood there."""
    return _walk(read, header, path=path, chain=chain, position=position)


def load_header(read: Callable[[int, int], bytes], *, path: Path) -> SegmentHeader:
    """Read a segment's header through `read`."""
    start = read(0, FIXED_BYTES)
    if len(start) == FIXED_BYTES and start[: len(MAGIC)] == MAGIC:
        length = _FIXED.unpack(start)[3]
        start = read(0, min(length, HEADER_BYTES_MAX))
    return read_header(start, path)


def _walk(
    read: Callable[[int, int], bytes],
    header: SegmentHeader,
    *,
    path: Path,
    chain: Chain,
    position: int | None = None,
) -> Iterator[Batch]:
    seed = cluster_seed(header.cluster)
    position = header.length if position is None else position
    shift = position  # the place of data[0] in the file
    data = read(shift, CHUNK_BYTES)
    while True:
        at = position - shift
        try:
            if len(data) - at < HEADER_BYTES:
                data, shift, at = read(position, CHUNK_BYTES), position, 0
                if not data:
                    return
            size = frame_bytes(data, at)
            if len(data) - at < size:
                data, shift, at = read(position, max(CHUNK_BYTES, size)), position, 0
            batch = decode_batch(data, at, seed=seed, shift=shift)
            chain.follow(batch)
        except NotABatch as broken:
            raise Damage(path, position, broken.reason) from None
        position = batch.end
        yield batch


def read_batches(path: Path, after_number: int = 0) -> Iterator[Batch]:
    """Yield the batches of a segment file whose number is above `after_number`, in bounded memory.

    Every batch is checked, also those that are passed over.

    Raises:
        Damage: at the first place where the next batch cannot be read.
        NewerFormat: a later offsetd wrote the segment.
    """
    with path.open("rb", buffering=0) as file:

        def read(position: int, size: int) -> bytes:
            file.seek(position)
            pieces = []
            while size > 0 and (piece := file.read(size)):
                pieces.append(piece)
                size -= len(piece)
            return b"".join(pieces)

        _, batches = walk(read, path=path)
        for batch in batches:
            if batch.number > after_number:
                yield batch
