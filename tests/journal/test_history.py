"""History goes oldest first, by age and by size, and age is what the batches say."""

import os
from pathlib import Path

from offsetd.journal.history import HistorySegment, HistorySize, choose, list_history, newest_kept_ms, size, trim
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
