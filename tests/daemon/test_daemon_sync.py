"""The sync helper of a real daemon: without it nothing is acknowledged, and while it is slow fetches go on."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import Code
from protocol.offset_commit import OffsetCommitResponse
from tests.daemon.children import SYNC_HELPER, child, stopped
from tests.fakes.daemon import Daemon
from tests.fakes.wire import commit_codes, commit_request, connected

ORDERS = ("orders", 0)
JOURNAL_FAILED = 70


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started."""
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.clean_up()


async def commits_taken(daemon: Daemon, count: int) -> None:
    """Wait until the daemon has taken so many commits in."""
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_commit_requests_total") == count)


async def test_nothing_is_acknowledged_without_the_helper(daemon: Daemon) -> None:
    """It is killed before it could sync a commit that has been written: the end is the only answer."""
    daemon.start()
    async with connected(daemon.port) as client:
        assert await client.commit("billing", {ORDERS: 1}) == {ORDERS: 0}
        helper = child(daemon, SYNC_HELPER)
        with stopped(helper):
            client.send(commit_request("billing", {ORDERS: 2}))
            client.send(commit_request("billing", {ORDERS: 3}))
            await commits_taken(daemon, 3)
            os.kill(helper, signal.SIGKILL)

        assert await client.is_closed()
    assert await asyncio.to_thread(daemon.wait) == JOURNAL_FAILED
    (failure,) = daemon.events("journal_failed")
    assert (failure["level"], failure["reason"]) == ("error", "the sync helper has ended")
    daemon.start()
    async with connected(daemon.port) as client:
        assert (await client.committed("billing", [ORDERS]))[ORDERS] in (1, 2, 3)


def test_the_daemon_does_not_outlive_its_helper(daemon: Daemon) -> None:
    """Also when nothing is to be synced."""
    daemon.start()

    os.kill(child(daemon, SYNC_HELPER), signal.SIGKILL)

    assert daemon.wait() == JOURNAL_FAILED
    assert daemon.events("journal_failed")[0]["exit_code"] == JOURNAL_FAILED


async def test_a_failed_sync_ends_the_daemon_without_an_acknowledgement(daemon: Daemon) -> None:
    """After it the page cache is not to be trusted. The first sync is of the opening entry, the second of a commit."""
    daemon.failpoints = "sync=error:EIO@3"
    daemon.start()
    async with connected(daemon.port) as client:
        assert await client.commit("billing", {ORDERS: 1}) == {ORDERS: 0}
        client.send(commit_request("billing", {ORDERS: 2}))

        assert await client.is_closed()
    assert await asyncio.to_thread(daemon.wait) == JOURNAL_FAILED
    (failure,) = daemon.events("journal_failed")
    assert "failed: Input/output error" in failure["reason"]
    assert "/journal/" in failure["reason"]
    daemon.failpoints = ""
    daemon.start()
    async with connected(daemon.port) as client:
        assert (await client.committed("billing", [ORDERS]))[ORDERS] in (1, 2)


async def test_a_sync_that_fails_at_the_start_ends_the_daemon(daemon: Daemon) -> None:
    daemon.failpoints = "sync=error:EIO@1"
    daemon.launch()

    assert await asyncio.to_thread(daemon.wait) == JOURNAL_FAILED
    assert daemon.events("journal_failed")


async def test_a_helper_that_is_lost_while_loading_ends_the_daemon(daemon: Daemon, tmp_path: Path) -> None:
    """Ready to serve or not: it could acknowledge nothing any more."""
    hold = tmp_path / "hold"
    hold.touch()
    daemon.failpoints = f"load_slot=hold:{hold}@1"
    daemon.start(ready=False)

    os.kill(child(daemon, SYNC_HELPER), signal.SIGKILL)

    assert await asyncio.to_thread(daemon.wait) == JOURNAL_FAILED


async def test_a_commit_that_takes_too_long_is_of_unknown_outcome(daemon: Daemon) -> None:
    """It is answered with REQUEST_TIMED_OUT, fetches are answered all the while, and it may be seen later."""
    daemon.settings["offsets.commit.timeout.ms"] = 100
    daemon.start()
    async with connected(daemon.port) as client, connected(daemon.port) as reader:
        assert await client.commit("billing", {ORDERS: 1}) == {ORDERS: 0}
        with stopped(child(daemon, SYNC_HELPER)):
            client.send(commit_request("billing", {ORDERS: 2}))
            await commits_taken(daemon, 2)
            for _ in range(20):
                assert await reader.committed("billing", [ORDERS]) == {ORDERS: 1}
            _, response = await client.receive(OffsetCommitResponse)
            assert commit_codes(response) == {ORDERS: int(Code.REQUEST_TIMED_OUT)}
            # Said once, and the connection goes on: a fetch behind it does not see what is not settled.
            assert await client.committed("billing", [ORDERS]) == {ORDERS: 1}
            assert daemon.readiness()[0] == 200

        async with asyncio.timeout(60):
            while await reader.committed("billing", [ORDERS]) != {ORDERS: 2}:
                await asyncio.sleep(0.005)
        assert await client.commit("billing", {ORDERS: 3}) == {ORDERS: 0}
        assert await client.committed("billing", [ORDERS]) == {ORDERS: 3}
    refused = 'offsetd_request_errors_total{api="OffsetCommit",code="7",error="REQUEST_TIMED_OUT"}'
    assert daemon.metric(refused) == 1


async def test_while_a_sync_runs_the_next_batch_fills(daemon: Daemon) -> None:
    """One sync for all that came meanwhile, and every one of them acknowledged."""
    daemon.start()
    async with connected(daemon.port) as client:
        before = daemon.metric("offsetd_journal_batches_total")
        with stopped(child(daemon, SYNC_HELPER)):
            for number in range(1, 31):
                client.send(commit_request(f"group-{number}", {ORDERS: number}))
                await commits_taken(daemon, number)
            assert daemon.metric("offsetd_journal_batches_total") == before + 1
        answers = [await client.receive(OffsetCommitResponse) for _ in range(30)]

    assert all(commit_codes(answer) == {ORDERS: 0} for _, answer in answers)
    assert daemon.metric("offsetd_journal_batches_total") == before + 2
