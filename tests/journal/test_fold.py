"""Folding: a run of batches becomes puts and deletes, wherever the runs are cut."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.journal.batch import Batch
from offsetd.journal.fold import Fold, FoldRefused, Key, Place, fold_runs
from offsetd.journal.segment import read_batches
from offsetd.record import Generation, GenerationMember, UnknownEntry, encode_opening
from offsetd.rows import restore
from tests.histories import (
    SLOTS,
    WHOS,
    Commit,
    Completed,
    GroupTombstone,
    Model,
    Row,
    Step,
    Tombstone,
    check_slot,
    encode,
    slot_of,
    steps,
)
from tests.segments import JournalFiles, fresh_tables

TIME_MS = 1 << 32


class Rows:
    """A checkpoint in a dict."""

    def __init__(self) -> None:
        self.rows: dict[Key, bytes] = {}
        self.place = Place()

    def read(self, slot: int, group_id: str) -> Iterable[tuple[str, bytes]]:
        return [(topic, value) for (s, g, topic), value in self.rows.items() if (s, g) == (slot, group_id)]

    def write(self, fold: Fold) -> None:
        self.rows.update(fold.puts)
        for key in fold.deletes:
            del self.rows[key]
        self.place = fold.place

    def fold(self, batches: Iterable[Batch], *, run_bytes_max: int = 1 << 24) -> list[Fold]:
        folds = []
        for fold in fold_runs(batches, self.place, self.read, run_bytes_max=run_bytes_max):
            self.write(fold)
            folds.append(fold)
        return folds


def _batches(directory: Path, history: list[list[bytes]]) -> list[Batch]:
    return list(read_batches(JournalFiles(directory).segment(history)))


def _commit(group: str, *partitions: int, topic: str = "orders") -> Commit:
    rows = tuple(Row(partition, 10 + partition, -1, None, "") for partition in partitions)
    return Commit(group, TIME_MS, WHOS[0], ((topic, rows, None),))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    history=st.lists(st.lists(steps, min_size=1, max_size=3), min_size=1, max_size=8),
    cut=st.integers(0, 8),
    run_bytes_max=st.sampled_from((0, 200, 1 << 24)),
)
def test_wherever_the_runs_are_cut_the_rows_are_those_of_a_plain_dict(
    tmp_path_factory: pytest.TempPathFactory, history: list[list[Step]], cut: int, run_bytes_max: int
) -> None:
    batches = _batches(tmp_path_factory.mktemp("journal"), [[encode(step) for step in batch] for batch in history])
    models = [Model() for _ in range(SLOTS)]
    for step in (step for batch in history for step in batch):
        models[slot_of(step.group)].apply(step)
    checkpoint = Rows()

    folds = checkpoint.fold(batches[:cut], run_bytes_max=run_bytes_max)
    folds += checkpoint.fold(batches, run_bytes_max=run_bytes_max)

    assert checkpoint.place.number == batches[-1].number
    assert checkpoint.place.crc == batches[-1].crc
    assert sum(fold.batches for fold in folds) == len(batches)
    assert sum(fold.records for fold in folds) == sum(model.sequence for model in models)
    _, tables = fresh_tables()
    for (slot, group_id, topic), value in checkpoint.rows.items():
        restore(tables[slot], group_id, topic, value)
    for table, model in zip(tables, models, strict=True):
        mark = checkpoint.place.slots.get(table.slot)
        if mark is not None:
            table.sequence, table.newest_ms = mark.sequence, mark.newest_ms
        check_slot(table, model)


def test_a_fold_writes_only_what_changed(tmp_path: Path) -> None:
    batches = _batches(
        tmp_path,
        [
            [encode(_commit("billing", 0, 1)), encode(_commit("billing", 5, topic="returns"))],
            [encode(_commit("billing", 1))],
            [encode(Tombstone("billing", TIME_MS, WHOS[0], (("returns", (5,)),)))],
            [encode(GroupTombstone("billing", TIME_MS, WHOS[0]))],
        ],
    )
    slot = slot_of("billing")
    checkpoint = Rows()

    folds = [fold for batch in batches for fold in checkpoint.fold([batch])]

    assert [sorted(topic for _, _, topic in fold.puts) for fold in folds] == [["", "orders", "returns"], [], [], []]
    assert [fold.deletes for fold in folds[:3]] == [(), (), ((slot, "billing", "returns"),)]
    assert sorted(folds[3].deletes) == [(slot, "billing", ""), (slot, "billing", "orders")]
    assert checkpoint.rows == {}


def _completed(group: str, number: int, *members: str) -> Completed:
    rows = tuple(GenerationMember(name, None, "c", "/h", 1, 2, b"said", b"part") for name in members)
    return Completed(group, TIME_MS + number, WHOS[1], Generation("consumer", number, "range", "m-1", rows))


def test_a_generation_changes_the_groups_own_row_and_no_other(tmp_path: Path) -> None:
    batches = _batches(
        tmp_path,
        [
            [encode(_commit("billing", 0, 1))],
            [encode(_completed("billing", 1, "m-1"))],
            [encode(_completed("billing", 1, "m-1"))],
            [encode(_completed("billing", 2))],
            [encode(Tombstone("billing", TIME_MS, WHOS[0], (("orders", (0, 1)),)))],
            [encode(GroupTombstone("billing", TIME_MS, WHOS[0]))],
        ],
    )
    slot = slot_of("billing")
    checkpoint = Rows()

    folds = [fold for batch in batches for fold in checkpoint.fold([batch])]

    assert [sorted(topic for _, _, topic in fold.puts) for fold in folds] == [["", "orders"], [""], [], [""], [], []]
    assert [fold.deletes for fold in folds[:4]] == [()] * 4
    assert [fold.deletes for fold in folds[4:]] == [((slot, "billing", "orders"),), ((slot, "billing", ""),)]
    assert checkpoint.rows == {}


def test_a_group_of_members_alone_is_kept_and_restored(tmp_path: Path) -> None:
    completed = _completed("audit", 7, "m-1", "m-2")
    checkpoint = Rows()
    checkpoint.fold(_batches(tmp_path, [[encode(completed)]]))
    _, tables = fresh_tables()
    for (slot, group_id, topic), value in checkpoint.rows.items():
        restore(tables[slot], group_id, topic, value)
    group = tables[slot_of("audit")].groups["audit"]

    assert [topic for _, _, topic in checkpoint.rows] == [""]
    assert group.generation == (TIME_MS + 7, completed.generation)
    assert group.who == WHOS[1]
    assert (group.live, group.names()) == (0, [])


def test_a_group_that_came_and_went_within_a_run_leaves_nothing(tmp_path: Path) -> None:
    batches = _batches(tmp_path, [[encode(_commit("audit", 0))], [encode(GroupTombstone("audit", TIME_MS, WHOS[0]))]])
    checkpoint = Rows()

    (fold,) = checkpoint.fold(batches)

    assert (fold.puts, fold.deletes, fold.batches, fold.records) == ({}, (), 2, 2)
    assert fold.place.slots[slot_of("audit")].sequence == 2


def test_a_run_is_cut_by_what_it_holds_and_not_by_what_it_read(tmp_path: Path) -> None:
    """A group that commits again and again is one row, however many batches that takes."""
    same = _batches(tmp_path / "same", [[encode(_commit("billing", 0))] for _ in range(300)])
    different = _batches(tmp_path / "different", [[encode(_commit(f"group-{n}", 0))] for n in range(300)])

    assert len(Rows().fold(same, run_bytes_max=2000)) == 1
    assert len(Rows().fold(different, run_bytes_max=2000)) > 5


def test_an_opening_moves_the_place_and_nothing_else(tmp_path: Path) -> None:
    batches = _batches(tmp_path, [[encode_opening(1, TIME_MS, "0.1.0")]])
    checkpoint = Rows()

    (fold,) = checkpoint.fold(batches)

    assert (fold.puts, fold.deletes, fold.records) == ({}, (), 0)
    assert (fold.place.number, fold.place.epoch, fold.place.slots) == (1, 1, {})


def test_a_missing_batch_is_refused(tmp_path: Path) -> None:
    batches = _batches(tmp_path, [[encode(_commit("b", n))] for n in range(4)])
    checkpoint = Rows()
    checkpoint.fold(batches[:1])

    with pytest.raises(FoldRefused, match="ends with batch 1, and batch 3 of the journal stands where batch 2 should"):
        checkpoint.fold(batches[2:])


def test_a_batch_of_another_life_of_the_journal_is_refused(tmp_path: Path) -> None:
    ours = _batches(tmp_path / "ours", [[encode(_commit("b", n))] for n in range(2)])
    others = _batches(tmp_path / "others", [[encode(_commit("b", n + 7))] for n in range(2)])
    checkpoint = Rows()
    checkpoint.fold(ours[:1])

    with pytest.raises(FoldRefused, match="does not follow it"):
        checkpoint.fold(others)


def test_an_unknown_kind_is_refused_and_nothing_of_its_run_is_written(tmp_path: Path) -> None:
    unknown = b"\x94\x2a\x01\x00\xa1b"
    batches = _batches(tmp_path, [[encode(_commit("b", 0))], [unknown]])
    checkpoint = Rows()

    with pytest.raises(UnknownEntry, match="kind 42"):
        checkpoint.fold(batches)
    assert checkpoint.rows == {}


def test_a_commit_that_others_replaced_still_counts_and_its_time_stays_the_newest(tmp_path: Path) -> None:
    """A clock that was set back between two commits must not make the log's own time fall."""
    late = Commit("billing", TIME_MS + 500, WHOS[0], (("orders", (Row(0, 10, -1, None, "old words"),), None),))
    early = Commit("billing", TIME_MS, WHOS[0], (("orders", (Row(0, 11, -1, None, ""),), None),))
    batches = _batches(tmp_path, [[encode(late), encode(early)], [encode(early)]])
    model = Model()
    for step in (late, early, early):
        model.apply(step)
    checkpoint = Rows()

    (fold,) = checkpoint.fold(batches)

    slot = slot_of("billing")
    mark = fold.place.slots[slot]
    assert (fold.records, mark.sequence, mark.newest_ms) == (3, 3, TIME_MS + 500)
    _, tables = fresh_tables()
    for (_, group_id, topic), value in checkpoint.rows.items():
        restore(tables[slot], group_id, topic, value)
    tables[slot].sequence, tables[slot].newest_ms = mark.sequence, mark.newest_ms
    check_slot(tables[slot], model)
