"""Load: checkpoint, journal or both, wherever the line between them is drawn, the answers are the same."""

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.journal.checkpoint import Checkpoint, CheckpointRefused
from offsetd.journal.compact import compact
from offsetd.journal.fold import FoldRefused, fold_runs
from offsetd.journal.load import SLICE_ROWS, Loader
from offsetd.journal.segment import read_batches
from offsetd.record import encode_opening
from tests.histories import SLOTS, WHOS, Commit, Model, Row, Step, check_index, check_slot, encode, slot_of, steps
from tests.segments import CLUSTER_ID, JournalFiles, fresh_tables

TIME_MS = 1 << 32


def _create(directory: Path) -> Checkpoint:
    return Checkpoint.create(directory / "checkpoint", cluster_id=CLUSTER_ID, made_by="test")


def _open(directory: Path) -> Checkpoint:
    return Checkpoint.open(directory / "checkpoint", cluster_id=CLUSTER_ID)


def _check(checkpoint: Checkpoint, paths: list[Path], models: list[Model]) -> None:
    loader = Loader(checkpoint)
    try:
        for path in paths:
            for batch in read_batches(path):
                loader.add_batch(batch)
        index, tables = fresh_tables()
        ahead = [loader.next_sequence(table) for table in tables]
        for table in tables:
            counts = list(loader.load(table))
            assert counts[-1] == table.live
        assert ahead == [table.sequence for table in tables] == [loader.next_sequence(table) for table in tables]
        for table, model in zip(tables, models, strict=True):
            check_slot(table, model)
        check_index(index, tables)
    finally:
        loader.close()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    history=st.lists(st.lists(st.lists(steps, min_size=1, max_size=2), min_size=1, max_size=4), min_size=1, max_size=4),
    folded=st.lists(st.integers(0, 8), max_size=3),
    run_bytes_max=st.sampled_from((0, 300, 1 << 24)),
)
def test_compaction_changes_no_answer(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[list[list[Step]]],
    folded: list[int],
    run_bytes_max: int,
) -> None:
    """Journal only, checkpoint and journal with the line anywhere, checkpoint only: against a plain dict."""
    directory = tmp_path_factory.mktemp("broker")
    journal = JournalFiles(directory / "journal")
    for segment in history:
        journal.segment([[encode(step) for step in batch] for batch in segment])
    models = [Model() for _ in range(SLOTS)]
    for step in (step for segment in history for batch in segment for step in batch):
        models[slot_of(step.group)].apply(step)

    _check(_create(directory), journal.paths, models)
    for upto in folded:
        with _open(directory) as checkpoint:
            batches = (batch for path in journal.paths for batch in read_batches(path) if batch.number <= upto)
            for fold in fold_runs(batches, checkpoint.place, checkpoint.group_rows, run_bytes_max=run_bytes_max):
                checkpoint.fold(fold)
        _check(_open(directory), journal.paths, models)
    with _open(directory) as checkpoint:
        compact(checkpoint, journal.paths, cluster_id=CLUSTER_ID, history=None, run_bytes_max=run_bytes_max)
    assert not any(path.exists() for path in journal.paths)
    _check(_open(directory), [], models)


def _commit(group: str, offset: int = 1) -> bytes:
    return encode(Commit(group, TIME_MS, WHOS[0], (("orders", (Row(0, offset, -1, None, ""),), None),)))


def test_a_load_gives_the_loop_a_turn_every_few_hundred_rows(tmp_path: Path) -> None:
    journal = JournalFiles(tmp_path / "journal")
    journal.segment([[_commit(f"group-{n}") for n in range(1000)]])
    tail = journal.segment([[_commit(f"group-{n}", 2) for n in range(1000)]])
    with _create(tmp_path) as checkpoint:
        compact(checkpoint, journal.paths[:1], cluster_id=CLUSTER_ID, history=None)

    loader = Loader(_open(tmp_path))
    for batch in read_batches(tail):
        loader.add_batch(batch)
    _, tables = fresh_tables()
    slices = [len(list(loader.load(table))) for table in tables]
    loader.close()

    assert sum(table.live for table in tables) == 1000
    # Two rows of the checkpoint and one entry of the tail for each group.
    assert sum(slices) >= 3000 // SLICE_ROWS - SLOTS


def test_the_epoch_is_the_highest_that_was_opened(tmp_path: Path) -> None:
    journal = JournalFiles(tmp_path / "journal")
    journal.segment([[encode_opening(1, TIME_MS, "0.1.0")]], epoch=1)
    journal.segment([[encode_opening(2, TIME_MS, "0.1.0")], [_commit("b")]], epoch=2)
    with _create(tmp_path) as checkpoint:
        compact(checkpoint, journal.paths[:1], cluster_id=CLUSTER_ID, history=None)

    loader = Loader(_open(tmp_path))
    assert (loader.epoch, loader.folded_number, loader.last_number) == (1, 1, 1)
    for batch in read_batches(journal.paths[1]):
        loader.add_batch(batch)
    loader.close()

    assert (loader.epoch, loader.folded_number, loader.last_number) == (2, 1, 3)
    assert loader.last_time_ms == TIME_MS + 3


def test_a_gap_between_checkpoint_and_tail_is_refused(tmp_path: Path) -> None:
    journal = JournalFiles(tmp_path / "journal")
    path = journal.segment([[_commit("b", n)] for n in range(3)])

    loader = Loader(_create(tmp_path))
    with pytest.raises(FoldRefused, match="ends with batch 0, and batch 2"):
        loader.add_batch(next(islice(read_batches(path), 1, None)))
    loader.close()


def test_a_closed_loader_has_let_the_checkpoint_go(tmp_path: Path) -> None:
    loader = Loader(_create(tmp_path))
    loader.close()
    loader.close()

    _open(tmp_path).close()


def test_a_damaged_row_fails_the_load_and_not_the_answer(tmp_path: Path) -> None:
    journal = JournalFiles(tmp_path / "journal")
    journal.segment([[_commit(f"group-{n}") for n in range(2000)]])
    with _create(tmp_path) as checkpoint:
        compact(checkpoint, journal.paths, cluster_id=CLUSTER_ID, history=None)
    table_file = max((tmp_path / "checkpoint").glob("*.ldb"), key=lambda path: path.stat().st_size)
    data = bytearray(table_file.read_bytes())
    data[len(data) // 2] ^= 1
    table_file.write_bytes(data)

    loader = Loader(_open(tmp_path))
    _, tables = fresh_tables()
    with pytest.raises(CheckpointRefused, match="is damaged"):
        _ = [list(loader.load(table)) for table in tables]
    loader.close()
