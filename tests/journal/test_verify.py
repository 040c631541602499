"""Verify: everything is read, nothing is changed, and what it says of a start is what a start does."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from offsetd.journal.checkpoint import Checkpoint, CheckpointLost, CheckpointRefused
from offsetd.journal.directory import DirectoryLock, DirectoryRefused, read_identity
from offsetd.journal.examine import JournalRefused
from offsetd.journal.segment import segment_name
from offsetd.journal.verify import Verification, verify
from offsetd.journal.view import viewed
from tests.directories import DataDirectory, commit, flip_byte, position_of
from tests.segments import CLUSTER_ID, OTHER_CLUSTER_ID


def folded(tmp_path: Path) -> DataDirectory:
    """Return a directory with batches 1 to 3 in the checkpoint and 4 to 9 in two segments."""
    data = DataDirectory(tmp_path / "data")
    for _ in range(3):
        data.write(3)
    data.compact(1)
    return data


def look(data: DataDirectory) -> Verification:
    return verify(data.broker, data.identity)


def segment(data: DataDirectory, first_number: int) -> Path:
    return data.broker.journal / segment_name(first_number)


def test_a_whole_directory_is_whole_and_left_as_it_was(tmp_path: Path) -> None:
    data = folded(tmp_path)
    before = data.content()

    done = look(data)

    assert done.whole
    assert done.place is not None
    assert done.found is not None
    assert (done.place.number, done.found.chain.number, done.groups, done.offsets) == (3, 9, 1, 1)
    assert [(survey.number, survey.last_number, survey.batches) for survey in done.segments] == [(4, 6, 3), (7, 9, 3)]
    assert (done.bridge.obstacle, done.bridge.place.number, done.history_segments) == (None, 3, 1)
    assert data.content() == before


def test_a_torn_tail_is_no_damage(tmp_path: Path) -> None:
    data = folded(tmp_path)
    size = segment(data, 7).stat().st_size
    with segment(data, 7).open("ab") as file:
        file.write(b"OFDB torn")

    done = look(data)

    assert done.whole
    assert done.found is not None
    assert done.found.tail is not None
    assert (done.found.tail.position, done.found.tail.size) == (size, 9)
    assert data.start() == {("billing", "orders", 0): 9}


def test_damage_is_named_with_what_stands_before_and_behind_it(tmp_path: Path) -> None:
    data = folded(tmp_path)
    position = position_of(segment(data, 7), 8)
    flip_byte(segment(data, 7), position + 60)

    done = look(data)

    (survey,) = done.damaged
    assert not done.whole
    assert survey.defect is not None
    assert (survey.path, survey.defect.position, survey.last_number, survey.behind) == (
        segment(data, 7),
        position,
        7,
        (9,),
    )
    assert "batch 9 behind it is whole" in done.refusals[0]


def _flip_sealed(data: DataDirectory) -> None:
    flip_byte(segment(data, 4), position_of(segment(data, 4), 5) + 60)


def _drop_sealed(data: DataDirectory) -> None:
    segment(data, 4).unlink()


def _drop_all(data: DataDirectory) -> None:
    segment(data, 4).unlink()
    segment(data, 7).unlink()
    data.mark()


def _lose_checkpoint(data: DataDirectory) -> None:
    shutil.rmtree(data.broker.checkpoint)


def _damage_checkpoint(data: DataDirectory) -> None:
    for path in data.broker.checkpoint.glob("*.ldb"):
        flip_byte(path, 30)


def _misname(data: DataDirectory) -> None:
    segment(data, 7).rename(segment(data, 8))


def _link(data: DataDirectory) -> None:
    segment(data, 7).rename(data.path / "elsewhere")
    segment(data, 7).symlink_to(data.path / "elsewhere")


@pytest.mark.parametrize(
    "harm", [_flip_sealed, _drop_sealed, _drop_all, _lose_checkpoint, _damage_checkpoint, _misname, _link]
)
def test_it_refuses_in_the_words_of_a_start(tmp_path: Path, harm: Callable[[DataDirectory], None]) -> None:
    data = folded(tmp_path)
    harm(data)
    before = data.content()

    done = look(data)

    assert not done.whole
    assert data.content() == before
    with pytest.raises((JournalRefused, CheckpointRefused)) as refused:
        data.start()
    assert done.refusals[0] == str(refused.value)


def test_a_lost_checkpoint_does_not_hide_damage_in_the_journal(tmp_path: Path) -> None:
    data = folded(tmp_path)
    _lose_checkpoint(data)
    _flip_sealed(data)

    assert len(look(data).refusals) == 2


def test_damage_that_the_checkpoint_holds_is_damage_though_a_start_goes_through(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.write(3)
    data.write(3)
    data.fold(3)
    flip_byte(segment(data, 1), -9)

    done = look(data)

    assert (done.whole, done.refusals, [survey.number for survey in done.damaged]) == (False, [], [1])


def test_a_new_directory_is_whole(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    shutil.rmtree(data.broker.checkpoint)

    done = look(data)

    assert (done.new, done.whole) == (True, True)


def test_history_without_journal_and_checkpoint_is_a_loss_and_no_beginning(tmp_path: Path) -> None:
    data = folded(tmp_path)
    _lose_checkpoint(data)
    shutil.rmtree(data.broker.journal)

    done = look(data)

    assert not done.new
    assert "is missing" in done.refusals[0]


def test_a_checkpoint_of_another_life_of_the_journal_is_named(tmp_path: Path) -> None:
    data = folded(tmp_path)
    other = DataDirectory(tmp_path / "other")
    other.journal.segment([[commit(100)]] * 3)
    other.compact(1)
    _lose_checkpoint(data)
    other.broker.checkpoint.rename(data.broker.checkpoint)

    assert "batch 4 does not follow the checkpoint, which ends with batch 3" in look(data).refusals[0]


def test_a_harmed_marker_is_told(tmp_path: Path) -> None:
    data = folded(tmp_path)
    data.mark()
    flip_byte(data.broker.journal / "durable", 3)

    done = look(data)

    assert (done.marker_harmed, done.durable, done.whole) == (True, None, True)


def test_a_view_shows_the_rows_and_touches_no_file(tmp_path: Path) -> None:
    data = folded(tmp_path)
    before = data.content()

    with viewed(data.broker.checkpoint, cluster_id=CLUSTER_ID) as checkpoint:
        rows = list(checkpoint.rows(1))

    assert data.content() == before
    with Checkpoint.open(data.broker.checkpoint, cluster_id=CLUSTER_ID) as opened:
        assert rows == list(opened.rows(1))


def test_a_view_names_the_real_directory_in_what_it_refuses(tmp_path: Path) -> None:
    data = folded(tmp_path)

    with (
        pytest.raises(CheckpointLost, match=f"{data.broker.checkpoint} belongs to the cluster"),
        viewed(data.broker.checkpoint, cluster_id=OTHER_CLUSTER_ID),
    ):
        pass
    for path in data.broker.checkpoint.glob("*.ldb"):
        path.unlink()
    with (
        pytest.raises(CheckpointLost, match=f"{data.broker.checkpoint} is damaged") as refused,
        viewed(data.broker.checkpoint, cluster_id=CLUSTER_ID),
    ):
        pass
    assert "offsetd-" not in str(refused.value)


_HOLD = """
import sys, plyvel
db = plyvel.DB(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_checkpoint_in_which_a_compactor_works_is_not_viewed(tmp_path: Path) -> None:
    data = folded(tmp_path)
    command = [sys.executable, "-c", _HOLD, str(data.broker.checkpoint)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()

        with (
            pytest.raises(CheckpointRefused, match="is in use by another process"),
            viewed(data.broker.checkpoint, cluster_id=CLUSTER_ID),
        ):
            pass
        holder.stdin.close()


def test_readers_share_the_lock_and_keep_daemons_out(tmp_path: Path) -> None:
    data = folded(tmp_path)
    first, second, daemon = (DirectoryLock(data.broker.lock) for _ in range(3))

    first.share()
    second.share()
    with pytest.raises(DirectoryRefused, match="or by an `offsetd journal` command"):
        daemon.take()
    first.release()
    second.release()
    daemon.take()
    with pytest.raises(DirectoryRefused, match=f"is in use by the process {os.getpid()}"):
        first.share()
    daemon.release()


def test_a_reader_leaves_the_lock_file_as_it_is(tmp_path: Path) -> None:
    data = folded(tmp_path)
    data.broker.lock.write_text("77\n")
    lock = DirectoryLock(data.broker.lock)

    lock.share()
    lock.release()

    assert data.broker.lock.read_text() == "77\n"
    with data.broker.lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    data.broker.lock.unlink()
    lock.share()
    assert not data.broker.lock.exists()


def test_the_identity_is_read_without_making_anything(tmp_path: Path) -> None:
    data = folded(tmp_path)

    assert read_identity(data.path, 1) == data.identity
    with pytest.raises(DirectoryRefused, match="holds nothing of broker 2"):
        read_identity(data.path, 2)
    with pytest.raises(DirectoryRefused, match="is no data directory"):
        read_identity(tmp_path / "none", 1)
    assert not (tmp_path / "none").exists()
    (data.broker.path / "identity.json").unlink()
    with pytest.raises(DirectoryRefused, match=r"holds data, but no identity\.json"):
        read_identity(data.path, 1)
