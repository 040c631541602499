"""The engine over a real directory, in this process: open, load, append, settle, compact, close, and again."""

import errno
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from offsetd.coordinator.slot import slot_of
from offsetd.journal.checkpoint import Checkpoint, CheckpointRefused
from offsetd.journal.engine import EngineSettings
from offsetd.journal.examine import JournalRefused
from offsetd.journal.sealed import sealed_path
from offsetd.journal.segment import load_header
from offsetd.journal.syncer import SyncerGone
from tests.fakes.engine import EngineLife, commit_entry

NOW_MS = 1_700_000_000_000
#: Three or four batches per segment, and every sealed segment is worth compacting.
SMALL = EngineSettings(segment_bytes=1000, cleanable_ratio=0.0, cleaner_backoff_ms=1, reserve_bytes=0)
#: The same, but a compaction is never due.
PATIENT = EngineSettings(segment_bytes=1000, cleanable_ratio=1.0, compaction_lag_ms=10**12, reserve_bytes=0)
GROUPS = tuple(next(f"g{n}" for n in range(100) if slot_of(f"g{n}", 3) == slot) for slot in range(3))


def entry(number: int, group: str = "billing") -> bytes:
    """Return a commit of this number."""
    return commit_entry(group, {("orders", 0): number}, time_ms=NOW_MS + number)


@asynccontextmanager
async def life(data: Path, settings: EngineSettings = PATIENT, **options: Any) -> AsyncIterator[EngineLife]:
    """Open and load an engine for the length of a block, and close it."""
    engine = EngineLife(data, settings=settings, **options)
    try:
        engine.open()
        engine.load()
        yield engine
    finally:
        await engine.close()


def segments(engine: EngineLife) -> list[Path]:
    """Return the segments of the journal, in order."""
    return sorted(engine.directory.journal.glob("*.segment"))


async def test_what_was_settled_is_there_after_a_clean_stop(tmp_path: Path) -> None:
    """At the next epoch, and with nothing cut."""
    async with life(tmp_path / "data") as first:
        await first.settle([entry(1), entry(2, "audit"), entry(3)])

        assert first.engine.epoch == 1
        assert first.offsets() == {("billing", "orders", 0): 3, ("audit", "orders", 0): 2}
    assert (first.directory.journal / "clean-stop").exists()
    async with life(tmp_path / "data") as second:
        assert second.engine.epoch == 2
        assert second.offsets() == first.offsets()
        assert [table.sequence for table in second.tables] == [table.sequence for table in first.tables]
        assert second.observed.recovered_torn_bytes == 0
        assert not (second.directory.journal / "clean-stop").exists()


async def test_every_life_opens_one_epoch_more(tmp_path: Path) -> None:
    """Also when nothing is committed in it, and across a compaction."""
    for epoch in range(1, 4):
        async with life(tmp_path / "data", SMALL) as engine:
            assert engine.engine.epoch == epoch
    async with life(tmp_path / "data", SMALL) as engine:
        for number in range(20):
            await engine.settle([entry(number)])
        await engine.compact()
    async with life(tmp_path / "data", SMALL) as engine:
        assert engine.engine.epoch == 5


