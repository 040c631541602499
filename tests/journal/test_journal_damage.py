"""Recovery of harmed journals: each harm has the outcome that the decision table names, never other values."""

import struct
from pathlib import Path

import crc32c
import pytest

from offsetd.journal.marker import CLEAN_STOP, DURABLE, Marker, encode_marker
from offsetd.journal.recovery import JournalRefused
from offsetd.journal.segment import segment_name
from tests.fakes.disk import FakeDisk
from tests.fakes.journal import JOURNAL, QUARANTINE, flip, frames_of, recover_all, small_journal

ALL = list(range(1, 13))
LAST = JOURNAL / segment_name(9)


def outcome(files: dict[Path, bytes], *, after_number: int = 0) -> list[int] | None:
    """Return the values that recovery hands out, None if it refuses."""
    disk = FakeDisk(files)
    try:
        recovered, values = recover_all(disk, after_number=after_number)
    except JournalRefused:
        assert QUARANTINE not in {path.parent for path in disk.names}, "a refused journal is left alone"
        return None
    again, same = recover_all(disk.power_cut(), after_number=after_number)
    assert same == values, "what was recovered must survive a power cut"
    assert again.torn is None
    assert recovered.last_batch_number == (values[-1] if values else after_number)
    return values


def test_a_whole_journal_is_read() -> None:
    """And written on where it ends."""
    files, pieces = small_journal()

    recovered, values = recover_all(FakeDisk(files))

    assert values == ALL
    assert [segment.last_number for segment in recovered.segments] == [4, 8, 12]
    assert recovered.end_position == len(b"".join(pieces[2]))
    assert (recovered.last_batch_number, recovered.last_epoch, recovered.last_time_ms) == (12, 1, 1_012)
    assert (recovered.torn, recovered.clean) == (None, False)


def test_every_truncation_of_the_last_segment() -> None:
    """Cut to the last whole batch; within the header it was a crash while rolling."""
    files, pieces = small_journal()
    ends = [sum(map(len, pieces[2][: count + 1])) for count in range(5)]

    for size in range(len(files[LAST]) + 1):
        whole = sum(end <= size for end in ends) - 1
        assert outcome(files | {LAST: files[LAST][:size]}) == ALL[: 8 + max(whole, 0)], size


def test_every_truncation_after_a_clean_stop_is_refused() -> None:
    """The durable marker names batch 12, so a shorter journal has lost it."""
    files, _ = small_journal(durable=12)

    for size in range(len(files[LAST])):
        assert outcome(files | {LAST: files[LAST][:size]}) is None, size
    assert outcome(files) == ALL


def test_every_truncation_of_a_sealed_segment_is_refused() -> None:
    """A sealed segment was synced to its end."""
    files, _ = small_journal()

    for path in (JOURNAL / segment_name(1), JOURNAL / segment_name(5)):
        for size in range(len(files[path])):
            assert outcome(files | {path: files[path][:size]}) is None, (path, size)


def test_every_flipped_bit() -> None:
    """Only the very last batch cannot be told from a torn one; it is cut, everything else is refused."""
    files, pieces = small_journal()
    torn_from = len(b"".join(pieces[2][:4]))

    for path in (JOURNAL / segment_name(number) for number in (1, 5, 9)):
        for bit in range(len(files[path]) * 8):
            expected = ALL[:11] if path == LAST and bit // 8 >= torn_from else None
            assert outcome(files | {path: flip(files[path], bit)}) == expected, (path, bit)


def test_every_flipped_bit_of_the_last_batch_after_a_clean_stop_is_refused() -> None:
    """After a clean stop the last batch was known to be durable."""
    files, pieces = small_journal(durable=12)

    for bit in range(len(b"".join(pieces[2][:4])) * 8, len(files[LAST]) * 8):
        assert outcome(files | {LAST: flip(files[LAST], bit)}) is None, bit


def test_every_flipped_bit_of_a_marker_changes_no_values() -> None:
    """Markers are only believed whole."""
    files, _ = small_journal(durable=12)

    for bit in range(len(files[JOURNAL / DURABLE]) * 8):
        assert outcome(files | {JOURNAL / DURABLE: flip(files[JOURNAL / DURABLE], bit)}) == ALL, bit


LARGE, LARGE_PIECES = small_journal(size=1500)


def blocks(size: int) -> list[tuple[int, int]]:
    """Return the blocks of the last segment of the large journal."""
    length = len(LARGE[LAST])
    return [(at, min(at + size, length)) for at in range(0, length, 512)]


def expected_of(data: bytes) -> list[int] | None:
    """Return what the table says of the large journal's last segment, by comparing it with the unharmed one."""
    ends = [sum(map(len, LARGE_PIECES[2][: count + 1])) for count in range(5)]
    begins = [0, *ends[:-1]]
    whole = [data[begin:end] == LARGE[LAST][begin:end] for begin, end in zip(begins, ends, strict=True)]
    if all(whole):
        return ALL
    first = whole.index(False)
    return None if first == 0 or any(whole[first:]) else ALL[: 8 + first - 1]


