"""The writer: batching, order, flush settings, rolling, a full disk, and a failing one."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offsetd import failpoint
from offsetd.journal.batch import ENTRY_BYTES_MAX
from offsetd.journal.marker import CLEAN_STOP, DURABLE, decode_marker
from offsetd.journal.segment import Chain, iterate, read_header, segment_name
from offsetd.journal.writer import EXIT_CODE, JournalClosed
from tests.fakes.disk import FakeDisk, FakeSyncer
from tests.fakes.journal import JOURNAL, Bench, recover_all, values_of


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until something is true."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)


async def turns(count: int = 20) -> None:
    """Let the loop turn a few times."""
    for _ in range(count):
        await asyncio.sleep(0)


def start(**settings: Any) -> tuple[FakeDisk, FakeSyncer, Bench]:
    """Return a fresh journal, open."""
    disk = FakeDisk()
    syncer = FakeSyncer(disk)
    bench = Bench(disk, syncer, **settings)
    bench.writer.open()
    return disk, syncer, bench


async def test_the_entries_of_one_turn_become_one_batch() -> None:
    """One write and one sync for all who came together."""
    disk, syncer, bench = start()

    for value in range(1, 6):
        bench.append(value)
    await until(lambda: bench.settled)

    assert bench.settled == [1, 2, 3, 4, 5]
    assert bench.batches == [(1, 1_000)]
    assert syncer.requests == 1
    counts = bench.counts
    assert (counts.journal_batches, counts.journal_records, counts.journal_refusals) == (1, 5, 0)
    assert counts.batch_entries.values == [5]
    assert counts.batch_bytes.values == [counts.journal_bytes_written]
    assert len(counts.sync_seconds.values) == 1
    await bench.writer.close()
    assert recover_all(disk)[1] == [1, 2, 3, 4, 5]


async def test_while_a_sync_runs_the_next_batch_fills_in_memory() -> None:
    """It is written when the sync has returned, and before the settled ones are told."""
    disk, syncer, bench = start()
    syncer.held = True
    bench.append(1)
    await turns()
    size = len(disk.names[bench.writer.active_path].data)
    for value in (2, 3, 4):
        bench.append(value)
        await turns()

    assert bench.settled == []
    assert len(disk.names[bench.writer.active_path].data) == size, "nothing is written behind an unsynced batch"

    written: list[int] = []
    bench.writer._on_settled = lambda *_: written.append(bench.writer.last_batch_number)
    syncer.release()
    await until(lambda: len(written) == 2)

    assert written[0] == 2, "the next batch was on its way before the first was told"
    await bench.writer.close()
    segment = bench.writer.active_path
    data = disk.content()[segment]
    header = read_header(data)
    batches = list(iterate(data, header, chain=Chain.before(header)))
    assert [values_of(batch) for batch in batches] == [[1], [2, 3, 4]]
    assert [batch.synced_number for batch in batches] == [0, 1]


async def test_a_batch_stays_below_its_limit_and_splits_no_entry() -> None:
    """The rest goes into the next one."""
    disk, syncer, bench = start()
    for value in range(1, 13):
        bench.append(value, size=1_000_000)
    await until(lambda: len(bench.settled) == 12)

    assert bench.counts.batch_entries.values == [8, 4]
    with pytest.raises(ValueError, match="exceeds the limit"):
        bench.append(13, size=ENTRY_BYTES_MAX)
    await bench.writer.close()
    assert recover_all(disk)[1] == list(range(1, 13))
    assert syncer.requests == 2


async def test_segments_roll_by_size_age_and_on_request() -> None:
    """Each names the next sequences as they are after all that was settled before."""
    disk, _, bench = start(segment_bytes=400, roll_ms=60_000)
    for value in range(1, 5):
        bench.append(value, size=300)
        await until(lambda value=value: value in bench.settled)  # type: ignore[misc]
    await until(lambda: len(bench.sealed) == 3)
    assert [path.name for path in bench.sealed] == [segment_name(number) for number in (1, 2, 3)]

    bench.append(5)
    await until(lambda: 5 in bench.settled)
    bench.now_ms += 60_000
    bench.append(6)
    await until(lambda: 6 in bench.settled)
    bench.writer.roll_soon()
    bench.append(7)
    await until(lambda: 7 in bench.settled and len(bench.sealed) == 6)
    await bench.writer.close()

    recovered, values = recover_all(disk)
    assert values == [1, 2, 3, 4, 5, 6, 7]
    assert [each.header.first_number for each in recovered.segments] == [1, 2, 3, 4, 5, 6, 7]
    assert [each.header.next_sequences for each in recovered.segments] == [(n, n) for n in range(7)]
    marker = decode_marker(disk.content()[JOURNAL / DURABLE])
    assert marker is not None
    assert marker.number == 7


async def test_a_clean_stop_is_seen_by_the_next_start_which_writes_on() -> None:
    """In the same segment, with the next number and a higher epoch."""
    disk, _, bench = start()
    bench.append(1)
    await bench.writer.close()
    assert bench.settled == [1]
    assert JOURNAL / CLEAN_STOP in disk.power_cut().names
    with pytest.raises(JournalClosed):
        bench.append(2)

    recovered, _ = recover_all(disk)
    assert recovered.clean
    again = Bench(disk, FakeSyncer(disk), recovered)
    again.writer.open()
    again.append(2)
    await again.writer.close()

    recovered, values = recover_all(disk)
    assert values == [1, 2]
    assert (recovered.last_batch_number, recovered.last_epoch, len(recovered.segments)) == (2, 2, 1)


async def test_flush_by_count_settles_what_is_written() -> None:
    """The sync comes after so many entries; the header says what was synced."""
    disk, syncer, bench = start(flush_messages=3)
    syncer.held = True
    for value in range(1, 6):
        bench.append(value)
        await turns()
    assert bench.settled == [1, 2, 3, 4, 5], "settled does not wait for a sync"
    assert syncer.requests == 1
    assert bench.writer.synced_number == 0

    syncer.release()
    await until(lambda: bench.writer.synced_number == 3)
    bench.append(6)
    await until(lambda: bench.writer.synced_number == 6)
    await bench.writer.close()

    data = disk.content()[JOURNAL / segment_name(1)]
    assert [batch.synced_number for batch in iterate(data, read_header(data))] == [0, 0, 0, 0, 0, 3]


async def test_flush_by_time_syncs_without_another_append() -> None:
    """An idle journal is not left unsynced."""
    _, syncer, bench = start(flush_messages=1_000, flush_ms=5)
    bench.append(1)
    await until(lambda: bench.settled)
    assert syncer.requests == 0

    await until(lambda: bench.writer.synced_number == 1)

    assert syncer.requests == 1
    await bench.writer.close()


async def test_a_lax_journal_is_synced_before_it_rolls_and_when_it_closes() -> None:
    """A new segment promises that all before it is durable."""
    disk, syncer, bench = start(flush_messages=1_000, segment_bytes=200)
    for value in range(1, 4):
        bench.append(value, size=200)
        await until(lambda value=value: value in bench.settled)  # type: ignore[misc]
    await until(lambda: len(bench.sealed) == 2)
    assert syncer.requests == 2
    await bench.writer.close()
    assert recover_all(disk.power_cut())[1] == [1, 2, 3]


@pytest.mark.parametrize("fault", [(0, errno.ENOSPC), (0, errno.EDQUOT), (0, errno.EROFS), (30, 0)])
async def test_a_full_disk_refuses_commits_and_heals(fault: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """No torn batch stays behind, the reserve is given away, and taken again before commits are."""
    disk, _, bench = start(reserve_bytes=1_000)
    bench.append(1)
    await until(lambda: bench.settled)
    assert bench.reserve.held
    disk.free = 0
    disk.write_faults = [fault]

    bench.append(2)
    bench.append(3)
    await until(lambda: bench.refused)

    assert bench.refused == [(2, fault[1] or errno.ENOSPC), (3, fault[1] or errno.ENOSPC)]
    assert bench.writer.full
    assert not bench.reserve.held
    assert disk.reserved == {}
    assert len(disk.names[bench.writer.active_path].data) == bench.writer.active_bytes

    loop = asyncio.get_running_loop()
    began = loop.time()
    monkeypatch.setattr(loop, "time", lambda: began)
    disk.free = 1 << 30
    bench.append(4)
    await until(lambda: len(bench.refused) == 3)
    assert bench.writer.full, "a full disk is not tried again at once"

    monkeypatch.setattr(loop, "time", lambda: began + 10)
    disk.free = 1_500
    bench.append(5)
    await until(lambda: len(bench.refused) == 4)
    assert bench.writer.full, "commits wait until the reserve is back"

    monkeypatch.setattr(loop, "time", lambda: began + 20)
    disk.free = 1 << 30
    bench.append(6)
    await until(lambda: len(bench.settled) == 2)
    monkeypatch.undo()

    assert bench.settled == [1, 6]
    assert not bench.writer.full
    assert bench.reserve.held
    assert bench.counts.journal_refusals == 4
    await bench.writer.close()
    assert recover_all(disk)[1] == [1, 6]


async def test_without_a_reserve_a_full_disk_is_full_until_something_fits() -> None:
    """Nobody tries a commit: the disk itself is asked, and no trace of that is left."""
    disk, _, bench = start()
    disk.free = 0
    disk.write_faults = [(0, errno.ENOSPC)]
    bench.append(1)
    await until(lambda: bench.refused)

    bench.reserve._retry_at = 0.0
    bench.writer.try_to_heal()
    assert bench.writer.full
    disk.free = 1 << 30
    bench.reserve._retry_at = 0.0
    bench.writer.try_to_heal()

    assert not bench.writer.full
    assert disk.reserved == {}
    bench.append(2)
    await until(lambda: bench.settled == [2])
    await bench.writer.close()


async def test_a_full_disk_while_rolling_refuses_commits_and_heals() -> None:
    """The half-made segment goes away again."""
    disk, _, bench = start(segment_bytes=100)
    bench.append(1)
    await until(lambda: bench.settled)
    disk.write_faults = [(40, 0)]

    bench.append(2)
    await until(lambda: bench.refused)
    assert bench.exits == []
    assert JOURNAL / segment_name(2) not in disk.names
    bench.reserve._retry_at = 0.0
    bench.append(3)
    await until(lambda: len(bench.settled) == 2)
    await bench.writer.close()

    assert recover_all(disk)[1] == [1, 3]


async def test_a_torn_write_that_cannot_be_taken_back_ends_the_process() -> None:
    """And nobody is told anything."""
    disk, syncer, bench = start()
    disk.write_faults = [(30, 0)]
    disk.fail_truncate = errno.EIO

    bench.append(1)
    await until(lambda: bench.exits)

    assert bench.exits == [EXIT_CODE]
    assert (bench.settled, bench.refused) == ([], [])
    syncer.close()


async def test_a_failing_write_ends_the_process() -> None:
    """EIO is not a full disk."""
    disk, syncer, bench = start()
    disk.write_faults = [(0, errno.EIO)]

    bench.append(1)
    await until(lambda: bench.exits)

    assert (bench.exits, bench.settled, bench.refused) == ([EXIT_CODE], [], [])
    syncer.close()


async def test_a_failed_sync_ends_the_process_and_settles_nothing() -> None:
    """Neither the batch that failed nor any later one."""
    _, syncer, bench = start()
    syncer.error_at = {2: errno.EIO}
    bench.append(1)
    await until(lambda: bench.settled)
    bench.append(2)
    await until(lambda: bench.exits)
    with pytest.raises(JournalClosed):
        bench.append(3)
    await turns()

    assert bench.exits == [EXIT_CODE]
    assert bench.settled == [1]
    syncer.close()


async def test_the_death_of_the_helper_ends_the_process() -> None:
    """Even when nothing is in flight: the next commit could not be made durable."""
    _, syncer, bench = start()
    syncer.die()
    await until(lambda: bench.exits)

    assert bench.exits == [EXIT_CODE]
    syncer.close()


async def test_a_failpoint_fills_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What crash tests of the whole daemon rely on; also after the write, when bytes are there already."""
    disk, _, bench = start()
    failpoint.arm("before_write=error:ENOSPC@1,after_write=error:ENOSPC@1")
    try:
        for value in (1, 2):
            bench.reserve._retry_at = 0.0
            bench.append(value)
            await until(lambda value=value: len(bench.refused) == value)  # type: ignore[misc]
        bench.reserve._retry_at = 0.0
        bench.append(3)
        await until(lambda: bench.settled)
    finally:
        failpoint.arm("")

    assert bench.settled == [3]
    await bench.writer.close()
    assert recover_all(disk)[1] == [3]


async def test_appends_from_the_callbacks_are_taken() -> None:
    """A broker answers and appends in one breath."""
    disk, _, bench = start()
    original = bench.writer._on_settled

    def settle_and_append(waiters: list[object], number: int, time_ms: int) -> None:
        original(waiters, number, time_ms)
        if number < 5:
            bench.append(number + 1)

    bench.writer._on_settled = settle_and_append
    bench.append(1)
    await until(lambda: len(bench.settled) == 5)
    await bench.writer.close()

    assert recover_all(disk)[1] == [1, 2, 3, 4, 5]
    assert isinstance(bench.writer.active_path, Path)
