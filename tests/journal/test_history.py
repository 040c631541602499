"""History goes oldest first, by age and by size, and age is what the batches say."""

import os
from datetime import date
from pathlib import Path

from offsetd.journal.history import HistorySegment, HistorySize, choose, list_history, newest_kept_ms, size, trim
from offsetd.journal.sealed import list_sealed, sealed_path
from offsetd.record import encode_opening
from tests.segments import JournalFiles


def _segments(*sizes: int) -> list[HistorySegment]:
    return [HistorySegment(Path(f"{number}"), bytes_) for number, bytes_ in enumerate(sizes)]


def _chosen(
    segments: list[HistorySegment], moments: list[int | None], *, retention_ms: int = 100, retention_bytes: int = 1000
) -> list[str]:
    found = choose(
        segments,
        lambda segment: moments[int(segment.path.name)],
        now_ms=1000,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
    )
    return [segment.path.name for segment in found]


def test_nothing_young_and_small_goes() -> None:
    assert _chosen(_segments(10, 10), [900, 1000]) == []
    assert _chosen([], []) == []


def test_the_oldest_go_until_one_is_young_enough() -> None:
    assert _chosen(_segments(10, 10, 10), [100, 899, 900]) == ["0", "1"]


def test_the_oldest_go_until_the_rest_is_small_enough() -> None:
    assert _chosen(_segments(600, 600, 600), [1000, 1000, 1000]) == ["0", "1"]
    assert _chosen(_segments(600), [1000], retention_bytes=0) == ["0"]


def test_an_old_segment_behind_a_young_one_stays_so_that_there_is_no_gap() -> None:
    assert _chosen(_segments(10, 10), [1000, 100]) == []


def test_a_segment_without_a_time_goes_with_the_one_after_it() -> None:
    assert _chosen(_segments(10, 10, 10), [None, 100, 1000]) == ["0", "1"]
    assert _chosen(_segments(10, 10), [None, 1000]) == []
    assert _chosen(_segments(10), [None]) == []
    assert _chosen(_segments(600, 600), [None, 1000]) == ["0"]


def test_trim_believes_the_batches_and_not_the_files(tmp_path: Path) -> None:
    journal = JournalFiles(tmp_path)
    for number in range(1, 4):
        path = journal.segment([[encode_opening(1, 5, "0.1.0")]], time_ms=number * 1000)
        os.utime(path, (0, 0))
    (tmp_path / "notes.txt").write_text("of the operator")
    total = size(tmp_path)

    gone = trim(tmp_path, now_ms=3500, retention_ms=1500, retention_bytes=1 << 30)

    assert gone.segments == 1
    assert [segment.path for segment in list_history(tmp_path)] == journal.paths[1:]
    assert size(tmp_path) == HistorySize(2, total.size_bytes - gone.size_bytes)
    assert (tmp_path / "notes.txt").exists()


def test_an_unreadable_segment_has_no_time(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000001.segment"
    path.write_bytes(b"nonsense")

    assert newest_kept_ms(HistorySegment(path, 8)) is None
    assert newest_kept_ms(HistorySegment(tmp_path / "gone", 8)) is None


def test_no_directory_is_no_history(tmp_path: Path) -> None:
    assert size(tmp_path / "none") == HistorySize(0, 0)
    assert trim(tmp_path / "none", now_ms=1, retention_ms=0, retention_bytes=0) == HistorySize(0, 0)


#: 1970-02-19 and the day after, around the times that segments of these tests are made at.
DAY, NEXT_DAY = date(1970, 2, 19), date(1970, 2, 20)
DAY_END_MS = 50 * 86_400_000 - 1


class Mixed:
    """Two sealed files of 100 bytes, batches 1 to 3, and segments with the batches 4 and 5."""

    def __init__(self, path: Path) -> None:
        self.segments, self.sealed = path / "segments", path / "sealed"
        self.journal = JournalFiles(self.segments)
        self.seal(DAY, 1, 2)
        self.seal(NEXT_DAY, 3, 3)
        for number in range(1, 6):
            segment = self.journal.segment([[encode_opening(1, 5, "0.1.0")]], time_ms=DAY_END_MS + 86_400_000)
            if number < 4:
                segment.unlink()

    def seal(self, day: date, first: int, last: int) -> None:
        path = sealed_path(self.sealed, day, first, last)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (0, 0))

    def trim(self, *, now_ms: int = 0, retention_ms: int = 1 << 40, retention_bytes: int = 1 << 30) -> HistorySize:
        return trim(
            self.segments, self.sealed, now_ms=now_ms, retention_ms=retention_ms, retention_bytes=retention_bytes
        )

    def left(self) -> list[int]:
        """Return the first batch of all that is left."""
        files = [file.first_number for file in list_sealed(self.sealed)]
        return files + [int(segment.path.stem) for segment in list_history(self.segments)]


def test_sealed_files_count_with_segments_and_go_before_them(tmp_path: Path) -> None:
    mixed = Mixed(tmp_path)
    kept = size(mixed.segments, mixed.sealed)
    assert (kept.segments, kept.sealed_files, kept.sealed_bytes) == (2, 2, 200)
    assert kept.total_bytes == kept.size_bytes + 200
    assert mixed.trim(retention_bytes=kept.total_bytes) == HistorySize(0, 0)

    gone = mixed.trim(retention_bytes=kept.total_bytes - 1)

    assert (gone.segments, gone.sealed_files, gone.total_bytes) == (0, 1, 100)
    assert mixed.left() == [3, 4, 5]
    assert [path.name for path in mixed.sealed.iterdir()] == ["day=1970-02-20"]
    gone = mixed.trim(retention_bytes=kept.size_bytes - 1)
    assert (gone.segments, gone.sealed_files) == (1, 1)
    assert mixed.left() == [5]


def test_a_sealed_file_is_as_old_as_the_end_of_its_day(tmp_path: Path) -> None:
    mixed = Mixed(tmp_path)

    assert mixed.trim(now_ms=DAY_END_MS + 1000, retention_ms=1000).total_bytes == 0
    assert mixed.trim(now_ms=DAY_END_MS + 1001, retention_ms=1000).sealed_files == 1
    assert mixed.left() == [3, 4, 5]


def test_what_a_killed_run_left_twice_goes_so_that_no_batch_is_missing_in_between(tmp_path: Path) -> None:
    """A file goes before the segment that it was made from."""
    mixed = Mixed(tmp_path)
    mixed.seal(NEXT_DAY, 4, 4)
    total = size(mixed.segments, mixed.sealed).total_bytes

    mixed.trim(retention_bytes=total - 201)

    assert [file.first_number for file in list_sealed(mixed.sealed)] == []
    assert mixed.left() == [4, 5]
