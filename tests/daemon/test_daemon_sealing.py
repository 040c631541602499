"""Sealing as the daemon does it by itself: every commit stands in Parquet or in a segment, through stops and kills."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import offsetd.daemon
from offsetd.journal.directory import broker_directory
from offsetd.journal.history import list_history
from offsetd.journal.sealed import list_sealed
from offsetd.settings import Settings
from tests.daemon.children import child, state, wait_for_end
from tests.daemon.test_daemon_compaction import GROUPS, LAG, check_all, commit_rounds
from tests.fakes.daemon import Daemon
from tests.history.released import everything

SEALER = "offsetd.history.sealer"
COMMIT = 1


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started, that releases small segments and seals them soon."""
    daemon = Daemon(
        tmp_path,
        {
            "offsets.topic.num.partitions": 3,
            "log.segment.bytes": 32_768,
            "log.cleaner.min.cleanable.ratio": 0,
            "log.cleaner.backoff.ms": 50,
            "history.seal.enabled": True,
            "history.seal.max.lag.ms": 1,
        },
    )
    yield daemon
    daemon.clean_up()


def until_sealed(daemon: Daemon) -> None:
    """Wait until nothing waits for compaction any more, and nothing for sealing."""
    # The compactor's lag first: when it is none, nothing more is released. A life before may have compacted all.
    daemon.wait_until(
        lambda: (
            daemon.metric(LAG) == 0
            and daemon.metric("offsetd_history_segments") == 0
            and daemon.metric("offsetd_history_sealed_files") > 0
        )
    )


def commits(daemon: Daemon) -> list[tuple[str, int]]:
    """Return group and offset of all commits in history."""
    rows = everything(broker_directory(daemon.data, 1))
    return sorted((row[4], row[7]) for row in rows if row[3] == COMMIT)


def told_as_counted(daemon: Daemon, what: str) -> bool:
    """Tell whether the log's lines add up to the metric."""
    told: int = sum(event[what] for event in daemon.events("sealing_done"))
    return told == daemon.metric(f"offsetd_sealing_{what}_total")


async def test_every_commit_of_a_compacted_journal_is_sealed_once(daemon: Daemon) -> None:
    daemon.start()
    await commit_rounds(daemon, 1, 60)
    daemon.restart()
    await commit_rounds(daemon, 61, 40)
    await asyncio.to_thread(until_sealed, daemon)

    found = commits(daemon)
    assert len(found) > 1000
    assert len(set(found)) == len(found)
    # Of each group everything from its first commit on, up to where the journal goes on.
    for group in range(GROUPS):
        offsets = [offset for name, offset in found if name == f"group-{group}"]
        assert offsets == list(range(1, len(offsets) + 1))
    directory = broker_directory(daemon.data, 1)
    files = list_sealed(directory.sealed)
    assert daemon.metric("offsetd_history_sealed_files") == len(files)
    assert daemon.metric("offsetd_history_sealed_bytes") == sum(file.size_bytes for file in files)
    assert daemon.metric("offsetd_history_bytes") == daemon.metric("offsetd_history_sealed_bytes")
    # A run has done its work before it has ended, and only then is it counted.
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_sealings_total") > 0)
    await asyncio.to_thread(daemon.wait_until, lambda: told_as_counted(daemon, "files"))
    await asyncio.to_thread(daemon.wait_until, lambda: told_as_counted(daemon, "records"))
    assert daemon.metric("offsetd_sealing_failures_total") == 0
    assert daemon.metric("offsetd_sealing_last_success_timestamp_seconds") > 1_600_000_000
    await check_all(daemon, 100)
    daemon.restart()
    await check_all(daemon, 100)


async def test_a_stop_does_not_wait_for_sealing_and_the_next_life_goes_on(daemon: Daemon) -> None:
    daemon.failpoints = "seal_after_rename=sleep:600000"
    daemon.start()
    await commit_rounds(daemon, 1, 20)
    sealer = await asyncio.to_thread(child, daemon, SEALER)
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_history_sealed_files") > 0)

    assert await asyncio.to_thread(daemon.terminate) == 0

    assert state(sealer) in "XZ"
    assert not daemon.events("sealing_failed")
    before = commits(daemon)
    assert len(set(before)) == len(before)
    daemon.failpoints = ""
    daemon.start()
    await asyncio.to_thread(until_sealed, daemon)
    found = commits(daemon)
    assert set(found) >= set(before)
    assert len(set(found)) == len(found)


async def test_a_sealer_ends_with_its_daemon(daemon: Daemon) -> None:
    daemon.failpoints = "seal_before_write=sleep:600000"
    daemon.start()
    await commit_rounds(daemon, 1, 20)
    sealer = await asyncio.to_thread(child, daemon, SEALER)
    daemon.kill()
    await asyncio.to_thread(wait_for_end, sealer)


async def test_a_sealer_that_fails_is_seen_and_nothing_else_suffers(daemon: Daemon) -> None:
    daemon.failpoints = "seal_before_write=error:EIO"
    daemon.start()
    await commit_rounds(daemon, 1, 20)
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_sealing_failures_total") > 0)

    failure = daemon.events("sealing_failed")[0]
    assert (failure["level"], failure["exit_code"]) == ("error", 1)
    assert "seal_before_write" in failure["reason"]
    await commit_rounds(daemon, 21, 1)
    await check_all(daemon, 21)
    directory = broker_directory(daemon.data, 1)
    assert list_history(directory.history)
    assert list_sealed(directory.sealed) == []


def test_without_pyarrow_a_start_is_refused_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    daemon = offsetd.daemon.Daemon(Settings.defaults(data_dir=tmp_path / "data", history_seal_enabled=True))

    refusal = daemon.prepare()

    assert refusal is not None
    assert refusal.startswith("history.seal.enabled is true (from code), and sealing needs pyarrow, which this Python")
    assert "Install pyarrow and numpy" in refusal
    assert not (tmp_path / "data").exists()
