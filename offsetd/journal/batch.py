"""The batch frame: what one sync makes durable, as bytes.

Pure: no files, no clock, no knowledge of what an entry means. `docs/journal-format.md` is the law for every byte here.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import crc32c

MAGIC: Final = b"OFDB"
FORMAT_VERSION: Final = 1
BODY_BYTES_MAX: Final = 8 * 1024 * 1024

# magic | crc32c | previous crc | body length | version | flags | reserved | epoch
# | number | synced number | time ms | count | reserved            (little-endian, 56 bytes)
HEADER: Final = struct.Struct("<4sIIIBBHIQQQII")
HEADER_BYTES: Final = HEADER.size
_AFTER_CRC: Final = struct.Struct("<IIBBHIQQQII")
_CRC: Final = struct.Struct("<I")
_NUMBER: Final = struct.Struct("<Q")
_CRC_AT: Final = 4
_AFTER_CRC_AT: Final = 8
_BODY_LENGTH: Final = struct.Struct("<I")
_BODY_LENGTH_AT: Final = 12

# msgpack's array32: its five bytes are the same for every count, so the body can be joined without looking at it.
_ARRAY: Final = struct.Struct(">BI")
ARRAY_HEADER_BYTES: Final = _ARRAY.size
_ARRAY32: Final = 0xDD
ENTRY_BYTES_MAX: Final = BODY_BYTES_MAX - ARRAY_HEADER_BYTES
_PADDINGS: Final = tuple(b"\0" * (-size % 8) for size in range(8))

Bytes = bytes | bytearray | memoryview


class NotABatch(ValueError):
    """The bytes at this place are not a whole, unharmed batch."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch as it was read: `position` and `end` are byte places in its segment, the body is msgpack."""

    number: int
    crc: int
    previous_crc: int
    synced_number: int
    epoch: int
    count: int
    time_ms: int
    body: bytes
    position: int
    end: int


def cluster_seed(cluster: bytes) -> int:
    """Return the CRC of the cluster's uuid, from which the seed of each batch grows."""
    assert len(cluster) == 16, "a cluster uuid has 16 bytes"
    seed: int = crc32c.crc32c(cluster)
    return seed


def encode_batch(
    entries: Sequence[bytes],
    *,
    seed: int,
    number: int,
    previous_crc: int,
    synced_number: int,
    epoch: int,
    time_ms: int,
) -> bytes:
    """Return the frame of one batch.

    Args:
        entries: encoded msgpack arrays, taken as they are.
        seed: what `cluster_seed` returned.
    """
    count = len(entries)
    body = b"".join((_ARRAY.pack(_ARRAY32, count), *entries))
    length = len(body)
    assert count > 0, "a batch has at least one entry"
    assert length <= BODY_BYTES_MAX, "the writer splits before a batch grows too large"
    head = _AFTER_CRC.pack(previous_crc, length, FORMAT_VERSION, 0, 0, epoch, number, synced_number, time_ms, count, 0)
    rest = b"".join((head, body, _PADDINGS[length % 8]))
    crc = crc32c.crc32c(rest, crc32c.crc32c(_NUMBER.pack(number), seed))
    return b"".join((MAGIC, _CRC.pack(crc), rest))


def fitting(entries: list[bytes]) -> int:
    """Return how many of the entries fit into one batch."""
    if sum(map(len, entries)) <= ENTRY_BYTES_MAX:
        return len(entries)
    total = 0
    for taken, entry in enumerate(entries):
        total += len(entry)
        if total > ENTRY_BYTES_MAX:
            return taken
    return len(entries)


def frame_crc(frame: Bytes) -> int:
    """Return the CRC that stands in a frame."""
    crc: int = _CRC.unpack_from(frame, _CRC_AT)[0]
    return crc


def frame_bytes(data: Bytes, at: int) -> int:
    """Return how long the frame is whose header stands at `at`, padding included; trust nothing else of it.

    Raises:
        NotABatch: the header is cut short, is no header, or names an impossible length.
    """
    left = len(data) - at
    if left < HEADER_BYTES:
        raise NotABatch(f"only {left} bytes are left, a batch header has {HEADER_BYTES}")
    if bytes(data[at : at + 4]) != MAGIC:
        if not any(data[at : at + HEADER_BYTES]):
            raise NotABatch("zeros stand where a batch should begin")
        raise NotABatch("no batch begins here")
    length: int = _BODY_LENGTH.unpack_from(data, at + _BODY_LENGTH_AT)[0]
    if not ARRAY_HEADER_BYTES < length <= BODY_BYTES_MAX:
        raise NotABatch(f"the batch claims a body of {length} bytes")
    return HEADER_BYTES + length + -length % 8


def decode_batch(data: Bytes, at: int, *, seed: int, shift: int = 0) -> Batch:
    """Read the batch at `at`; its CRC is checked, its place in the chain is not.

    Args:
        data: bytes of a segment, or a part of it.
        at: where in `data` the frame begins.
        seed: what `cluster_seed` returned.
        shift: the place of `data[0]` in the segment.

    Raises:
        NotABatch: the bytes are cut short or harmed.
    """
    size = frame_bytes(data, at)
    end = at + size
    if end > len(data):
        raise NotABatch(f"the batch needs {size} bytes, only {len(data) - at} are left")
    (_, crc, previous, length, version, flags, spare, epoch, number, synced, time_ms, count, spare_too) = (
        HEADER.unpack_from(data, at)
    )
    if crc32c.crc32c(data[at + _AFTER_CRC_AT : end], crc32c.crc32c(_NUMBER.pack(number), seed)) != crc:
        raise NotABatch("the checksum does not match")
    if version != FORMAT_VERSION or flags or spare or spare_too:
        raise NotABatch(
            f"the batch is of format {version} with flags {flags}, "
            f"this offsetd knows format {FORMAT_VERSION} and no flags"
        )
    body_at = at + HEADER_BYTES
    body = bytes(data[body_at : body_at + length])
    if _ARRAY.unpack_from(body) != (_ARRAY32, count) or count == 0:
        raise NotABatch(f"the body does not hold the {count} entries that its header names")
    if not synced < number:
        raise NotABatch(f"batch {number} claims that batch {synced} was synced before it")
    return Batch(number, crc, previous, synced, epoch, count, time_ms, body, shift + at, shift + end)


def find_batch(
    data: bytes, at: int, *, seed: int, number_min: int, shift: int = 0, stop: int | None = None
) -> Batch | None:
    """Return the first unharmed batch that begins in `at`..`stop` and has at least this number, wherever it stands."""
    at = data.find(MAGIC, at)
    while at >= 0 and (stop is None or at < stop):
        try:
            batch = decode_batch(data, at, seed=seed, shift=shift)
        except NotABatch:
            batch = None
        if batch is not None and batch.number >= number_min:
            return batch
        at = data.find(MAGIC, at + 1)
    return None