@pytest.mark.parametrize("size", [512, 4096])
def test_zeroed_blocks(size: int) -> None:
    """Lost blocks are a torn tail if no whole batch stands behind them, else damage."""
    for begin, end in blocks(size):
        data = LARGE[LAST]
        data = data[:begin] + bytes(end - begin) + data[end:]
        assert outcome(LARGE | {LAST: data}) == expected_of(data), begin


@pytest.mark.parametrize("size", [512, 4096])
def test_copied_and_swapped_blocks(size: int) -> None:
    """Right bytes at the wrong place: refused, or cut as a tail, never other values."""
    data = LARGE[LAST]
    places = [(begin, end) for begin, end in blocks(size) if end - begin == size]
    for begin, end in places:
        inserted = data[:begin] + data[begin:end] + data[begin:]
        assert outcome(LARGE | {LAST: inserted}) in (None, expected_of(inserted), ALL), begin
        for other, other_end in places:
            copied = bytearray(data)
            copied[begin:end] = data[other:other_end]
            assert outcome(LARGE | {LAST: bytes(copied)}) in (None, expected_of(bytes(copied)))
            if begin + size <= other:
                swapped = bytearray(copied)
                swapped[other:other_end] = data[begin:end]
                assert outcome(LARGE | {LAST: bytes(swapped)}) in (None, expected_of(bytes(swapped)))


def test_blocks_of_an_old_file() -> None:
    """A block from another segment, or from another cluster's journal, does not pass."""
    other, _ = small_journal(size=1500, cluster=b"o" * 16)
    data = LARGE[LAST]
    for source in (LARGE[JOURNAL / segment_name(5)], other[LAST]):
        for begin, end in blocks(512):
            mixed = data[:begin] + source[begin:end].ljust(end - begin, b"\0") + data[end:]
            assert outcome(LARGE | {LAST: mixed}) == expected_of(mixed), begin


def test_a_tail_of_zeros_is_cut() -> None:
    """The size reached the disk, the data did not."""
    files, _ = small_journal()
    disk = FakeDisk(files | {LAST: files[LAST] + bytes(4096)})

    recovered, values = recover_all(disk)

    assert values == ALL
    assert recovered.torn is not None
    assert recovered.torn.size == 4096
    assert disk.content()[recovered.torn.quarantine] == bytes(4096)
    assert disk.content()[LAST] == files[LAST]


def test_what_is_cut_is_kept_under_a_free_name() -> None:
    """Quarantine never loses what it holds."""
    files, _ = small_journal()
    taken = QUARANTINE / f"{LAST.name}.{len(files[LAST])}"
    disk = FakeDisk(files | {LAST: files[LAST] + b"junk", taken: b"older"})

    recovered, _ = recover_all(disk)

    assert recovered.torn is not None
    assert recovered.torn.quarantine == taken.with_name(taken.name + ".2")
    assert disk.content()[taken] == b"older"
    assert disk.content()[recovered.torn.quarantine] == b"junk"


def test_frames_that_call_the_bad_one_unsynced_are_an_unsynced_tail() -> None:
    """With a lax flush setting a later page may reach the disk before an earlier one."""
    files, pieces = small_journal(segments=1, batches=6, synced=lambda number: min(number - 1, 2), durable=0)
    path = JOURNAL / segment_name(1)
    for lost in range(3, 7):
        harmed = [piece if place != lost else bytes(len(piece)) for place, piece in enumerate(pieces[0])]
        assert outcome(files | {path: b"".join(harmed)}) == ALL[: lost - 1]
    for lost in (1, 2):
        harmed = [piece if place != lost else bytes(len(piece)) for place, piece in enumerate(pieces[0])]
        assert outcome(files | {path: b"".join(harmed)}) is None


def test_missing_segments_are_refused() -> None:
    """The first is a gap to the checkpoint, the middle a gap in the chain, the last is below the marker."""
    for first, durable in ((1, 8), (5, 8), (9, 12)):
        files, _ = small_journal(durable=durable)
        del files[JOURNAL / segment_name(first)]
        assert outcome(files) is None


def test_a_renamed_or_doubled_segment_is_refused_by_its_path() -> None:
    """The name must be the number in the header."""
    for harm in ("rename", "double"):
        files, _ = small_journal()
        middle = JOURNAL / segment_name(5)
        files[JOURNAL / segment_name(6)] = files[middle]
        if harm == "rename":
            del files[middle]
        with pytest.raises(JournalRefused, match="its name says 6") as caught:
            recover_all(FakeDisk(files))
        assert caught.value.path == JOURNAL / segment_name(6)


