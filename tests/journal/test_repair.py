"""Repair: the least is cut, nothing is deleted, what it falls back to is said before, and a start then goes through."""

import shutil
from collections.abc import Callable
from pathlib import Path

import crc32c
import pytest

from offsetd.journal.checkpoint import Checkpoint, CheckpointRefused
from offsetd.journal.examine import JournalRefused
from offsetd.journal.fold import FoldRefused
from offsetd.journal.loss import Loss, measure_loss
from offsetd.journal.plan import RepairRefused, make_plan
from offsetd.journal.repair import repair
from offsetd.journal.segment import encode_header, segment_name
from offsetd.record import UnknownEntry
from tests.directories import SLOTS, DataDirectory, commit, flip_byte, position_of
from tests.segments import CLUSTER, OTHER_CLUSTER_ID, JournalFiles

KEY = ("billing", "orders", 0)


def three_segments(tmp_path: Path) -> DataDirectory:
    """Return a directory with batches 1 to 12 in three segments, all durable."""
    data = DataDirectory(tmp_path / "data")
    for _ in range(3):
        data.write(4)
    data.mark()
    return data


def segment(data: DataDirectory, first_number: int) -> Path:
    return data.broker.journal / segment_name(first_number)


def lose(data: DataDirectory) -> Loss:
    return measure_loss(data.broker, data.identity, make_plan(data.broker, data.identity))


def mend(data: DataDirectory) -> list[str]:
    return list(repair(data.broker, data.identity))


def flip_in_last(data: DataDirectory) -> None:
    flip_byte(segment(data, 9), position_of(segment(data, 9), 10) + 60)


def flip_in_sealed(data: DataDirectory) -> None:
    flip_byte(segment(data, 5), position_of(segment(data, 5), 6) + 60)


def flip_header(data: DataDirectory) -> None:
    flip_byte(segment(data, 5), 20)


def flip_first_header(data: DataDirectory) -> None:
    flip_byte(segment(data, 1), 20)


def drop_middle(data: DataDirectory) -> None:
    segment(data, 5).unlink()


def truncate(data: DataDirectory) -> None:
    with segment(data, 9).open("r+b") as file:
        file.truncate(position_of(segment(data, 9), 11) + 9)


def drop_last(data: DataDirectory) -> None:
    segment(data, 9).unlink()


def drop_all(data: DataDirectory) -> None:
    for path in data.broker.journal.glob("*.segment"):
        path.unlink()


# A harm, how many batches were folded and released before it, and up to which batch a repair can keep the journal.
HARMS: list[tuple[Callable[[DataDirectory], None], int, int]] = [
    (flip_in_last, 0, 9),
    (flip_in_last, 8, 9),
    (flip_in_sealed, 0, 5),
    (flip_in_sealed, 4, 5),
    (flip_header, 0, 4),
    (flip_header, 4, 4),
    (flip_first_header, 0, 0),
    (drop_middle, 0, 4),
    (truncate, 0, 10),
    (drop_last, 0, 8),
    (drop_all, 4, 4),
]


