"""The checkpoint on disk: what goes in comes out, and what cannot be trusted is refused with the reason."""

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgpack
import plyvel
import pytest

from offsetd.journal.checkpoint import Checkpoint, CheckpointRefused, directory_bytes, row_key
from offsetd.journal.fold import Fold, Key, Place, SlotMark
from tests.segments import CLUSTER_ID, OTHER_CLUSTER_ID

PLACE = Place(number=7, crc=0xFFFFFFFF, epoch=3, time_ms=1 << 40, slots={0: SlotMark(12, 99), 49: SlotMark(5, 1)})


def _make(directory: Path, puts: dict[Key, bytes] | None = None) -> None:
    with Checkpoint.create(directory, cluster_id=CLUSTER_ID, made_by="test") as checkpoint:
        if puts is not None:
            checkpoint.fold(_fold(puts))


def _fold(puts: dict[Key, bytes], deletes: tuple[Key, ...] = (), place: Place = PLACE) -> Fold:
    return Fold(puts=puts, deletes=deletes, place=place, batches=1, records=1)


def _open(directory: Path, *, cluster_id: str = CLUSTER_ID, wait_s: float = 0.05) -> Checkpoint:
    return Checkpoint.open(directory, cluster_id=cluster_id, wait_s=wait_s)


def test_rows_and_place_come_back_after_a_restart(tmp_path: Path) -> None:
    puts: dict[Key, bytes] = {
        (0, "b", ""): b"own",
        (0, "b", "t"): b"1",
        (0, "bt", ""): b"2",
        (0, "", "t"): b"3",
        (1, "g\u00fc", "\u03a9"): b"4",
    }
    _make(tmp_path / "checkpoint", puts)

    with _open(tmp_path / "checkpoint") as checkpoint:
        assert checkpoint.place == PLACE
        assert sorted(checkpoint.rows(0)) == sorted((g, t, v) for (s, g, t), v in puts.items() if s == 0)
        assert list(checkpoint.rows(1)) == [("g\u00fc", "\u03a9", b"4")]
        assert list(checkpoint.rows(2)) == []
        assert list(checkpoint.group_rows(0, "b")) == [("", b"own"), ("t", b"1")]
        checkpoint.fold(_fold({(0, "b", "t"): b"new"}, ((0, "b", ""),), Place(number=8)))
        assert list(checkpoint.group_rows(0, "b")) == [("t", b"new")]
        assert checkpoint.place.number == 8
        assert checkpoint.size_bytes() == directory_bytes(tmp_path / "checkpoint") > 0


def test_the_rows_of_a_group_are_neighbours_its_own_first(tmp_path: Path) -> None:
    keys: list[Key] = [(2, group, topic) for group in ("a", "ab", "b", "") for topic in ("", "a", "b")]
    _make(tmp_path / "checkpoint", dict.fromkeys(keys, b"x"))

    with _open(tmp_path / "checkpoint") as checkpoint:
        rows = [(group, topic) for group, topic, _ in checkpoint.rows(2)]

    groups = [rows[at : at + 3] for at in range(0, len(rows), 3)]
    assert all([topic for _, topic in group] == ["", "a", "b"] for group in groups)
    assert all(len({name for name, _ in group}) == 1 for group in groups)


def test_a_missing_checkpoint_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(CheckpointRefused, match=r"is missing\. `offsetd journal repair`"):
        _open(tmp_path / "checkpoint")

    assert not (tmp_path / "checkpoint").exists()


def test_a_second_one_is_not_made_over_the_first(tmp_path: Path) -> None:
    _make(tmp_path / "checkpoint", {(0, "b", "t"): b"1"})

    with pytest.raises(CheckpointRefused, match="is there already"):
        _make(tmp_path / "checkpoint")
    with _open(tmp_path / "checkpoint") as checkpoint:
        assert list(checkpoint.rows(0))


