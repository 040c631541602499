"""Sealing: each record exactly once, by day, sorted, whatever was written and wherever an earlier run ended."""

import re
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd import failpoint
from offsetd.history.columns import schema
from offsetd.history.seal import FILE_ROWS, TEMPORARY, Done, SealedByAnother, SegmentRefused, alone, seal
from offsetd.journal.directory import BrokerDirectory
from offsetd.journal.files import OsFiles
from offsetd.journal.history import trim
from offsetd.journal.sealed import SealedFile, day_of, list_sealed, sealed_through
from offsetd.journal.segment import Damage, segment_name
from offsetd.record import UnknownEntry
from tests.directories import commit, flip_byte, position_of
from tests.fakes.journal import entry
from tests.histories import WHOS, Step, Touch, encode, steps
from tests.history.released import IDENTITY, MIDNIGHT_MS, Released, everything, rows_of, segment_rows
from tests.segments import JournalFiles

DAY_MS = 86_400_000
COLUMNS = schema().names


@pytest.fixture
def released(tmp_path: Path) -> Released:
    return Released(tmp_path / "broker-1")


def run(released: Released, *, file_rows: int = FILE_ROWS) -> Done:
    done = Done()
    seal(released.directory, IDENTITY, done=done, file_rows=file_rows)
    return done


_days = st.sampled_from((0, 0, 0, 0, 1, 2))
_batches = st.lists(st.tuples(st.lists(steps, min_size=1, max_size=3), _days), max_size=6)


@settings(deadline=None, max_examples=25)
@given(history=st.lists(_batches, min_size=1, max_size=4), file_rows=st.sampled_from((1, 30, 100, FILE_ROWS)))
def test_every_record_is_sealed_once_into_the_file_of_its_day(
    history: list[list[tuple[list[Step], int]]], file_rows: int
) -> None:
    with TemporaryDirectory() as folder:
        released = Released(Path(folder))
        for batches in history:
            if batches or released.files.number == 0:
                times = [MIDNIGHT_MS + day * DAY_MS for _, day in batches]
                released.files.segment([[encode(step) for step in batch] for batch, _ in batches], time_ms=times)
        before = everything(released.directory)

        done = run(released, file_rows=file_rows)

        assert everything(released.directory) == before
        assert (released.segments(), released.strays()) == ([], [])
        files = list_sealed(released.directory.sealed)
        assert sealed_through(files, 1) == released.files.number
        assert (done.files, done.batches, done.records) == (len(files), released.files.number, len(before))
        for file in files:
            check_file(file)


