"""The HTTP port over real sockets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from offsetd.http import HttpServer, server
from offsetd.observed import Live, Observed

LIVE = Live(
    groups=2,
    group_states={"Empty": 1, "Stable": 1},
    members=3,
    offsets=30,
    slots={"ready": 50},
    load_share=1.0,
    journal_bytes=1000,
    journal_segments=1,
    checkpoint_bytes=10,
    history_bytes=0,
    history_segments=0,
    history_sealed_bytes=0,
    history_sealed_files=0,
    oldest_sealed_ms=None,
    disk_free_bytes=10**9,
    disk_total_bytes=10**10,
    disk_full=False,
    batch_number=7,
    epoch=3,
    shapes=1,
    topics_known=4,
    connections_max=10_000,
    per_group=(("billing", 10, 1_700_000_000_000), ("audit", 20, 1_700_000_001_500)),
)


class World:
    """What the server under test is told of the daemon."""

    def __init__(self) -> None:
        self.observed = Observed()
        self.live = LIVE
        self.ready: tuple[bool, dict[str, object]] = (True, {})
        self.port = 0

    async def get(self, path: str) -> tuple[int, bytes]:
        """Ask for a page; return status and body."""
        reply = await self.send(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        head, body = reply.split(b"\r\n\r\n", 1)
        return int(head.split(b" ")[1]), body

    async def send(self, request: bytes) -> bytes:
        async with connected(self.port) as (reader, writer):
            writer.write(request)
            try:
                return await asyncio.wait_for(reader.read(), 5)
            except ConnectionError:
                return b""

    async def samples(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Scrape; return every sample by name and labels."""
        _, body = await self.get("/metrics")
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
        }


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A server with per-group series, at most two groups."""
    world = World()
    http = HttpServer(
        observed=world.observed, live=lambda: world.live, ready=lambda: world.ready, per_group=True, groups_max=2
    )
    world.port = await http.start("127.0.0.1", 0)
    yield world
    await http.stop()


async def test_a_running_daemon_is_alive(world: World) -> None:
    assert await world.get("/livez") == (200, b"ok\n")


async def test_the_front_page_names_the_others(world: World) -> None:
    status, body = await world.get("/")

    assert status == 200
    assert all(path in body for path in (b"/metrics", b"/livez", b"/readyz"))


async def test_readiness_says_what_is_missing(world: World) -> None:
    assert (await world.get("/readyz"))[0] == 200
    world.ready = (False, {"loading": 12, "share": 0.4})

    status, body = await world.get("/readyz")

    assert status == 503
    assert json.loads(body) == {"ready": False, "loading": 12, "share": 0.4}
    assert (await world.samples())[("offsetd_ready", ())] == 0


async def test_other_pages_and_methods_are_refused(world: World) -> None:
    assert (await world.get("/admin"))[0] == 404
    assert b" 405 " in await world.send(b"POST / HTTP/1.1\r\n\r\n")
    assert b" 400 " in await world.send(b"\x00\x00\x00\x12\x00\x12\r\n\r\n")


async def test_metrics_show_what_was_counted(world: World) -> None:
    world.observed.requests[8, 9] += 3
    world.observed.refusals[8, 15] += 2
    world.observed.refusals[8, 9999] += 1
    world.observed.latency[8].observe(0.0007)
    world.observed.connections_closed["idle"] += 1
    world.observed.compaction_last_success_ms = 1500

    samples = await world.samples()

    assert samples["offsetd_requests_total", (("api", "OffsetCommit"), ("version", "9"))] == 3
    labels = (("api", "OffsetCommit"), ("code", "15"), ("error", "COORDINATOR_NOT_AVAILABLE"))
    assert samples["offsetd_request_errors_total", labels] == 2
    unknown = (("api", "OffsetCommit"), ("code", "9999"), ("error", "9999"))
    assert samples["offsetd_request_errors_total", unknown] == 1
    assert samples["offsetd_request_seconds_bucket", (("api", "OffsetCommit"), ("le", "0.0005"))] == 0
    assert samples["offsetd_request_seconds_bucket", (("api", "OffsetCommit"), ("le", "0.001"))] == 1
    assert samples["offsetd_request_seconds_bucket", (("api", "OffsetCommit"), ("le", "+Inf"))] == 1
    assert samples["offsetd_connections_closed_total", (("reason", "idle"),)] == 1
    assert samples["offsetd_compaction_last_success_timestamp_seconds", ()] == 1.5
    assert samples["offsetd_slots", (("state", "failed"),)] == 0
    assert samples["offsetd_slots", (("state", "ready"),)] == 50
    assert ("offsetd_compaction_oldest_waiting_timestamp_seconds", ()) not in samples


async def test_the_process_is_measured_too(world: World) -> None:
    names = {name for name, _ in await world.samples()}

    assert {"process_resident_memory_bytes", "process_open_fds", "python_info"} <= names


async def test_a_series_ends_with_its_group(world: World) -> None:
    series = ("offsetd_group_offsets", (("group", "audit"),))
    assert (await world.samples())[series] == 20
    time = (await world.samples())["offsetd_group_last_commit_timestamp_seconds", (("group", "audit"),)]
    assert time == 1_700_000_001.5

    world.live = replace(LIVE, groups=1, per_group=[("billing", 10, 0)])

    assert series not in await world.samples()


async def test_groups_beyond_the_limit_are_counted_not_shown(world: World) -> None:
    world.live = replace(LIVE, groups=500, per_group=((f"g{number}", 1, 0) for number in range(500)))

    samples = await world.samples()

    assert sum(name == "offsetd_group_offsets" for name, _ in samples) == 2
    assert samples["offsetd_groups_without_series", ()] == 498


async def test_hostile_group_ids_stay_apart_and_inside_their_label(world: World) -> None:
    """Two groups with one label would make Prometheus reject the whole scrape."""
    hostile = ('a"} 1\nforged 1', "a\\nb")
    world.live = replace(LIVE, per_group=[(group, 1, 0) for group in hostile])

    samples = await world.samples()

    assert not any(name.startswith("forged") for name, _ in samples)
    assert sum(name == "offsetd_group_offsets" for name, _ in samples) == 2


async def test_lone_surrogates_and_control_codes_can_be_shown(world: World) -> None:
    world.live = replace(LIVE, per_group=[("\ud800", 1, 0), ("\x1b[31m", 1, 0)])

    groups = [dict(labels)["group"] for name, labels in await world.samples() if name == "offsetd_group_offsets"]

    assert groups == ["\\ud800", "\\x1b[31m"]


async def test_per_group_series_can_be_turned_off() -> None:
    world = World()
    http = HttpServer(
        observed=world.observed, live=lambda: world.live, ready=lambda: world.ready, per_group=False, groups_max=2
    )
    world.port = await http.start("127.0.0.1", 0)

    names = {name for name, _ in await world.samples()}

    assert "offsetd_groups" in names
    assert not any(name.startswith("offsetd_group_") for name in names)
    await http.stop()


async def test_a_long_header_is_refused_before_it_ends(world: World) -> None:
    assert b" 431 " in await world.send(b"GET / HTTP/1.1\r\nX: " + b"a" * 9000)


async def test_a_silent_client_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READ_SECONDS_MAX", 0.01)
    async with connected(world.port) as (reader, writer):
        writer.write(b"GET / HT")

        assert await received_bytes(reader) == 0


async def test_a_client_that_does_not_read_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    page_bytes = 50_000_000
    monkeypatch.setattr(server, "WRITE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(server, "INDEX", b"x" * page_bytes)
    async with connected(world.port) as (reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.2)
        writer.transport.resume_reading()  # type: ignore[attr-defined]

        assert await received_bytes(reader) < page_bytes


async def test_connections_are_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    async with connected(world.port), connected(world.port) as (reader, _):
        assert await received_bytes(reader) == 0

    async with asyncio.timeout(5):
        # The server learns of the closed connection in a later turn of the loop.
        while not await world.send(b"GET /livez HTTP/1.1\r\n\r\n"):
            await asyncio.sleep(0.01)


async def test_stopping_drops_open_connections() -> None:
    world = World()
    http = HttpServer(
        observed=world.observed, live=lambda: world.live, ready=lambda: world.ready, per_group=True, groups_max=2
    )
    world.port = await http.start("127.0.0.1", 0)
    async with connected(world.port) as (reader, _):
        await world.get("/livez")

        await asyncio.wait_for(http.stop(), 5)

        assert await received_bytes(reader) == 0
    await http.stop()


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect, and leave nothing open behind."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def received_bytes(reader: asyncio.StreamReader) -> int:
    """Read until the end or the reset, and count."""
    count = 0
    with contextlib.suppress(ConnectionError):
        while data := await asyncio.wait_for(reader.read(1 << 20), 5):
            count += len(data)
    return count