def test_an_unfinished_creation_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.new").mkdir()
    (tmp_path / "checkpoint.new" / "CURRENT").write_text("nonsense")

    _make(tmp_path / "checkpoint")

    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_a_checkpoint_of_another_cluster_is_refused(tmp_path: Path) -> None:
    _make(tmp_path / "checkpoint")

    with pytest.raises(CheckpointRefused, match=f"belongs to the cluster {CLUSTER_ID}, this is {OTHER_CLUSTER_ID}"):
        _open(tmp_path / "checkpoint", cluster_id=OTHER_CLUSTER_ID)
    _open(tmp_path / "checkpoint").close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    _make(tmp_path / "checkpoint")
    db = plyvel.DB(str(tmp_path / "checkpoint"))
    db.put(b"mformat", msgpack.packb(2), sync=True)
    db.close()

    with pytest.raises(CheckpointRefused, match=r"is of format 2, this offsetd knows format 1\. Start the offsetd"):
        _open(tmp_path / "checkpoint")


@pytest.mark.parametrize("key", [b"mformat", b"mplace", b"mslots"])
def test_a_checkpoint_that_does_not_say_what_it_is_is_refused(tmp_path: Path, key: bytes) -> None:
    _make(tmp_path / "checkpoint")
    db = plyvel.DB(str(tmp_path / "checkpoint"))
    db.delete(key, sync=True)
    db.close()

    with pytest.raises(CheckpointRefused, match="is damaged: it does not say"):
        _open(tmp_path / "checkpoint")


@pytest.mark.parametrize("pattern", ["CURRENT", "MANIFEST-*", "*.ldb"])
@pytest.mark.parametrize("harm", ["delete", "empty", "flip"])
def test_harm_to_any_file_is_refused_or_changes_no_row(tmp_path: Path, pattern: str, harm: str) -> None:
    """Never fewer rows, never other rows: either all is read back, or the reason is named."""
    puts: dict[Key, bytes] = {(0, f"group-{number}", "t"): bytes([number]) * 500 for number in range(200)}
    _make(tmp_path / "checkpoint", puts)
    for path in (tmp_path / "checkpoint").glob(pattern):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x40
        if harm == "delete":
            path.unlink()
        else:
            path.write_bytes(b"" if harm == "empty" else data)

    with (
        pytest.raises(CheckpointRefused, match=r"damaged|cannot be opened"),
        _open(tmp_path / "checkpoint") as checkpoint,
    ):
        assert len(list(checkpoint.rows(0))) < 200, "harm went unseen and did no harm?"


def test_a_flipped_bit_in_a_table_is_seen_when_its_rows_are_read(tmp_path: Path) -> None:
    puts: dict[Key, bytes] = {(slot, "group", "t"): bytes([slot]) * 20_000 for slot in range(20)}
    _make(tmp_path / "checkpoint", puts)
    (table,) = sorted((tmp_path / "checkpoint").glob("*.ldb"), key=lambda path: path.stat().st_size)[-1:]
    data = bytearray(table.read_bytes())
    data[data.index(bytes([9]) * 100)] ^= 1
    table.write_bytes(data)

    with _open(tmp_path / "checkpoint") as checkpoint:
        assert list(checkpoint.rows(3)) == [("group", "t", puts[3, "group", "t"])]
        with pytest.raises(CheckpointRefused, match="is damaged"):
            list(checkpoint.rows(9))


@pytest.mark.parametrize("slot", range(5))
@pytest.mark.parametrize("by_group", [True, False])
def test_damage_in_any_block_is_seen_also_in_the_last(tmp_path: Path, slot: int, by_group: bool) -> None:
    """Where damage hides all that is left of a range, its end would look like any other end."""
    puts: dict[Key, bytes] = {(number, "group", "t"): bytes([65 + number]) * 20_000 for number in range(5)}
    _make(tmp_path / "checkpoint", puts)
    (table,) = sorted((tmp_path / "checkpoint").glob("*.ldb"), key=lambda path: path.stat().st_size)[-1:]
    data = bytearray(table.read_bytes())
    data[data.index(bytes([65 + slot]) * 100)] ^= 1
    table.write_bytes(data)

    with pytest.raises(CheckpointRefused, match="is damaged"), _open(tmp_path / "checkpoint") as checkpoint:
        list(checkpoint.group_rows(slot, "group") if by_group else checkpoint.rows(slot))