async def test_appended_but_not_settled_entries_are_settled_by_a_close(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as first:
        for number in range(1, 6):
            first.append(entry(number))
        assert first.settled == []

    assert len(first.settled) == 5
    async with life(tmp_path / "data") as second:
        assert second.offsets() == {("billing", "orders", 0): 5}


async def test_entries_of_one_turn_are_one_batch(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as engine:
        await engine.wait_until(lambda: engine.engine.batch_number == 1)
        await engine.settle([entry(number) for number in range(50)])

        assert engine.engine.batch_number == 2
        assert engine.observed.journal_records == 51


async def test_opening_tells_how_much_it_has_read(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as first:
        for number in range(20):
            await first.settle([entry(number)])
    engine = EngineLife(tmp_path / "data", settings=PATIENT)
    try:
        told = engine.open()
    finally:
        await engine.close()

    assert told == sorted(told)
    assert told[-1] >= sum(path.stat().st_size for path in segments(engine)[:-1])


async def test_nothing_is_compacted_before_every_slot_is_loaded(tmp_path: Path) -> None:
    """LevelDB belongs to one process at a time, and the load has it."""
    async with life(tmp_path / "data") as first:
        for number in range(20):
            await first.settle([entry(number)])
        assert len(segments(first)) >= 3
    engine = EngineLife(tmp_path / "data", settings=SMALL)
    try:
        engine.open()
        list(engine.engine.load(engine.tables[0]))
        for number in range(20, 40):
            await engine.settle([entry(number, GROUPS[0])])
        engine.engine.tick(NOW_MS)

        assert engine.engine.sizes().oldest_sealed_ms is not None
        assert not engine.engine._compaction.running
        assert engine.observed.compaction_runs == 0
        for table in engine.tables[1:]:
            list(engine.engine.load(table))
        engine.engine.loaded()
        engine.engine.tick(NOW_MS)
        assert engine.engine._compaction.running
        await engine.wait_until(lambda: engine.observed.compaction_runs == 1)
    finally:
        await engine.close()
    assert engine.observed.compaction_failures == 0
    assert engine.observed.compaction_lag_bytes == 0


async def test_a_sealed_segment_is_compacted_without_being_asked(tmp_path: Path) -> None:
    """No tick comes: sealing alone is the occasion."""
    async with life(tmp_path / "data", SMALL) as engine:
        for number in range(20):
            await engine.settle([entry(number)])
        await engine.wait_until(lambda: engine.observed.compaction_runs > 0)

    assert engine.observed.compaction_failures == 0
    assert sorted(engine.directory.history.iterdir())


async def test_sizes_tell_where_the_bytes_are(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as engine:
        for number in range(20):
            await engine.settle([entry(number)])
        before = engine.engine.sizes()
        sealed = len(segments(engine)) - 1
        await engine.compact()
        after = engine.engine.sizes()

        assert before.journal_segments == sealed + 1
        assert before.journal_bytes == after.journal_bytes + after.history_bytes
        assert (before.history_segments, before.history_bytes) == (0, 0)
        assert before.oldest_sealed_ms is not None
        assert (after.journal_segments, after.history_segments) == (1, sealed)
        assert after.oldest_sealed_ms is None
        assert after.checkpoint_bytes > 0


async def test_what_was_compacted_is_loaded_with_what_came_after(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as first:
        for number in range(20):
            await first.settle([entry(number, f"g{number % 5}")])
        await first.compact()
        await first.settle([entry(100, "g0"), entry(101, "new")])
    async with life(tmp_path / "data") as second:
        assert second.offsets() == first.offsets()
        assert second.offsets()["g0", "orders", 0] == 100
        assert [table.sequence for table in second.tables] == [table.sequence for table in first.tables]


async def test_a_segment_made_while_loading_names_the_sequences_of_all_slots(tmp_path: Path) -> None:
    """Also those of slots that were not loaded, and also when it is made by the very end."""
    async with life(tmp_path / "data") as first:
        await first.settle([entry(number, group) for number in range(4) for group in GROUPS])
        sequences = [table.sequence for table in first.tables]
    assert sequences == [4, 4, 4]
    second = EngineLife(tmp_path / "data", settings=EngineSettings(segment_bytes=100, reserve_bytes=0))
    try:
        second.open()
        list(second.engine.load(second.tables[0]))
        second.append(entry(50, GROUPS[0]))
    finally:
        await second.close()

    last = segments(second)[-1]
    data = last.read_bytes()
    header = load_header(lambda position, size: data[position : position + size], path=last)
    assert header.next_sequences in [(4, 4, 4), (5, 4, 4)]
    async with life(tmp_path / "data") as third:
        assert [table.sequence for table in third.tables] == [5, 4, 4]


async def test_a_torn_tail_is_cut_and_counted(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as first:
        await first.settle([entry(1)])
    (first.directory.journal / "clean-stop").unlink()
    with segments(first)[-1].open("ab") as segment:
        segment.write(b"OFDB torn")

    async with life(tmp_path / "data") as second:
        assert second.observed.recovered_torn_bytes == 9
        assert second.offsets() == {("billing", "orders", 0): 1}
    assert [path.read_bytes() for path in second.directory.quarantine.iterdir()] == [b"OFDB torn"]


async def test_a_helper_that_is_gone_is_noticed_at_the_opening(tmp_path: Path) -> None:
    """And the engine can still be closed."""
    engine = EngineLife(tmp_path / "data")
    syncer = engine.engine._syncer
    os.kill(syncer.process_id, signal.SIGKILL)
    assert syncer._process is not None
    syncer._process.wait()

    try:
        with pytest.raises(SyncerGone):
            engine.open()
    finally:
        await engine.close()


async def test_a_load_that_is_given_up_lets_the_checkpoint_go(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as first:
        await first.settle([entry(1)])
    second = EngineLife(tmp_path / "data")
    second.open()
    half_way = second.engine.load(second.tables[0])
    next(half_way)
    await second.close()

    identity = second.engine._cluster_id
    Checkpoint.open(second.directory.checkpoint, cluster_id=identity, wait_s=0).close()
    assert (second.directory.journal / "clean-stop").exists()


async def test_an_opening_that_is_given_up_half_way_changes_nothing(tmp_path: Path) -> None:
    """As by a stop in the first moment of a start; what was promised stays promised."""
    async with life(tmp_path / "data", EngineSettings(reserve_bytes=0)) as first:
        for number in range(10):
            rows = {("orders", partition): number for partition in range(5000)}
            await first.settle([commit_entry("billing", rows, time_ms=NOW_MS)])
    before = [path.read_bytes() for path in segments(first)]
    second = EngineLife(tmp_path / "data")
    steps = second.engine.open()
    assert next(steps) < len(before[0])
    await second.close()
    steps.close()  # type: ignore[attr-defined]

    assert [path.read_bytes() for path in segments(second)] == before
    async with life(tmp_path / "data") as third:
        assert third.engine.epoch == 2
        assert third.offsets() == first.offsets()


def _lose_checkpoint(first: EngineLife) -> None:
    shutil.rmtree(first.directory.checkpoint)


def _lose_everything_but_history(first: EngineLife) -> None:
    shutil.rmtree(first.directory.checkpoint)
    shutil.rmtree(first.directory.journal)


def _lose_everything_but_sealed_history(first: EngineLife) -> None:
    _lose_everything_but_history(first)
    shutil.rmtree(first.directory.history)
    path = sealed_path(first.directory.sealed, date(2026, 3, 1), 1, 9)
    path.parent.mkdir(parents=True)
    path.touch()


@pytest.mark.parametrize("lose", [_lose_checkpoint, _lose_everything_but_history, _lose_everything_but_sealed_history])
async def test_a_lost_checkpoint_is_no_new_beginning(tmp_path: Path, lose: Callable[[EngineLife], None]) -> None:
    async with life(tmp_path / "data") as first:
        for number in range(20):
            await first.settle([entry(number)])
        await first.compact()
    lose(first)
    second = EngineLife(tmp_path / "data")

    try:
        with pytest.raises(CheckpointRefused, match="is missing"):
            second.open()
    finally:
        await second.close()
    assert not second.directory.checkpoint.exists()


async def test_a_batch_that_does_not_follow_the_checkpoint_is_named_by_its_place(tmp_path: Path) -> None:
    async with life(tmp_path / "data") as first:
        await first.settle([entry(1)])
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    async with life(tmp_path / "copy") as other:
        for number in range(20):
            await other.settle([entry(100 + number)])
        await other.compact()
    async with life(tmp_path / "data") as first:
        for number in range(40):
            await first.settle([entry(200 + number)])
    shutil.rmtree(first.directory.checkpoint)
    shutil.copytree(other.directory.checkpoint, first.directory.checkpoint)
    mixed = EngineLife(tmp_path / "data")

    try:
        with pytest.raises(JournalRefused, match="does not follow the checkpoint") as refused:
            mixed.open()
    finally:
        await mixed.close()
    assert refused.value.path in segments(mixed)
    assert 0 < refused.value.position < refused.value.path.stat().st_size


async def test_a_full_disk_refuses_and_heals_without_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ticks alone."""
    async with life(tmp_path / "data") as engine:
        await engine.settle([entry(1)])
        real = os.write

        def no_room(descriptor: int, data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "write", no_room)
        engine.append(entry(2))
        await engine.wait_until(lambda: bool(engine.refused))
        assert engine.engine.full
        monkeypatch.setattr(os, "write", real)

        deadline = time.monotonic() + 60
        while engine.engine.full:
            assert time.monotonic() < deadline
            engine.engine.tick(NOW_MS)

        await engine.settle([entry(3)])
        assert engine.offsets() == {("billing", "orders", 0): 3}
    assert [error.errno for _, error in engine.refused] == [errno.ENOSPC]
