"""The end of a daemon that is asked to stop: what is in flight is finished, all is synced, and nobody is waited for."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from protocol.fetch import FetchRequest
from protocol.offset_commit import OffsetCommitResponse
from tests.daemon.children import SYNC_HELPER, child, stopped, wait_for_end
from tests.fakes.daemon import WAIT_SECONDS, Daemon
from tests.fakes.wire import RawClient, commit_codes, commit_request, connect, connected

ORDERS = ("orders", 0)
#: So long that nothing in these tests is answered for having taken too long.
PATIENT = {"offsets.commit.timeout.ms": 600_000, "shutdown.timeout.ms": 600_000}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started."""
    daemon = Daemon(tmp_path, PATIENT)
    yield daemon
    daemon.clean_up()


def clean_stop(daemon: Daemon) -> bool:
    """Tell whether the daemon has left word that it stopped cleanly."""
    return (daemon.data / "broker-1" / "journal" / "clean-stop").exists()


async def held(daemon: Daemon) -> dict[tuple[str, int], int]:
    """Return what the group of these tests has committed."""
    async with connected(daemon.port) as client:
        return await client.committed("billing", [ORDERS])


async def until_taken(daemon: Daemon, commits: int) -> None:
    """Wait until the daemon has taken so many commits in."""
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_commit_requests_total") == commits)


def refuses_connections(port: int) -> bool:
    """Tell whether nobody listens any more."""
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_commit_in_flight_is_acknowledged_before_the_end(daemon: Daemon, number: int) -> None:
    """And no new connection is taken meanwhile."""
    daemon.start()
    async with connected(daemon.port) as client:
        with stopped(child(daemon, SYNC_HELPER)):
            client.send(commit_request("billing", {ORDERS: 42}))
            await until_taken(daemon, 1)
            daemon.signal(number)
            daemon.wait_for_event("stop_requested")
            daemon.wait_until(lambda: refuses_connections(daemon.port))
            status, facts = daemon.readiness()
            assert (status, facts["ready"], facts["stopping"]) == (503, False, True)
        _, response = await client.receive(OffsetCommitResponse)
        assert commit_codes(response) == {ORDERS: 0}
        assert await client.is_closed()

    assert daemon.wait() == 0
    assert daemon.events("broker_stopped")[0]["exit_code"] == 0
    assert clean_stop(daemon)
    daemon.start()
    assert not clean_stop(daemon)
    assert await held(daemon) == {ORDERS: 42}


async def test_a_slow_sync_delays_the_end_only_that_long(daemon: Daemon) -> None:
    """The same by a failpoint in the helper, which nobody has to wake up."""
    # The first sync is of the opening entry.
    daemon.failpoints = "sync=sleep:300@2"
    daemon.start()
    async with connected(daemon.port) as client:
        client.send(commit_request("billing", {ORDERS: 42}))
        await until_taken(daemon, 1)
        daemon.signal(signal.SIGTERM)
        _, response = await client.receive(OffsetCommitResponse)

    assert commit_codes(response) == {ORDERS: 0}
    assert await asyncio.to_thread(daemon.wait) == 0
    assert clean_stop(daemon)


async def test_idle_connections_are_not_waited_for(daemon: Daemon) -> None:
    """The limit of ten minutes that these tests set would show it."""
    daemon.start()
    async with connected(daemon.port) as idle, connected(daemon.port) as half:
        assert await idle.commit("billing", {ORDERS: 1}) == {ORDERS: 0}
        half.send_bytes(b"\0\0")
        await half.writer.drain()

        assert await asyncio.to_thread(daemon.terminate) == 0
        assert await idle.is_closed()
    assert clean_stop(daemon)


async def test_a_busy_connection_is_not_waited_for(daemon: Daemon) -> None:
    """A client that always has something in flight gets its answers, then the end; what was acknowledged stays."""
    daemon.start()
    busy = asyncio.create_task(_commit_without_pause(daemon.port))
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_commit_requests_total") > 100)

    code = await asyncio.to_thread(daemon.terminate)

    acknowledged = await busy
    assert code == 0
    assert clean_stop(daemon)
    daemon.start()
    (kept,) = (await held(daemon)).values()
    assert kept >= acknowledged > 0