_TEAR = """
import os, sys
from pathlib import Path
from offsetd.failpoint import arm
from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.fold import Fold, Place
arm("fold_after_write=exit")
checkpoint = Checkpoint.open(Path(sys.argv[1]), cluster_id=sys.argv[2])
puts = {(0, f"group-{number}", "t"): b"later" * 300 for number in range(200)}
checkpoint.fold(Fold(puts=puts, deletes=(), place=Place(number=8), batches=1, records=1))
"""


@pytest.mark.parametrize("tear", ["nothing", "cut", "zeros", "garbage"])
def test_a_fold_torn_by_a_power_cut_is_as_if_it_never_began(tmp_path: Path, tear: str) -> None:
    puts: dict[Key, bytes] = {(0, f"group-{number}", "t"): b"first" for number in range(200)}
    _make(tmp_path / "checkpoint", puts)
    ended = subprocess.run(
        [sys.executable, "-c", _TEAR, str(tmp_path / "checkpoint"), CLUSTER_ID], check=False, timeout=30
    )
    assert ended.returncode == 86
    (log,) = (path for path in (tmp_path / "checkpoint").glob("*.log") if path.stat().st_size)
    data = log.read_bytes()
    middle = len(data) // 2
    torn = {
        "nothing": data,
        "cut": data[:middle],
        "zeros": data[:middle] + bytes(4096) + data[middle + 4096 :],
        "garbage": data[:middle] + b"\x5a" * 4096 + data[middle + 4096 :],
    }
    log.write_bytes(torn[tear])

    for _ in range(2):
        with _open(tmp_path / "checkpoint") as checkpoint:
            values = {value for _, _, value in checkpoint.rows(0)}
            assert len(list(checkpoint.rows(0))) == 200
            if tear == "nothing":
                assert (checkpoint.place.number, values) == (8, {b"later" * 300})
            else:
                assert (checkpoint.place, values) == (PLACE, {b"first"})


def test_after_each_fold_leveldb_has_moved_its_log_into_a_table(tmp_path: Path) -> None:
    """Otherwise a torn log could be dropped together with folds whose segments are gone."""
    with Checkpoint.create(tmp_path / "checkpoint", cluster_id=CLUSTER_ID, made_by="test") as checkpoint:
        for number in range(1, 4):
            checkpoint.fold(_fold({(0, f"g{number}", "t"): b"x" * 1000}, place=Place(number=number)))
            assert [path.stat().st_size for path in checkpoint.directory.glob("*.log")] == [0]


def test_a_start_waits_for_a_compaction_that_is_ending(tmp_path: Path) -> None:
    _make(tmp_path / "checkpoint")
    held = _open(tmp_path / "checkpoint")
    timer = threading.Timer(0.15, held.close)
    started = time.monotonic()
    timer.start()
    try:
        _open(tmp_path / "checkpoint", wait_s=20).close()
        assert time.monotonic() - started >= 0.1
    finally:
        timer.join()


def test_a_lock_that_is_never_given_up_is_named(tmp_path: Path) -> None:
    _make(tmp_path / "checkpoint")

    with (
        _open(tmp_path / "checkpoint"),
        pytest.raises(CheckpointRefused, match=r"still in use by another process after 0\.05 s"),
    ):
        _open(tmp_path / "checkpoint")


def test_a_key_orders_by_slot_then_group() -> None:
    assert row_key(1, "b", "t") == b"r\x00\x01\x00\x01bt"
    assert row_key(1, "bt", "") != row_key(1, "b", "t")


def test_a_copy_of_the_directory_is_a_checkpoint(tmp_path: Path) -> None:
    _make(tmp_path / "checkpoint", {(0, "b", "t"): b"1"})
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")

    with _open(tmp_path / "copy") as checkpoint:
        assert list(checkpoint.rows(0)) == [("b", "t", b"1")]


def test_the_size_of_no_directory_is_nothing(tmp_path: Path) -> None:
    assert directory_bytes(tmp_path / "none") == 0
