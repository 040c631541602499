"""Compaction as the daemon does it by itself: small directories, whole answers, and failures that are seen."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.offset_commit import OffsetCommitResponse
from tests.daemon.children import COMPACTOR, child, state, wait_for_end
from tests.fakes.daemon import Daemon
from tests.fakes.wire import commit_codes, commit_request, connected

ORDERS = ("orders", 0)
GROUPS = 20
ROUNDS = 100
METADATA = "m" * 100
WRITTEN = "offsetd_journal_written_bytes_total"
LAG = "offsetd_compaction_lag_bytes"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started, that seals small segments and folds them soon."""
    daemon = Daemon(
        tmp_path,
        {
            "offsets.topic.num.partitions": 3,
            "log.segment.bytes": 32_768,
            "log.cleaner.min.cleanable.ratio": 0,
            "log.cleaner.backoff.ms": 50,
        },
    )
    yield daemon
    daemon.clean_up()


def folder(daemon: Daemon, name: str) -> Path:
    """Return a folder of the broker."""
    return daemon.data / "broker-1" / name


def size_of(directory: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


async def commit_rounds(daemon: Daemon, first: int, rounds: int = ROUNDS) -> None:
    """Let every group commit so many times, one number higher each time."""
    async with connected(daemon.port) as client:
        for offset in range(first, first + rounds):
            for group in range(GROUPS):
                client.send(commit_request(f"group-{group}", {ORDERS: offset}, metadata=METADATA))
            for _ in range(GROUPS):
                _, response = await client.receive(OffsetCommitResponse)
                assert commit_codes(response) == {ORDERS: 0}


async def check_all(daemon: Daemon, offset: int) -> None:
    """Every group must hold this offset."""
    async with connected(daemon.port) as client:
        for group in range(GROUPS):
            assert await client.committed(f"group-{group}") == {ORDERS: offset}


def until_compacted(daemon: Daemon) -> None:
    """Wait until nothing sealed waits any more."""
    daemon.wait_until(lambda: daemon.metric("offsetd_compactions_total") > 0 and daemon.metric(LAG) == 0)


async def test_the_journal_shrinks_to_what_is_live_and_history_keeps_the_rest(daemon: Daemon) -> None:
    daemon.start()
    await commit_rounds(daemon, 1)
    written = daemon.metric(WRITTEN)
    await asyncio.to_thread(until_compacted, daemon)

    assert written > 10 * 32_768
    journal, history = size_of(folder(daemon, "journal")), size_of(folder(daemon, "history"))
    # The active segment, and perhaps one that was sealed a moment ago.
    assert journal < 3 * 32_768
    assert daemon.metric("offsetd_journal_bytes") <= journal
    assert history == daemon.metric("offsetd_history_bytes")
    assert journal + history >= written
    assert daemon.metric("offsetd_history_segments") == len(list((folder(daemon, "history") / "segments").iterdir()))
    assert 0 < daemon.metric("offsetd_checkpoint_bytes") < 200_000
    assert daemon.metric("offsetd_compaction_last_success_timestamp_seconds") > 1_600_000_000
    assert daemon.metric("offsetd_compaction_last_seconds") > 0
    assert daemon.metric("offsetd_compaction_failures_total") == 0
    assert "\noffsetd_compaction_oldest_waiting_timestamp_seconds " not in daemon.get("/metrics")[1].decode()
    await check_all(daemon, ROUNDS)
    daemon.restart()
    await check_all(daemon, ROUNDS)
    assert daemon.metric("offsetd_offsets") == GROUPS
    # A life that has compacted nothing yet says so.
    assert daemon.metric("offsetd_compaction_last_success_timestamp_seconds") == 0


async def test_without_history_nothing_is_kept_but_what_is_live(daemon: Daemon) -> None:
    daemon.settings["history.enabled"] = False
    daemon.start()
    await commit_rounds(daemon, 1)
    await asyncio.to_thread(until_compacted, daemon)

    assert not list((folder(daemon, "history") / "segments").iterdir())
    assert size_of(daemon.data) < daemon.metric(WRITTEN) / 2
    assert daemon.terminate() == 0
    daemon.start()
    await check_all(daemon, ROUNDS)


async def test_history_is_kept_up_to_so_many_bytes(daemon: Daemon) -> None:
    """The oldest goes first."""
    daemon.settings["history.retention.bytes"] = 100_000
    daemon.start()
    await commit_rounds(daemon, 1)
    await asyncio.to_thread(until_compacted, daemon)

    kept = sorted(path.name for path in (folder(daemon, "history") / "segments").iterdir())
    assert 0 < daemon.metric("offsetd_history_bytes") <= 100_000
    removed = sum(event["history_segments_removed"] for event in daemon.events("compaction_done"))
    assert removed > 0
    assert int(kept[0].partition(".")[0]) > 1
    await check_all(daemon, ROUNDS)


async def test_a_compactor_ends_with_its_daemon_and_the_next_life_goes_on(daemon: Daemon) -> None:
    """Both are killed in the middle of it, and every offset is there."""
    daemon.failpoints = "fold_before_write=sleep:600000"
    daemon.start()
    await commit_rounds(daemon, 1)
    compactor = await asyncio.to_thread(child, daemon, COMPACTOR)
    daemon.kill()
    await asyncio.to_thread(wait_for_end, compactor)

    daemon.failpoints = ""
    daemon.start()
    await check_all(daemon, ROUNDS)
    await asyncio.to_thread(until_compacted, daemon)
    await check_all(daemon, ROUNDS)
    daemon.restart()
    await check_all(daemon, ROUNDS)


async def test_a_stop_does_not_wait_for_a_compaction(daemon: Daemon) -> None:
    daemon.failpoints = "fold_before_write=sleep:600000"
    daemon.start()
    await commit_rounds(daemon, 1, 20)
    compactor = await asyncio.to_thread(child, daemon, COMPACTOR)

    assert await asyncio.to_thread(daemon.terminate) == 0

    assert state(compactor) in "XZ"
    assert not daemon.events("compaction_failed")


@pytest.mark.parametrize("fault", ["fold_before_write=exit", "release_before_rename=error:EIO"])
async def test_a_compaction_that_fails_is_seen_and_done_again(daemon: Daemon, fault: str) -> None:
    """Commits and fetches go on; the metrics tell, and the next life does what this one could not."""
    daemon.failpoints = fault
    daemon.start()
    await commit_rounds(daemon, 1, 20)
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_compaction_failures_total") > 0)

    failure = daemon.events("compaction_failed")[0]
    assert failure["level"] == "error"
    assert failure["exit_code"] in (1, 86)
    assert daemon.metric(LAG) >= 32_768
    assert daemon.metric("offsetd_compaction_oldest_waiting_timestamp_seconds") > 1_600_000_000
    assert daemon.metric("offsetd_compactions_total") == 0
    assert daemon.metric("offsetd_compaction_last_success_timestamp_seconds") == 0
    assert daemon.readiness()[0] == 200
    await commit_rounds(daemon, 21, 1)
    await check_all(daemon, 21)
    daemon.kill()
    daemon.failpoints = ""
    daemon.start()
    await check_all(daemon, 21)
    await asyncio.to_thread(until_compacted, daemon)
    assert daemon.metric("offsetd_compaction_failures_total") == 0
    await check_all(daemon, 21)


async def test_a_folder_that_cannot_be_looked_at_does_not_end_the_daemon(daemon: Daemon, tmp_path: Path) -> None:
    """Looking at it is due every second; when it can be looked at again, compaction goes on."""
    daemon.start()
    checkpoint = folder(daemon, "checkpoint")
    shutil.move(checkpoint, tmp_path / "away")
    checkpoint.touch()
    await commit_rounds(daemon, 1, 20)
    await asyncio.to_thread(daemon.wait_for_event, "tick_failed")

    await commit_rounds(daemon, 21, 1)
    checkpoint.unlink()
    shutil.move(tmp_path / "away", checkpoint)
    await asyncio.to_thread(until_compacted, daemon)
    await check_all(daemon, 21)
