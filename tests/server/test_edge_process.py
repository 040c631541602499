"""What clients do to a whole daemon: its memory, its descriptors, its log, its end."""

import asyncio
import json
import random
import resource
import signal
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from protocol.api import OFFSET_COMMIT
from tests.fakes.daemon import Daemon, running
from tests.fakes.wire import RawClient, commit_frame, commit_request, connect, connected, fetch_frame, fetch_request
from tests.server.edge import turns, until

pytestmark = pytest.mark.integration

MEBIBYTE = 1024 * 1024
PLACE = ("orders", 0)


@asynccontextmanager
async def crowd(port: int, count: int) -> AsyncIterator[list[RawClient]]:
    """Open many connections for the length of a block."""
    clients = [await connect(port) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            client.reset()
            await client.close()


@contextmanager
def open_files(limit: int) -> Iterator[None]:
    """Let processes that are started in this block open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def settle_down(daemon: Daemon, descriptors: int) -> None:
    """Wait until the daemon has closed what it need not keep open."""
    daemon.wait_until(lambda: daemon.descriptors() <= descriptors)


async def test_announced_sizes_take_no_memory_and_received_halves_stay_within_the_budget(tmp_path: Path) -> None:
    with running(tmp_path, {"queued.max.bytes": 16 * MEBIBYTE, "socket.request.max.bytes": 8 * MEBIBYTE}) as daemon:
        before = daemon.memory_bytes()
        async with crowd(daemon.port, 300) as clients:
            for client in clients:
                client.send_bytes(struct.pack(">i", 8 * MEBIBYTE) + b"abc")
            daemon.wait_until(lambda: daemon.metric("offsetd_connections_open") == 300)
            announced = daemon.memory_bytes()
            for client in clients[:100]:
                client.send_bytes(bytes(MEBIBYTE))
            await until(lambda: daemon.metric("offsetd_in_flight_bytes") > 16 * MEBIBYTE)
            received = daemon.memory_bytes()
            await until(lambda: daemon.events("connection_closed"))
        async with connected(daemon.port) as client:
            code = await client.commit("billing", {PLACE: 5})

        assert announced - before < 16 * MEBIBYTE, "not three hundred times eight"
        assert received - before < 48 * MEBIBYTE, "not a hundred"
        assert {line["reason"] for line in daemon.events("connection_closed")} == {"memory"}
        assert code == {PLACE: 0}


async def test_a_client_that_reads_nothing_costs_little_memory(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        async with connected(daemon.port) as client:
            for topic in range(20):
                await client.commit("billing", {(f"topic-{topic}", partition): 1 for partition in range(500)})
        before = daemon.memory_bytes()
        fetch = fetch_frame(1, fetch_request("billing", None, 7), 7)
        async with crowd(daemon.port, 20) as clients:
            for client in clients:
                client.writer.transport.pause_reading()  # type: ignore[attr-defined]
                client.send_bytes(fetch * 10_000)
            await until(lambda: daemon.metric("offsetd_in_flight_bytes") > 20 * 200_000)
            after = daemon.memory_bytes()
            async with connected(daemon.port) as other:
                code = await other.commit("audit", {PLACE: 5})

        assert after - before < 100 * MEBIBYTE, "ten thousand replies each would have been forty gigabytes"
        assert code == {PLACE: 0}


async def test_descriptors_and_memory_return_after_clients_that_come_with_garbage(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        descriptors, memory = daemon.descriptors(), daemon.memory_bytes()
        noise = random.Random(20)
        for _ in range(15):
            async with crowd(daemon.port, 50) as clients:
                for client in clients:
                    client.send_bytes(noise.randbytes(noise.choice([1, 3, 4, 7, 64, 5000])))
                await turns()
        settle_down(daemon, descriptors)
        async with connected(daemon.port) as client:
            code = await client.commit("billing", {PLACE: 5})

        assert code == {PLACE: 0}
        assert daemon.memory_bytes() - memory < 30 * MEBIBYTE


async def test_at_the_limit_of_open_files_clients_and_journal_go_on(tmp_path: Path) -> None:
    """Segments are begun, sealed and compacted meanwhile, and each of that needs descriptors."""
    daemon = Daemon(tmp_path, {"log.segment.bytes": MEBIBYTE, "log.cleaner.backoff.ms": 1})
    try:
        with open_files(256):
            daemon.start()
        async with connected(daemon.port) as client:
            await client.commit("billing", {PLACE: 0})
            async with crowd(daemon.port, 400):
                daemon.wait_until(lambda: daemon.metric("offsetd_connections_refused_total") >= 200)
                for number in range(1, 250):
                    rows = {("orders", partition): number for partition in range(1000)}
                    assert set((await client.commit("billing", rows)).values()) == {0}
                daemon.wait_for_event("compaction_done")
                open_then = daemon.descriptors()
            daemon.wait_until(lambda: daemon.metric("offsetd_connections_open") == 1)
            async with connected(daemon.port) as late:
                shown = await late.committed("billing", [PLACE])

        assert open_then <= 256
        assert shown == {PLACE: 249}
        assert daemon.events("connections_limited")[0]["max_connections"] == 128
        assert daemon.terminate() == 0
    finally:
        daemon.clean_up()


async def test_with_no_descriptor_left_at_all_those_who_are_in_are_served(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        async with connected(daemon.port) as client:
            await client.commit("billing", {PLACE: 1})
            limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (daemon.descriptors(), limits[1]))
            async with crowd(daemon.port, 20):
                codes = [await client.commit("billing", {PLACE: number}) for number in range(2, 20)]
            resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
            async with connected(daemon.port) as late:
                shown = await late.committed("billing", [PLACE])

        assert codes == [{PLACE: 0}] * 18
        assert shown == {PLACE: 19}


async def test_tls_spoken_to_the_plain_port_ends_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        context = ssl.create_default_context()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", daemon.port, ssl=context, server_hostname="localhost")
        (line,) = daemon.events("connection_closed")

        assert line["reason"] == "malformed"
        assert "exceeds the limit" in line["detail"]


@pytest.mark.parametrize("form", ["json", "console"])
async def test_names_that_a_client_chose_cannot_forge_lines_of_the_log_or_of_the_metrics(
    tmp_path: Path, form: str
) -> None:
    forged = '\r\n{"event": "forged"}\n\x1b[31mred\x9b2K\u2028offsetd_forged 1\n'
    daemon = Daemon(tmp_path, {"log.level": "debug"})
    try:
        daemon.start()
        if form == "console":
            daemon.terminate()
            daemon.settings["log.format"] = "console"
            daemon.launch(listen=f"127.0.0.1:{daemon.port}")
            daemon.wait_until(lambda: "slots_loaded" in daemon.log_text())
        async with connected(daemon.port) as client:
            client.send(commit_request(forged, {PLACE: 5}, metadata=forged), 8, client_id=forged)
            await client.receive_frame()
            client.send(commit_request("billing", {(forged, 0): 5}), 8, client_id=forged)
            await client.receive_frame()
            name = forged.encode()
            client.send_frame(struct.pack(">hhih", OFFSET_COMMIT, 99, 7, len(name)) + name)
            assert await client.is_closed()
        page = daemon.get("/metrics")[1].decode() if form == "json" else ""
        daemon.terminate()
        text = daemon.log_text()

        assert "connection_closed" in text
        assert not [mark for mark in ("\r", "\x1b", "\x9b", "\u2028") if mark in text]
        if form == "json":
            assert all(json.loads(line)["event"] != "forged" for line in text.splitlines())
            families = list(text_string_to_metric_families(page))
            assert families
            assert not [line for line in page.splitlines() if line.startswith("offsetd_forged")]
        else:
            assert not [line for line in text.splitlines() if line.lstrip().startswith(("{", "offsetd_forged"))]
    finally:
        daemon.clean_up()


async def test_a_stop_does_not_wait_for_a_client_that_never_pauses(tmp_path: Path) -> None:
    """The time for what is in flight is an hour here, so only taking no more requests can end it."""
    with running(tmp_path, {"shutdown.timeout.ms": 3_600_000}) as daemon:
        acknowledged = 0

        async def hasty() -> None:
            nonlocal acknowledged
            async with connected(daemon.port) as client:
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    for number in range(1, 1_000_000):
                        client.send_bytes(commit_frame(number, commit_request("billing", {PLACE: number}), 8))
                        await client.receive_frame()
                        acknowledged = number

        busy = asyncio.create_task(hasty())
        while acknowledged < 100:
            await asyncio.sleep(0)
        daemon.signal(signal.SIGTERM)
        code = await asyncio.to_thread(daemon.wait)
        await busy
        daemon.start()
        async with connected(daemon.port) as client:
            shown = await client.committed("billing", [PLACE])

        assert code == 0
        assert shown in ({PLACE: acknowledged}, {PLACE: acknowledged + 1})


async def test_a_peer_that_vanishes_in_the_middle_of_a_commit_leaves_it_whole(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        descriptors = daemon.descriptors()
        rows = {("orders", partition): 7 for partition in range(2000)}
        frame = commit_frame(1, commit_request("billing", rows), 8)
        for cut in (len(frame), len(frame) // 2):
            with socket.create_connection(("127.0.0.1", daemon.port)) as sock:
                sock.sendall(frame[:cut])
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        settle_down(daemon, descriptors)
        async with connected(daemon.port) as client:
            shown = await client.committed("billing", None)

        assert shown in ({}, rows), "all of it, or, if the reset came first, nothing"
