"""History as the way back to a checkpoint: every gap and every stranger on it is named, and nothing is deleted."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.fold import Place
from offsetd.journal.rebuild import Bridge, carry_on, find_bridge, free_name, rebuild
from offsetd.journal.segment import read_batches, segment_name
from tests.directories import SLOTS, DataDirectory, commit, flip_byte
from tests.segments import CLUSTER, CLUSTER_ID, JournalFiles

KEY = ("billing", "orders", 0)


def released(tmp_path: Path) -> DataDirectory:
    """Return a directory whose history holds batches 1 to 6 in three segments, and its journal 7 to 9."""
    data = DataDirectory(tmp_path / "data")
    for size in (2, 2, 2, 3):
        data.write(size)
    data.compact(3)
    return data


def bridge(data: DataDirectory, after: Place | None = None) -> Bridge:
    return find_bridge(
        list(data.broker.history.glob("*.segment")),
        list(data.broker.journal.glob("*.segment")),
        cluster=CLUSTER,
        after=after or Place(),
    )


def place_after(path: Path) -> Place:
    """Return the place at the end of a segment."""
    *_, last = read_batches(path)
    return Place(number=last.number, crc=last.crc, epoch=last.epoch, time_ms=last.time_ms)


def test_history_that_leads_from_batch_1_to_the_journal_is_a_bridge(tmp_path: Path) -> None:
    data = released(tmp_path)

    found = bridge(data)

    assert found.obstacle is None
    assert [path.name for path in found.segments] == [segment_name(number) for number in (1, 3, 5)]
    assert found.place == place_after(data.broker.history / segment_name(5))


def test_only_what_the_checkpoint_lacks_is_needed(tmp_path: Path) -> None:
    data = released(tmp_path)
    after = place_after(data.broker.history / segment_name(1))
    (data.broker.history / segment_name(1)).unlink()

    found = bridge(data, after)

    assert (found.obstacle, len(found.segments), found.place.number) == (None, 2, 6)


def test_a_journal_that_reaches_back_to_batch_1_needs_no_history(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.write(2)

    assert bridge(data) == Bridge((), Place(), None)


def _drop(number: int) -> Callable[[DataDirectory], None]:
    return lambda data: (data.broker.history / segment_name(number)).unlink()


def _flip(data: DataDirectory) -> None:
    flip_byte(data.broker.history / segment_name(3), -9)


def _stranger(data: DataDirectory) -> None:
    path = data.broker.history / segment_name(1)
    path.unlink()
    JournalFiles(data.broker.history, cluster=bytes(16), slots=SLOTS).segment([[commit(1)], [commit(2)]])


def _other_life(data: DataDirectory) -> None:
    """Replace all of history by what another journal of the same cluster wrote."""
    shutil.rmtree(data.broker.history)
    other = JournalFiles(data.broker.history, slots=SLOTS)
    other.segment([[commit(100 + number)] for number in range(6)])


def _no_journal(data: DataDirectory) -> None:
    (data.broker.journal / segment_name(7)).unlink()


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (_drop(1), "begins with batch 3, which does not follow batch 0"),
        (_drop(3), "begins with batch 5, which does not follow batch 2"),
        (_drop(5), "history ends with batch 4, the journal begins with batch 7"),
        (_flip, "00000000000000000003.segment: damaged at byte"),
        (_stranger, "00000000000000000001.segment belongs to another cluster"),
        (_other_life, "follows another batch 6 than the one in history"),
        (_no_journal, "the journal has no segment"),
    ],
)
def test_what_stands_in_the_way_is_named(tmp_path: Path, harm: Callable[[DataDirectory], None], says: str) -> None:
    data = released(tmp_path)
    harm(data)

    assert says in (bridge(data).obstacle or "")


def test_a_damaged_header_of_the_journal_does_not_hide_where_it_begins(tmp_path: Path) -> None:
    data = released(tmp_path)
    flip_byte(data.broker.journal / segment_name(7), 20)

    assert bridge(data).obstacle is None


def test_a_rebuilt_checkpoint_serves_what_the_lost_one_did(tmp_path: Path) -> None:
    data = released(tmp_path)
    with Checkpoint.open(data.broker.checkpoint, cluster_id=CLUSTER_ID) as lost:
        place, rows = lost.place, list(lost.rows(1))

    made = rebuild(
        data.broker.checkpoint, bridge(data), cluster_id=CLUSTER_ID, made_by="test", keep_in=data.broker.quarantine
    )

    assert made == place
    with Checkpoint.open(data.broker.checkpoint, cluster_id=CLUSTER_ID) as rebuilt:
        assert (rebuilt.place, list(rebuilt.rows(1))) == (place, rows)
    with Checkpoint.open(data.broker.quarantine / "checkpoint.1", cluster_id=CLUSTER_ID) as kept:
        assert kept.place == place
    assert not list(data.broker.path.glob("checkpoint.*"))
    assert data.start() == {KEY: 9}


def test_what_an_unfinished_rebuild_left_is_swept_away(tmp_path: Path) -> None:
    data = released(tmp_path)
    shutil.rmtree(data.broker.checkpoint)
    leftover = data.broker.path / "checkpoint.rebuilt"
    leftover.mkdir()
    (leftover / "CURRENT").write_text("nonsense")

    rebuild(data.broker.checkpoint, bridge(data), cluster_id=CLUSTER_ID, made_by="test", keep_in=data.broker.quarantine)

    assert data.start() == {KEY: 9}
    assert not leftover.exists()


def test_an_older_checkpoint_is_carried_on_to_the_same_rows(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    for size in (2, 2, 2):
        data.write(size)
    data.compact(1)
    shutil.copytree(data.broker.checkpoint, tmp_path / "older")
    data.compact(1)
    with Checkpoint.open(tmp_path / "older", cluster_id=CLUSTER_ID) as older:
        after = older.place

    carry_on(tmp_path / "older", bridge(data, after), cluster_id=CLUSTER_ID)

    with (
        Checkpoint.open(tmp_path / "older", cluster_id=CLUSTER_ID) as carried,
        Checkpoint.open(data.broker.checkpoint, cluster_id=CLUSTER_ID) as newer,
    ):
        assert carried.place == newer.place
        assert list(carried.rows(1)) == list(newer.rows(1))


def test_a_free_name_is_never_one_that_is_taken(tmp_path: Path) -> None:
    first = free_name(tmp_path, "checkpoint")
    first.mkdir()

    assert (first.name, free_name(tmp_path, "checkpoint").name) == ("checkpoint.1", "checkpoint.2")
