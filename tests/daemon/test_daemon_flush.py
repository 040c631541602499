"""Flush settings: acknowledged before it is synced, said so at every start, synced by count and by time."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.children import SYNC_HELPER, child, stopped
from tests.fakes.daemon import Daemon
from tests.fakes.wire import connected

ORDERS = ("orders", 0)
SYNCS = "offsetd_journal_sync_seconds_count"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started."""
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.clean_up()


def test_the_default_promises_a_sync_before_each_acknowledgement(daemon: Daemon) -> None:
    daemon.start()

    assert daemon.events("broker_started")[0]["flush"] == "every batch is synced before it is acknowledged"
    assert not daemon.events("commits_acknowledged_before_sync")


def test_what_is_not_promised_is_said_at_the_start(daemon: Daemon) -> None:
    """Also to somebody who reads warnings only."""
    daemon.settings |= {"log.flush.interval.messages": 500, "log.flush.interval.ms": 1000}
    daemon.start()

    assert "a power cut can lose acknowledged commits" in daemon.events("broker_started")[0]["flush"]
    (warning,) = daemon.events("commits_acknowledged_before_sync")
    assert (warning["level"], warning["sync_after_records"], warning["sync_after_ms"]) == ("warning", 500, 1000)
    assert "can lose what was acknowledged since the last sync" in warning["reason"]


async def test_so_many_records_are_synced_together(daemon: Daemon) -> None:
    """The helper is stopped, so nothing is synced, and commits are acknowledged all the same."""
    daemon.settings["log.flush.interval.messages"] = 10
    daemon.start()
    async with connected(daemon.port) as client:
        with stopped(child(daemon, SYNC_HELPER)):
            # The opening entry is the first of the ten.
            for offset in range(1, 9):
                assert await client.commit("billing", {ORDERS: offset}) == {ORDERS: 0}
                assert await client.committed("billing", [ORDERS]) == {ORDERS: offset}
            for offset in range(9, 13):
                assert await client.commit("billing", {ORDERS: offset}) == {ORDERS: 0}
            assert daemon.metric(SYNCS) == 0
            assert daemon.metric("offsetd_journal_batch_number") == 0
        daemon.wait_until(lambda: daemon.metric(SYNCS) == 1)

        assert daemon.metric("offsetd_journal_batch_number") == 10
        for offset in range(13, 21):
            assert await client.commit("billing", {ORDERS: offset}) == {ORDERS: 0}
        daemon.wait_until(lambda: daemon.metric(SYNCS) == 2)


async def test_what_is_left_is_synced_after_so_much_time(daemon: Daemon) -> None:
    """One commit, and none after it that would complete a number."""
    daemon.settings |= {"log.flush.interval.messages": 1_000_000, "log.flush.interval.ms": 20}
    daemon.start()
    async with connected(daemon.port) as client:
        assert await client.commit("billing", {ORDERS: 1}) == {ORDERS: 0}

        daemon.wait_until(lambda: daemon.metric("offsetd_journal_batch_number") == 2)
        assert await client.commit("billing", {ORDERS: 2}) == {ORDERS: 0}
        daemon.wait_until(lambda: daemon.metric("offsetd_journal_batch_number") == 3)


async def test_the_end_of_the_process_alone_loses_nothing(daemon: Daemon) -> None:
    """kill -9 before anything was synced: the operating system still has it all."""
    daemon.settings["log.flush.interval.messages"] = 1_000_000
    daemon.start()
    async with connected(daemon.port) as client:
        with stopped(child(daemon, SYNC_HELPER)):
            for offset in range(1, 101):
                assert await client.commit(f"group-{offset % 7}", {ORDERS: offset}) == {ORDERS: 0}
            assert daemon.metric(SYNCS) == 0
            daemon.kill()

    daemon.start()
    async with connected(daemon.port) as client:
        kept = {f"group-{n}": await client.committed(f"group-{n}", [ORDERS]) for n in range(7)}
    assert kept == {f"group-{offset % 7}": {ORDERS: offset} for offset in range(94, 101)}
    assert not daemon.events("torn_tail_cut")


async def test_a_stop_syncs_what_is_left(daemon: Daemon) -> None:
    """Without the helper it cannot, and then it does not call its stop a clean one."""
    daemon.settings["log.flush.interval.messages"] = 1_000_000
    daemon.start()
    helper = child(daemon, SYNC_HELPER)
    async with connected(daemon.port) as client:
        with stopped(helper):
            assert await client.commit("billing", {ORDERS: 1}) == {ORDERS: 0}
            daemon.signal(signal.SIGTERM)
            assert await client.is_closed()
            os.kill(helper, signal.SIGKILL)

    assert daemon.wait() == 70
    assert not (daemon.data / "broker-1" / "journal" / "clean-stop").exists()
    daemon.start()
    assert daemon.terminate() == 0
    assert (daemon.data / "broker-1" / "journal" / "clean-stop").exists()