def check_file(file: SealedFile) -> None:
    """A file holds what its name says, in the order that readers are promised."""
    table = pq.read_table(file.path, partitioning=None)
    assert table.schema.remove_metadata() == schema()
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in rows_of(table)]
    assert all(file.first_number <= row["batch"] <= file.last_number for row in rows)
    assert all(day_of(row["batch_time"] // 1000) == file.day for row in rows)
    keys = [(row["group"], row["topic"], row["partition"], row["sequence"]) for row in rows]
    order = [
        tuple((value is not None, value.encode() if isinstance(value, str) else value) for value in key) for key in keys
    ]
    assert order == sorted(order, key=lambda key: [(there, value if there else 0) for there, value in key])


def test_small_segments_of_a_day_become_one_file_and_midnight_divides(released: Released) -> None:
    released.write([MIDNIGHT_MS - 3])
    released.write([MIDNIGHT_MS - 2, MIDNIGHT_MS - 1])
    released.write([MIDNIGHT_MS, MIDNIGHT_MS + 1])
    released.write([MIDNIGHT_MS + 2])

    done = run(released)

    assert released.sealed() == [
        "day=2026-03-01/00000000000000000001-00000000000000000003.parquet",
        "day=2026-03-02/00000000000000000004-00000000000000000006.parquet",
    ]
    assert (done.segments, done.files) == (4, 2)


def test_a_large_segment_is_divided_so_that_memory_is_bounded(released: Released) -> None:
    released.write([MIDNIGHT_MS] * 10)

    run(released, file_rows=4)

    assert [(file.first_number, file.last_number) for file in list_sealed(released.directory.sealed)] == [
        (1, 4),
        (5, 8),
        (9, 10),
    ]


def test_a_clock_that_goes_back_over_midnight_makes_more_files_and_loses_nothing(released: Released) -> None:
    released.write([MIDNIGHT_MS - 1, MIDNIGHT_MS, MIDNIGHT_MS - 1, MIDNIGHT_MS])
    before = everything(released.directory)

    run(released)

    assert [name[:14] for name in released.sealed()] == ["day=2026-03-01", "day=2026-03-02"] * 2
    assert everything(released.directory) == before


def test_readers_of_parquet_find_days_as_a_column(released: Released) -> None:
    released.days(3, 10)
    run(released)
    folder = released.directory.sealed

    by_duckdb = duckdb.sql(
        f'select day, count(*), min("offset"), max("offset") from read_parquet(\'{folder}/**/*.parquet\', '
        "hive_partitioning = true) where \"group\" = 'billing' group by day order by day"
    ).fetchall()
    by_pandas = pd.read_parquet(folder)
    by_arrow = ds.dataset(folder, partitioning="hive").to_table(filter=ds.field("day") == "2026-03-03")

    days = [datetime(2026, 3, day, tzinfo=UTC).date() for day in (1, 2, 3, 4)]
    assert by_duckdb == [(days[0], 5, 1, 5), (days[1], 10, 6, 15), (days[2], 10, 16, 25), (days[3], 5, 26, 30)]
    assert sorted(by_pandas["offset"]) == list(range(1, 31))
    assert set(by_pandas["day"]) == {day.isoformat() for day in days}
    assert sorted(by_arrow["offset"].to_pylist()) == list(range(16, 26))


def test_files_are_compressed_and_say_what_they_are(released: Released) -> None:
    released.write([MIDNIGHT_MS] * 3)
    run(released)
    footer = pq.ParquetFile(released.directory.sealed / released.sealed()[0]).metadata
    columns = {(column := footer.row_group(0).column(at)).path_in_schema: column for at in range(footer.num_columns)}

    assert footer.metadata[b"offsetd-history-format"] == b"1"
    assert footer.metadata[b"offsetd-cluster-id"] == IDENTITY.cluster_id.encode()
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert "DELTA_BINARY_PACKED" in columns["offset"].encodings
    assert columns["group"].has_dictionary_page
    assert (columns["group"].statistics.min, columns["group"].statistics.max) == ("billing", "billing")


def test_what_an_earlier_run_sealed_is_not_sealed_again(released: Released) -> None:
    """As after a kill between a file and the end of its segment."""
    path = released.write([MIDNIGHT_MS] * 10)
    whole = path.read_bytes()
    before = everything(released.directory)
    run(released, file_rows=4)
    released.directory.sealed.joinpath(released.sealed()[-1]).unlink()
    path.write_bytes(whole)

    assert everything(released.directory) == before
    done = run(released)

    assert (done.files, done.records, done.segments) == (1, 2, 1)
    assert everything(released.directory) == before
    path.write_bytes(whole)
    assert everything(released.directory) == before
    again = run(released)
    assert (again.files, again.segments) == (0, 1)
    assert everything(released.directory) == before


def test_a_hole_between_sealed_files_is_filled_and_nothing_is_twice(released: Released) -> None:
    path = released.write([MIDNIGHT_MS] * 10)
    whole = path.read_bytes()
    before = segment_rows(released.directory, path)
    run(released, file_rows=4)
    released.directory.sealed.joinpath(released.sealed()[0]).unlink()
    path.write_bytes(whole)

    done = run(released)

    assert (done.files, done.batches) == (1, 4)
    assert everything(released.directory) == sorted(before, key=repr)


def test_a_file_of_several_segments_covers_each_of_them(released: Released) -> None:
    paths = [released.write([MIDNIGHT_MS] * 2) for _ in range(3)]
    whole = [path.read_bytes() for path in paths]
    before = everything(released.directory)
    run(released)
    for path, data in list(zip(paths, whole, strict=True))[1:]:
        path.write_bytes(data)

    assert [sealed_through(list_sealed(released.directory.sealed), number) for number in (1, 3, 5, 7)] == [6, 6, 6, 6]
    assert everything(released.directory) == before
    assert run(released).segments == 2
    assert everything(released.directory) == before


def test_nothing_to_seal_is_no_failure(released: Released) -> None:
    assert run(released) == Done()
    assert run(released) == Done()


def test_batches_without_records_leave_no_gap(released: Released) -> None:
    released.files.segment([[encode(Touch("billing", MIDNIGHT_MS, WHOS[0], ()))]], time_ms=MIDNIGHT_MS)
    released.write([MIDNIGHT_MS + DAY_MS])

    run(released)

    assert sealed_through(list_sealed(released.directory.sealed), 1) == 2
    assert len(everything(released.directory)) == 1


def test_what_is_whole_before_damage_is_sealed_and_the_rest_stays(released: Released) -> None:
    released.write([MIDNIGHT_MS] * 2)
    harmed = released.write([MIDNIGHT_MS] * 4)
    last = released.write([MIDNIGHT_MS] * 2)
    position = position_of(harmed, 5)
    flip_byte(harmed, position + 70)

    for _ in range(2):
        with pytest.raises(Damage, match=re.escape(f"{harmed}: damaged at byte {position}: the checksum")):
            run(released)
        assert released.segments() == [harmed.name, last.name]
        assert sealed_through(list_sealed(released.directory.sealed), 1) == 4

    harmed.rename(released.directory.path / "aside")
    run(released)
    assert released.segments() == []
    assert released.sealed() == [
        "day=2026-03-02/00000000000000000001-00000000000000000004.parquet",
        "day=2026-03-02/00000000000000000007-00000000000000000008.parquet",
    ]


def test_an_entry_of_a_newer_release_stops_it_and_nothing_is_claimed_of_that_batch(released: Released) -> None:
    path = released.files.segment([[commit(1)], [entry(2)], [commit(3)]], time_ms=MIDNIGHT_MS)
    strange = JournalFiles(released.directory.history / "other")
    strange.segment([[commit(1)], [b"\x94\x63\x01\x00\xc0"], [commit(3)]], time_ms=MIDNIGHT_MS).replace(path)

    with pytest.raises(UnknownEntry):
        run(released)

    assert released.sealed() == ["day=2026-03-02/00000000000000000001-00000000000000000001.parquet"]
    assert released.segments() == [path.name]


def test_segments_of_another_cluster_or_misnamed_are_refused(released: Released, tmp_path: Path) -> None:
    stranger = JournalFiles(tmp_path / "strange", cluster=bytes(16)).segment([[commit(1)]])
    path = stranger.rename(released.directory.history / stranger.name)
    with pytest.raises(SegmentRefused, match=re.escape(f"{path} belongs to another cluster")):
        run(released)
    path.unlink()
    released.write([MIDNIGHT_MS]).rename(released.directory.history / segment_name(9))
    with pytest.raises(SegmentRefused, match="begins with batch 1, which its name does not say"):
        run(released)
    assert released.sealed() == []


def test_two_do_not_seal_at_once(released: Released) -> None:
    released.write([MIDNIGHT_MS])
    released.directory.sealed.mkdir()
    with alone(released.directory.sealed), pytest.raises(SealedByAnother, match="another process is sealing"):
        run(released)
    assert len(released.segments()) == 1
    assert run(released).segments == 1


def test_what_a_killed_run_left_is_swept_away(released: Released) -> None:
    released.directory.sealed.mkdir()
    (released.directory.sealed / TEMPORARY).write_bytes(b"half a file")

    run(released)

    assert released.strays() == []


def test_what_retention_takes_meanwhile_does_not_come_back(released: Released) -> None:
    for _ in range(4):
        released.write([MIDNIGHT_MS] * 4)

    def retention(file: SealedFile, _records: int) -> None:
        if file.first_number == 1:
            trim(released.directory.history, released.directory.sealed, now_ms=0, retention_ms=0, retention_bytes=0)

    done = Done()
    seal(released.directory, IDENTITY, done=done, on_published=retention, file_rows=4)

    assert done.files == 1
    assert (released.segments(), released.sealed(), released.strays()) == ([], [], [])


class Forgetful(OsFiles):
    """The real file system, and what of it a power cut could take: bytes and names that were not synced since."""

    def __init__(self, directory: BrokerDirectory) -> None:
        self._directory = directory
        # Files whose bytes, and files and directories whose names, are not durable.
        self._bytes: set[Path] = set()
        self._names: set[Path] = set()
        self.unlinked = 0

    def create(self, path: Path, *, replace: bool = False) -> int:
        self._bytes.add(path)
        self._names.add(path)
        return super().create(path, replace=replace)

    def make_directory(self, path: Path) -> None:
        super().make_directory(path)
        self._names.add(path)

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        if old in self._bytes:
            self._bytes.add(new)
        self._names.add(new)

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        synced = Path(f"/proc/self/fd/{descriptor}").readlink()
        self._bytes.discard(synced)
        self._names = {path for path in self._names if path.parent != synced}

    def unlink(self, path: Path) -> None:
        if path.parent == self._directory.history:
            self._check(path)
            self.unlinked += 1
        super().unlink(path)

    def _check(self, segment: Path) -> None:
        """All that is in a segment must be in files that outlive a power cut before it may go."""
        lost = self._bytes | self._names
        files = [file for file in list_sealed(self._directory.sealed) if not {file.path, *file.path.parents} & lost]
        last = max(row[COLUMNS.index("batch")] for row in segment_rows(self._directory, segment))
        assert sealed_through(files, int(segment.stem)) >= last


def test_a_segment_goes_only_when_no_power_cut_can_take_what_it_was_sealed_as(released: Released) -> None:
    released.days(3, 6)
    files = Forgetful(released.directory)

    seal(released.directory, IDENTITY, done=Done(), file_rows=2, files=files)

    assert files.unlinked == 3


def test_a_directory_that_a_killed_run_made_is_synced_too(released: Released) -> None:
    released.write([MIDNIGHT_MS])
    files = Forgetful(released.directory)
    files.make_directory(released.directory.sealed)

    seal(released.directory, IDENTITY, done=Done(), files=files)

    assert files.unlinked == 1


def test_a_name_that_a_killed_run_gave_is_synced_before_its_segment_goes(released: Released) -> None:
    released.write([MIDNIGHT_MS])
    files = Forgetful(released.directory)
    failpoint.arm("seal_after_rename=error:EIO")
    try:
        with pytest.raises(OSError, match="failpoint"):
            seal(released.directory, IDENTITY, done=Done(), files=files)
    finally:
        failpoint.arm("")
    assert (len(released.sealed()), files.unlinked) == (1, 0)

    seal(released.directory, IDENTITY, done=Done(), files=files)

    assert (len(released.sealed()), files.unlinked) == (1, 1)


@pytest.mark.parametrize("fault", ["seal_before_write=error:ENOSPC", "seal_after_write=error:EIO"])
def test_a_disk_that_fails_leaves_all_as_it_was(released: Released, fault: str) -> None:
    released.days(2, 4)
    before = everything(released.directory)
    names = released.segments()
    failpoint.arm(fault)
    try:
        with pytest.raises(OSError, match="failpoint"):
            run(released)
    finally:
        failpoint.arm("")

    assert (released.segments(), released.sealed(), released.strays()) == (names, [], [])
    assert everything(released.directory) == before
    run(released)
    assert everything(released.directory) == before
