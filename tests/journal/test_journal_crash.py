"""Power cuts after every call of the real writer and of recovery itself: what was acknowledged is there afterwards."""

import asyncio
from typing import Any

import pytest

from offsetd.journal.recovery import JournalRefused
from tests.fakes.disk import FakeDisk, FakeSyncer
from tests.fakes.journal import JOURNAL, Bench, recover_all


class Checker:
    """Looks at every crash state after every call of a disk."""

    def __init__(self) -> None:
        self.attempted: list[int] = []
        self.promised: list[object] = []
        self.states = 0

    def check(self, disk: FakeDisk) -> None:
        """Recover from all that a power cut could leave now."""
        for crashed in disk.after_crash():
            self.states += 1
            try:
                _, values = recover_all(crashed)
            except JournalRefused as refused:
                pytest.fail(f"a crash is no damage: {refused}")
            assert values == self.attempted[: len(values)]
            assert len(values) >= len(self.promised)
            # What was recovered may be served, so it must survive the next power cut.
            _, again = recover_all(crashed.power_cut())
            assert again == values


async def write(disk: FakeDisk, checker: Checker, *, turns: int, lax: bool = False, **settings: Any) -> Bench:
    """Write a few batches, looking at every crash state on the way."""
    recovered, values = recover_all(disk)
    syncer = FakeSyncer(disk)
    bench = Bench(disk, syncer, recovered, **settings)
    checker.attempted = list(values)
    checker.promised = list(values)
    disk.on_call = lambda: checker.check(disk)
    bench.writer.open()
    value = len(values)
    for turn in range(turns):
        for _ in range(1 + turn % 3):
            value += 1
            checker.attempted.append(value)
            bench.append(value, size=(0, 700, 40)[turn % 3])
        while len(bench.settled) < value - len(values):
            await asyncio.sleep(0)
            if not lax:
                checker.promised = [*values, *bench.settled]
        if lax:
            synced = bench.writer.synced_number
            await asyncio.sleep(0)
            assert synced <= bench.writer.last_batch_number
    await bench.writer.close()
    checker.promised = [*values, *bench.settled]
    checker.check(disk)
    disk.on_call = lambda: None
    return bench


async def test_every_acknowledged_batch_survives_a_power_cut_at_any_call() -> None:
    """Over rolls, clean stops and two lives of the daemon."""
    disk = FakeDisk()
    checker = Checker()

    first = await write(disk, checker, turns=7, segment_bytes=1500)
    second = await write(disk, checker, turns=7, segment_bytes=1500)

    assert len(first.sealed) >= 2
    assert len(second.sealed) >= 2
    assert checker.states > 500


async def test_with_a_lax_flush_setting_a_crash_loses_a_tail_and_nothing_else() -> None:
    """What is lost was never synced, and no state is taken for damage."""
    disk = FakeDisk()
    checker = Checker()

    bench = await write(disk, checker, turns=9, lax=True, segment_bytes=2500, flush_messages=5)

    assert bench.sealed
    assert checker.states > 300


async def test_a_power_cut_during_recovery_changes_nothing() -> None:
    """Recovery may die after any of its calls; the next one gets the same values."""
    disk = FakeDisk()
    bench = Bench(disk, FakeSyncer(disk))
    bench.writer.open()
    bench.append(1)
    await asyncio.sleep(0.001)
    while bench.settled != [1]:
        await asyncio.sleep(0)
    checker = Checker()
    checker.attempted, checker.promised = [1, 2], [1]
    path = bench.writer.active_path
    durable = disk.power_cut()
    for torn in (b"OFDB junk", bytes(700)):
        harmed = FakeDisk(durable.content() | {path: durable.content()[path] + torn})
        harmed.on_call = lambda harmed=harmed: checker.check(harmed)  # type: ignore[misc]
        recovered, values = recover_all(harmed)
        assert values == [1]
        assert recovered.torn is not None
    assert checker.states > 10
    await bench.writer.close()


async def test_a_failed_sync_leaves_nothing_that_only_the_page_cache_has() -> None:
    """After a failed sync the cache calls lost pages clean; recovery must write them anew before it serves them."""
    disk = FakeDisk()
    syncer = FakeSyncer(disk)
    bench = Bench(disk, syncer)
    bench.writer.open()
    syncer.error_at = {1: 5}
    bench.append(1)
    while not bench.exits:
        await asyncio.sleep(0)
    disk.names[JOURNAL / bench.writer.active_path.name].pending = []  # what a kernel does after EIO

    _, values = recover_all(disk)

    assert values == [1]
    assert recover_all(disk.power_cut())[1] == [1]
    syncer.close()