@pytest.mark.parametrize(("harm", "folded", "kept"), HARMS)
def test_a_refused_journal_is_kept_up_to_the_damage_and_starts_again(
    tmp_path: Path, harm: Callable[[DataDirectory], None], folded: int, kept: int
) -> None:
    data = three_segments(tmp_path)
    data.compact(folded // 4)
    harm(data)
    before = data.content()
    with pytest.raises(JournalRefused):
        data.start()

    loss = lose(data)
    mend(data)

    assert [each.kept.offset if each.kept else 0 for each in loss.offsets] in ([], [kept])
    lost = [batch.number for batch in loss.batches] + [number for run in loss.unreadable for number in run]
    assert sorted(lost) == list(range(kept + 1, 13))
    assert data.start() == ({KEY: kept} if kept else {})
    assert _missing_bytes(before, data.content()) == []
    assert not make_plan(data.broker, data.identity).needed


def _missing_bytes(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Return the segments that are no longer there whole, neither in one piece nor as a head and a tail."""
    kept = list(after.values())
    return [
        name
        for name, data in before.items()
        if name.endswith((".segment", "durable"))
        and not any(data == whole or (data.startswith(whole) and data[len(whole) :] in kept) for whole in kept)
    ]


def test_planning_changes_nothing(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(1)
    flip_in_sealed(data)
    before = data.content()

    lose(data)

    assert data.content() == before


def test_a_journal_that_starts_is_left_alone(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(1)
    before = data.content()

    assert mend(data) == []
    assert data.content() == before


def test_a_torn_tail_is_left_to_the_start(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.write(3)
    with segment(data, 1).open("ab") as file:
        file.write(b"OFDB torn")

    assert not make_plan(data.broker, data.identity).needed
    assert data.start() == {KEY: 3}


def test_a_new_directory_needs_no_repair(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    shutil.rmtree(data.broker.checkpoint)

    assert not make_plan(data.broker, data.identity).needed


def test_a_journal_and_a_checkpoint_that_are_both_gone_are_not_made_up(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(2)
    shutil.rmtree(data.broker.checkpoint)
    drop_all(data)

    with pytest.raises(RepairRefused, match="the journal has no segment"):
        mend(data)


def test_every_kind_of_loss_is_told_with_what_it_falls_back_to(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.journal.segment(
        [[commit(1), commit(2, group="audit")], [commit(3, partition=7)], [commit(4)], [commit(5, topic="new")]]
    )
    flip_byte(segment(data, 1), position_of(segment(data, 1), 2) + 60)

    loss = lose(data)

    told = [
        (each.topic, each.partition, each.lost and each.lost.offset, each.kept and each.kept.offset)
        for each in loss.offsets
    ]
    assert told == [("new", 0, 5, None), ("orders", 0, 4, 1)]
    assert [batch.number for batch in loss.batches] == [3, 4]
    assert loss.unreadable == (range(2, 3),)


def test_a_damaged_segment_that_the_checkpoint_holds_costs_nothing(tmp_path: Path) -> None:
    """A start passes over it, but compaction would stop there for ever."""
    data = three_segments(tmp_path)
    data.fold(8)
    flip_in_sealed(data)

    loss = lose(data)
    mend(data)

    assert loss.nothing
    assert data.start() == {KEY: 12}
    data.compact(2)
    assert data.start() == {KEY: 12}


def test_batches_behind_damage_that_the_checkpoint_holds_are_saved(tmp_path: Path) -> None:
    """The compactor was killed in the middle of a segment, whose folded half is then harmed."""
    data = three_segments(tmp_path)
    data.fold(6)
    flip_in_sealed(data)
    with pytest.raises(JournalRefused, match="and later segments exist"):
        data.start()

    loss = lose(data)
    mend(data)

    assert loss.nothing
    assert data.start() == {KEY: 12}
    assert segment(data, 7).exists()
    data.compact(3)
    assert data.start() == {KEY: 12}


def test_batches_that_do_not_follow_the_checkpoint_are_not_put_behind_it(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    other = DataDirectory(tmp_path / "other")
    other.journal.segment([[commit(100)]] * 6)
    other.compact(1)
    shutil.rmtree(data.broker.checkpoint)
    other.broker.checkpoint.rename(data.broker.checkpoint)
    flip_in_sealed(data)

    loss = lose(data)
    mend(data)

    assert [batch.number for batch in loss.batches] == [7, 8, 9, 10, 11, 12]
    assert data.start() == {KEY: 100}


def test_batches_are_missed_that_only_the_name_of_a_segment_tells_of(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    for _ in range(3):
        data.write(4)
    segment(data, 5).write_bytes(b"nonsense")
    segment(data, 9).write_bytes(b"")

    assert lose(data).unreadable == (range(5, 9),)


def test_a_journal_that_ends_before_the_checkpoint_goes_on_from_it(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.fold(8)
    segment(data, 5).unlink()
    segment(data, 9).unlink()
    with pytest.raises(JournalRefused, match=r"was durable"):
        data.start()

    loss = lose(data)
    mend(data)

    assert loss.unreadable == (range(9, 13),)
    assert data.start() == {KEY: 8}
    data.compact(1)
    assert data.start() == {KEY: 8}


def test_a_segment_that_is_begun_anew_goes_on_with_the_sequences(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(2)
    drop_all(data)

    mend(data)

    expected = encode_header(
        cluster=CLUSTER,
        first_number=9,
        previous_crc=int.from_bytes(segment(data, 9).read_bytes()[40:44], "little"),
        epoch=1,
        created_ms=(1 << 32) + 8,
        next_sequences=[0, 8, 0],
    )
    assert segment(data, 9).read_bytes() == expected


@pytest.mark.parametrize("harm", ["missing", "damaged", "other cluster"])
def test_a_lost_checkpoint_is_made_anew_from_history(tmp_path: Path, harm: str) -> None:
    data = three_segments(tmp_path)
    data.compact(2)
    if harm == "other cluster":
        shutil.rmtree(data.broker.checkpoint)
        Checkpoint.create(data.broker.checkpoint, cluster_id=OTHER_CLUSTER_ID, made_by="test").close()
    elif harm == "missing":
        shutil.rmtree(data.broker.checkpoint)
    else:
        (data.broker.checkpoint / "CURRENT").unlink()
    with pytest.raises(CheckpointRefused):
        data.start()

    loss = lose(data)
    said = mend(data)

    assert loss.nothing
    assert said == ["The checkpoint was made anew from history, up to batch 8."]
    assert data.start() == {KEY: 12}
    assert (data.broker.quarantine / "checkpoint.1").exists() == (harm != "missing")


def test_a_checkpoint_with_one_damaged_block_is_made_anew(tmp_path: Path) -> None:
    """It can be opened, and says where it ends: only reading all of it shows the damage."""
    data = DataDirectory(tmp_path / "data")
    data.journal.segment([[commit(number, group=f"group-{number}") for number in range(2000)]])
    data.write(1)
    data.compact(1)
    table = max(data.broker.checkpoint.glob("*.ldb"), key=lambda path: path.stat().st_size)
    flip_byte(table, table.stat().st_size // 2)

    mend(data)

    assert len(data.start()) == 2001


def test_a_lost_checkpoint_and_a_damaged_journal_are_mended_together(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(1)
    shutil.rmtree(data.broker.checkpoint)
    flip_header(data)

    loss = lose(data)
    mend(data)

    assert [(each.lost and each.lost.offset, each.kept and each.kept.offset) for each in loss.offsets] == [(12, 4)]
    assert data.start() == {KEY: 4}


def test_an_older_copy_of_the_checkpoint_is_carried_on_from_history(tmp_path: Path) -> None:
    """Also when history no longer reaches back to batch 1."""
    data = three_segments(tmp_path)
    data.compact(1)
    shutil.copytree(data.broker.checkpoint, tmp_path / "copy")
    data.compact(1)
    shutil.rmtree(data.broker.checkpoint)
    (tmp_path / "copy").rename(data.broker.checkpoint)
    (data.broker.history / segment_name(1)).unlink()
    with pytest.raises(JournalRefused, match="`offsetd journal repair` can close the gap"):
        data.start()

    assert lose(data).batches == ()
    assert mend(data) == ["The checkpoint was carried on from history, up to batch 8."]
    assert data.start() == {KEY: 12}


def test_a_checkpoint_of_another_life_of_the_journal_is_made_anew(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(1)
    other = DataDirectory(tmp_path / "other")
    other.journal.segment([[commit(100)]] * 4)
    other.compact(1)
    shutil.rmtree(data.broker.checkpoint)
    other.broker.checkpoint.rename(data.broker.checkpoint)
    with pytest.raises(FoldRefused):
        data.start()

    mend(data)

    assert data.start() == {KEY: 12}


def test_a_checkpoint_of_another_life_is_refused_before_anything_follows_it(tmp_path: Path) -> None:
    """Commits that the journal took on top of it could never be folded."""
    data = DataDirectory(tmp_path / "data")
    data.write(4)
    other = DataDirectory(tmp_path / "other")
    other.journal.segment([[commit(100)]] * 4)
    other.compact(1)
    shutil.rmtree(data.broker.checkpoint)
    other.broker.checkpoint.rename(data.broker.checkpoint)
    with pytest.raises(JournalRefused, match="batch 4 is not the one that the checkpoint ends with"):
        data.start()

    mend(data)

    assert data.start() == {KEY: 4}


def test_a_checkpoint_that_history_cannot_bring_back_is_refused(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(2)
    shutil.rmtree(data.broker.checkpoint)
    (data.broker.history / segment_name(1)).unlink()
    before = data.content()

    with pytest.raises(RepairRefused, match=r"is missing\. .* cannot be repaired: .*does not follow batch 0"):
        mend(data)
    assert data.content() == before


def _newer_format(data: DataDirectory) -> None:
    header = bytearray(segment(data, 5).read_bytes())
    header[8] = 2
    length = int.from_bytes(header[12:16], "little")
    header[length - 4 : length] = crc32c.crc32c(bytes(header[: length - 4])).to_bytes(4, "little")
    segment(data, 5).write_bytes(header)


def _other_cluster(data: DataDirectory) -> None:
    JournalFiles(data.broker.journal, cluster=bytes(16), slots=SLOTS).segment([[commit(1)]])


def _link(data: DataDirectory) -> None:
    segment(data, 5).rename(data.path / "elsewhere")
    segment(data, 5).symlink_to(data.path / "elsewhere")


def _unknown_entry(data: DataDirectory) -> None:
    data.journal.segment([[b"\x93\x2a\x01\x00"]])


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (_newer_format, "journal format 2"),
        (_other_cluster, "another cluster"),
        (_link, "symbolic link"),
        (_unknown_entry, "kind 42 version 1"),
    ],
)
def test_what_is_not_damage_is_never_touched(tmp_path: Path, harm: Callable[[DataDirectory], None], says: str) -> None:
    data = three_segments(tmp_path)
    harm(data)
    before = data.content()

    with pytest.raises((JournalRefused, UnknownEntry), match=says):
        mend(data)
    assert data.content() == before


def test_a_journal_that_is_gone_altogether_may_have_held_more(tmp_path: Path) -> None:
    data = three_segments(tmp_path)
    data.compact(2)
    shutil.rmtree(data.broker.journal)

    loss = lose(data)
    data.broker.journal.mkdir()
    mend(data)

    assert (loss.untraced, loss.nothing, loss.kept_number) == (True, False, 8)
    assert data.start() == {KEY: 8}


def test_after_any_flipped_byte_a_repair_leaves_a_prefix_that_starts(tmp_path: Path) -> None:
    whole = DataDirectory(tmp_path / "whole")
    for _ in range(2):
        whole.write(2)
    whole.mark()
    length = len(segment(whole, 1).read_bytes())

    for number, position in ((1, 3), (1, 99), (1, length - 3), (3, 50), (3, 130), (3, length - 9)):
        data = whole.copy(tmp_path / f"{number}-{position}")
        flip_byte(segment(data, number), position)

        mend(data)

        assert data.start() in ({}, {KEY: 1}, {KEY: 2}, {KEY: 3}), (number, position)