async def _commit_without_pause(port: int) -> int:
    """Keep several commits in flight until the connection ends; return the last one acknowledged."""
    acknowledged = sent = 0
    client = await connect(port)
    try:
        while True:
            while sent - acknowledged < 8:
                sent += 1
                client.send(commit_request("billing", {ORDERS: sent}))
            _, response = await client.receive(OffsetCommitResponse)
            assert commit_codes(response) == {ORDERS: 0}
            acknowledged += 1
    except (ConnectionError, asyncio.IncompleteReadError):
        return acknowledged
    finally:
        await client.close()


async def test_a_consumer_that_polls_is_not_waited_for(daemon: Daemon) -> None:
    """It asks for records again as soon as it has its answer, so that there is never a moment without a request."""
    daemon.start()
    polls = [asyncio.create_task(_poll_without_pause(daemon.port)) for _ in range(3)]
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_requests_total") >= 6)

    assert await asyncio.to_thread(daemon.terminate) == 0

    assert all(answered >= 1 for answered in await asyncio.gather(*polls))


async def _poll_without_pause(port: int) -> int:
    """Poll like a consumer until the connection ends; return how many polls were answered."""
    answered = 0
    async with connected(port) as client:
        try:
            while True:
                await client.call(FetchRequest(max_wait_ms=100, min_bytes=1), 4)
                answered += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            return answered


@pytest.mark.parametrize("numbers", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
async def test_a_second_signal_forces_the_end(daemon: Daemon, numbers: tuple[int, int]) -> None:
    """What was acknowledged is on disk anyway, and what was not is of unknown outcome."""
    daemon.start()
    async with connected(daemon.port) as client:
        assert await client.commit("billing", {ORDERS: 1}) == {ORDERS: 0}
        helper = child(daemon, SYNC_HELPER)
        with stopped(helper):
            client.send(commit_request("billing", {ORDERS: 2}))
            await until_taken(daemon, 2)
            daemon.signal(numbers[0])
            daemon.wait_for_event("stop_requested")
            daemon.signal(numbers[1])
            assert daemon.wait() == 130
        wait_for_end(helper)
        assert await client.is_closed()

    assert not clean_stop(daemon)
    daemon.start()
    assert (await held(daemon))[ORDERS] in (1, 2)


async def test_a_daemon_that_is_loading_can_be_stopped(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    async with connected(daemon.port) as client:
        assert await client.commit("billing", {ORDERS: 42}) == {ORDERS: 0}
    assert daemon.terminate() == 0
    hold = tmp_path / "hold"
    hold.touch()
    daemon.failpoints = f"load_slot=hold:{hold}@3"
    daemon.start(ready=False)
    daemon.wait_until(lambda: daemon.metric('offsetd_slots{state="ready"}') == 2)

    assert daemon.terminate() == 0

    assert clean_stop(daemon)
    assert not daemon.events("slots_loaded")
    daemon.failpoints = ""
    daemon.start()
    assert daemon.metric("offsetd_journal_epoch") == 3
    assert await held(daemon) == {ORDERS: 42}


def test_a_stop_leaves_no_process_behind(daemon: Daemon) -> None:
    daemon.start()
    helper = child(daemon, SYNC_HELPER)

    assert daemon.terminate() == 0

    wait_for_end(helper)


async def test_a_stop_removes_nothing_that_a_reader_has_not_read_yet(daemon: Daemon) -> None:
    """Replies that stand in the socket's buffer arrive, though the client reads them only after the end."""
    daemon.start()
    client: RawClient = await connect(daemon.port)
    try:
        for offset in range(20):
            client.send(commit_request("billing", {ORDERS: offset}))
        await until_taken(daemon, 20)
        assert await asyncio.to_thread(daemon.terminate) == 0
        codes = [commit_codes((await client.receive(OffsetCommitResponse))[1]) for _ in range(20)]
    finally:
        await client.close()

    assert codes == [{ORDERS: 0}] * 20


def test_the_terminal_signal_of_the_whole_group_stops_it_too(daemon: Daemon) -> None:
    """As Ctrl-C does: the sync helper, which has a session of its own, must not end before the last sync."""
    daemon.start()

    os.killpg(daemon.pid, signal.SIGINT)

    assert daemon.process is not None
    assert daemon.process.wait(WAIT_SECONDS) == 0
    assert clean_stop(daemon)