def test_a_segment_of_another_cluster_is_refused() -> None:
    """Somebody mixed two data directories."""
    files, _ = small_journal()
    other, _ = small_journal(cluster=b"o" * 16)

    with pytest.raises(JournalRefused, match="another cluster"):
        recover_all(FakeDisk(files | {LAST: other[LAST]}))


def test_a_newer_format_is_refused_and_nothing_is_written() -> None:
    """Neither the clean-stop file nor anything else is touched."""
    files, _ = small_journal()
    newer = bytearray(files[LAST])
    struct.pack_into("<H", newer, 8, 2)
    length = struct.unpack_from("<I", newer, 12)[0]
    struct.pack_into("<I", newer, length - 4, crc32c.crc32c(newer[: length - 4]))
    files |= {LAST: bytes(newer), JOURNAL / CLEAN_STOP: b"whatever"}
    disk = FakeDisk(files)

    with pytest.raises(JournalRefused, match="journal format 2"):
        recover_all(disk)

    assert disk.content() == files


def test_an_empty_last_file_is_a_crash_while_rolling() -> None:
    """It goes to quarantine if it follows the end; a gap or an older empty file is damage."""
    files, _ = small_journal()

    assert outcome(files | {JOURNAL / segment_name(13): b""}) == ALL
    assert outcome(files | {JOURNAL / segment_name(14): b""}) is None
    assert outcome(files | {JOURNAL / segment_name(5): b""}) is None
    assert outcome({JOURNAL / segment_name(1): b""}) == []


def test_an_empty_journal_is_read() -> None:
    """Nothing was ever written, or nothing but a header."""
    files, pieces = small_journal(segments=1, batches=1, durable=0)

    assert outcome({}) == []
    assert outcome(files | {JOURNAL / segment_name(1): pieces[0][0]}) == []


def test_foreign_files_are_left_alone() -> None:
    """With a warning in the log."""
    files, _ = small_journal()
    disk = FakeDisk(files | {JOURNAL / "notes.txt": b"mine", JOURNAL / "1.segment": b"old"})

    _, values = recover_all(disk)

    assert values == ALL
    assert disk.content()[JOURNAL / "notes.txt"] == b"mine"


def test_what_the_checkpoint_holds_is_not_handed_out_again() -> None:
    """Whole segments that it covers are not even read; a half-covered one is."""
    files, _ = small_journal()
    harmed = files | {JOURNAL / segment_name(1): flip(files[JOURNAL / segment_name(1)], 8 * 120)}

    assert outcome(files, after_number=4) == ALL[4:]
    assert outcome(files, after_number=6) == ALL[6:]
    assert outcome(harmed, after_number=4) == ALL[4:]
    assert outcome(harmed, after_number=3) is None
    assert outcome(files, after_number=12) == []


def test_a_checkpoint_past_the_end_or_behind_a_gap_is_refused() -> None:
    """Both belong to another journal, or a part of this one is gone."""
    files, _ = small_journal()
    with pytest.raises(JournalRefused, match="the checkpoint holds batch 13"):
        recover_all(FakeDisk(files), after_number=13)
    del files[JOURNAL / segment_name(1)]
    with pytest.raises(JournalRefused, match="begins with batch 5, but the checkpoint ends with batch 3"):
        recover_all(FakeDisk(files), after_number=3)
    with pytest.raises(JournalRefused, match="the checkpoint holds batch 4"):
        recover_all(FakeDisk({}), after_number=4)


def test_a_marker_of_another_journal_is_refused() -> None:
    """The batch that it names has another checksum here."""
    files, _ = small_journal()
    marker = encode_marker(Marker(number=7, first_number=5, position=0, crc=1))

    with pytest.raises(JournalRefused, match="not the one that the durable marker names"):
        recover_all(FakeDisk(files | {JOURNAL / DURABLE: marker}))


def test_the_clean_stop_file_goes_before_anything_is_read() -> None:
    """A start that dies half-way must not leave a promise that no longer holds."""
    files, _ = small_journal(durable=12)
    files[JOURNAL / CLEAN_STOP] = files[JOURNAL / DURABLE]
    disk = FakeDisk(files)

    recovered, _ = recover_all(disk)

    assert recovered.clean
    assert JOURNAL / CLEAN_STOP not in disk.power_cut().names
    assert not recover_all(disk)[0].clean

    harmed = FakeDisk(files | {LAST: files[LAST][:-1]})
    for _ in range(2):  # the second start must refuse as the first did
        with pytest.raises(JournalRefused, match="batch 12 was durable"):
            recover_all(harmed)


def test_a_batch_of_an_older_epoch_does_not_follow() -> None:
    """A frame of an earlier life cannot continue the chain of a later one."""
    _, [[header, *_]] = small_journal(segments=1, batches=2, durable=0)
    newer = frames_of([1], epoch=2)
    older = frames_of([2], previous_crc=struct.unpack_from("<I", newer[0], 4)[0], epoch=1)
    path = JOURNAL / segment_name(1)

    assert outcome({path: header + newer[0] + older[0]}) is None
