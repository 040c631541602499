"""The batch frame and the segment header: what is written is read, and nothing else is."""

import struct
from pathlib import Path

import crc32c
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.journal.batch import (
    ENTRY_BYTES_MAX,
    HEADER_BYTES,
    NotABatch,
    cluster_seed,
    decode_batch,
    encode_batch,
    find_batch,
    fitting,
    frame_crc,
)
from offsetd.journal.segment import (
    Damage,
    NewerFormat,
    encode_header,
    iterate,
    read_batches,
    read_header,
    segment_name,
    segment_number,
)
from tests.fakes.journal import CLUSTER, flip, frames_of, small_journal, values_of

SEED = cluster_seed(CLUSTER)


@settings(derandomize=True, max_examples=100)
@given(
    bodies=st.lists(st.binary(max_size=40), min_size=1, max_size=5),
    number=st.integers(1, 2**64 - 1),
    previous_crc=st.integers(0, 2**32 - 1),
    epoch=st.integers(0, 2**32 - 1),
    time_ms=st.integers(0, 2**64 - 1),
)
def test_a_batch_is_read_as_it_was_written(
    bodies: list[bytes], number: int, previous_crc: int, epoch: int, time_ms: int
) -> None:
    """Every field and every entry comes back, and the frame fills whole words."""
    entries = [msgpack.packb([body]) for body in bodies]

    frame = encode_batch(
        entries,
        seed=SEED,
        number=number,
        previous_crc=previous_crc,
        synced_number=number - 1,
        epoch=epoch,
        time_ms=time_ms,
    )
    batch = decode_batch(b"12345678" + frame, 8, seed=SEED, shift=100)

    assert len(frame) % 8 == 0
    assert (batch.number, batch.previous_crc, batch.synced_number) == (number, previous_crc, number - 1)
    assert (batch.epoch, batch.time_ms, batch.count) == (epoch, time_ms, len(entries))
    assert (batch.position, batch.end, batch.crc) == (108, 108 + len(frame), frame_crc(frame))
    assert msgpack.unpackb(batch.body) == [[body] for body in bodies]


def test_no_flipped_bit_and_no_shorter_frame_is_read() -> None:
    """Every bit is covered by the checksum, or is compared."""
    (frame,) = frames_of([7])

    for bit in range(len(frame) * 8):
        with pytest.raises(NotABatch):
            decode_batch(flip(frame, bit), 0, seed=SEED)
    for size in range(len(frame)):
        with pytest.raises(NotABatch):
            decode_batch(frame[:size], 0, seed=SEED)


def test_zeros_are_no_batch() -> None:
    """Files grow by zeros in a power loss, so a length of 0 must never be valid."""
    with pytest.raises(NotABatch, match="zeros"):
        decode_batch(bytes(4096), 0, seed=SEED)


def test_a_batch_of_another_cluster_is_not_read() -> None:
    """The checksum is seeded with the cluster, so a copied file cannot pass."""
    (frame,) = frames_of([7], cluster=b"q" * 16)

    with pytest.raises(NotABatch, match="checksum"):
        decode_batch(frame, 0, seed=SEED)


def test_a_batch_is_found_wherever_it_stands() -> None:
    """The scan behind a defect must find whole batches at any byte."""
    frames = frames_of([7, 8])
    data = b"OFDB" + bytes(13) + frames[0] + b"junk" + frames[1]

    first = find_batch(data, 0, seed=SEED, number_min=1)
    second = find_batch(data, 0, seed=SEED, number_min=8)

    assert first is not None
    assert (first.number, first.position) == (7, 17)
    assert second is not None
    assert second.number == 8
    assert find_batch(data, 0, seed=SEED, number_min=9) is None
    assert find_batch(data, 0, seed=SEED, number_min=1, stop=17) is None


def test_entries_fit_until_the_batch_is_full() -> None:
    """A batch never splits an entry."""
    half = bytes(ENTRY_BYTES_MAX // 2)

    assert fitting([half, half]) == 2
    assert fitting([half, half, b"xx"]) == 2
    assert fitting([bytes(ENTRY_BYTES_MAX), b"x"]) == 1


def test_a_segment_header_is_read_as_it_was_written() -> None:
    """Also with no slot and with many; no flipped bit and no shorter header passes."""
    for slots in (0, 1, 50):
        header = encode_header(
            cluster=CLUSTER,
            first_number=9,
            previous_crc=5,
            epoch=3,
            created_ms=77,
            next_sequences=list(range(slots)),
        )

        read = read_header(header + b"more")

        assert (read.cluster, read.first_number, read.previous_crc) == (CLUSTER, 9, 5)
        assert (read.epoch, read.created_ms, read.length) == (3, 77, len(header))
        assert read.next_sequences == tuple(range(slots))
        for size in range(len(header)):
            with pytest.raises(Damage):
                read_header(header[:size])
        for bit in range(len(header) * 8):
            with pytest.raises(Damage):
                read_header(flip(header, bit))


def test_segment_names() -> None:
    """Twenty digits, and nothing else."""
    assert segment_name(17) == "00000000000000000017.segment"
    assert segment_number("00000000000000000017.segment") == 17
    for name in ("17.segment", "00000000000000000000.segment", "00000000000000000017.segment.bak", "notes"):
        assert segment_number(name) is None


def test_batches_are_read_in_bounded_pieces(tmp_path: Path) -> None:
    """Batches larger than a chunk, on its border, and passed over all read the same."""
    _, [[header, *frames]] = small_journal(segments=1, batches=9, size=300_000)
    path = tmp_path / segment_name(1)
    path.write_bytes(header + b"".join(frames))

    whole = list(read_batches(path))

    assert [values_of(batch) for batch in whole] == [[number] for number in range(1, 10)]
    assert list(read_batches(path, 4)) == whole[4:]
    assert list(iterate(path.read_bytes(), read_header(path.read_bytes()))) == whole
    assert whole[0].position == len(header)
    assert len(frames[0]) > HEADER_BYTES


def test_reading_stops_at_damage_with_its_place(tmp_path: Path) -> None:
    """The compactor must never fold a harmed segment."""
    _, [[header, *frames]] = small_journal(segments=1, batches=3)
    path = tmp_path / segment_name(1)
    path.write_bytes(header + frames[0] + frames[2])

    with pytest.raises(Damage, match="batch 3 stands where batch 2 should") as caught:
        list(read_batches(path))

    assert (caught.value.path, caught.value.position) == (path, len(header) + len(frames[0]))


def test_a_newer_segment_format_is_named() -> None:
    """Not damage: somebody went back to an older offsetd."""
    header = bytearray(
        encode_header(cluster=CLUSTER, first_number=1, previous_crc=0, epoch=1, created_ms=1, next_sequences=[1])
    )
    struct.pack_into("<H", header, 8, 2)
    struct.pack_into("<I", header, len(header) - 4, crc32c.crc32c(header[:-4]))

    with pytest.raises(NewerFormat, match="journal format 2"):
        read_header(bytes(header))
