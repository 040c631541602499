"""A daemon that is loading: it serves at once, refuses what is not whole, and says how far it is."""

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from offsetd.coordinator.slot import slot_of
from protocol.errors import Code
from protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponse,
)
from protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.offset_fetch import OffsetFetchResponse
from tests.fakes.daemon import WAIT_SECONDS, Daemon
from tests.fakes.engine import commit_entry, leave
from tests.fakes.wire import RawClient, connected, fetch_request

SLOTS = 3
SETTINGS = {"offsets.topic.num.partitions": SLOTS}
ORDERS = ("orders", 0)
#: One group of each slot.
GROUPS = tuple(next(f"g{n}" for n in range(100) if slot_of(f"g{n}", SLOTS) == slot) for slot in range(SLOTS))
LOADING = int(Code.COORDINATOR_LOAD_IN_PROGRESS)


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """While this file is there, the load waits where a failpoint says so."""
    path = tmp_path / "hold"
    path.touch()
    return path


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started, over data in which each slot has a group."""
    entries = [commit_entry(group, {ORDERS: 40 + slot}, time_ms=_now_ms()) for slot, group in enumerate(GROUPS)]
    asyncio.run(leave(tmp_path / "data", entries))
    daemon = Daemon(tmp_path, SETTINGS)
    yield daemon
    daemon.clean_up()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def _fetch_codes(client: RawClient, group: str, version: int) -> set[int]:
    """Return every code that a fetch is answered with, at whichever level."""
    response = cast("OffsetFetchResponse", await client.call(fetch_request(group, [ORDERS], version), version))
    topics = response.topics + tuple(topic for each in response.groups for topic in each.topics)
    codes = {row.error_code for topic in topics for row in topic.partitions}
    assert codes, "the partition that was asked for is not in the answer"
    return (
        codes | {each.error_code for each in response.groups} | ({response.error_code} if version in (2, 7) else set())
    )


def test_while_nothing_is_loaded_offsets_are_refused_and_the_rest_is_answered(daemon: Daemon, hold: Path) -> None:
    daemon.failpoints = f"load_slot=hold:{hold}"
    daemon.start(ready=False)

    async def look() -> None:
        async with connected(daemon.port) as client:
            for group in GROUPS:
                assert await client.commit(group, {ORDERS: 1}) == {ORDERS: LOADING}
                for version in (0, 1, 2, 7, 8, 9):
                    assert await _fetch_codes(client, group, version) == {LOADING}, version
            found = cast("FindCoordinatorResponse", await client.call(FindCoordinatorRequest(coordinator_keys=GROUPS)))
            assert {(each.error_code, each.port) for each in found.coordinators} == {(0, daemon.port)}
            named = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
            metadata = cast("MetadataResponse", await client.call(named))
            assert [(topic.name, topic.error_code) for topic in metadata.topics] == [("orders", 0)]
            rows = (ListOffsetsRequestPartition(partition_index=0, timestamp=-2),)
            ends = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsRequestTopic(name="orders", partitions=rows),))
            listed = cast("ListOffsetsResponse", await client.call(ends))
            assert listed.topics[0].partitions[0].error_code == 0
            hold.unlink()
            daemon.wait_until(lambda: daemon.readiness()[0] == 200)
            for slot, group in enumerate(GROUPS):
                assert await client.committed(group, [ORDERS]) == {ORDERS: 40 + slot}

    asyncio.run(look())


def test_the_health_page_and_the_metrics_say_how_far_the_load_is(daemon: Daemon, hold: Path) -> None:
    daemon.failpoints = f"load_slot=hold:{hold}@3"
    daemon.start(ready=False)
    daemon.wait_until(lambda: daemon.metric('offsetd_slots{state="ready"}') == 2)

    status, facts = daemon.readiness()

    assert status == 503
    assert facts["ready"] is False
    assert facts["slots"] == {"loading": 1, "ready": 2, "failed": 0}
    assert facts["load_share"] == 0.667
    assert facts["loaded_offsets"] == 2
    assert daemon.get("/livez") == (200, b"ok\n")
    assert daemon.metric("offsetd_ready") == 0
    assert daemon.metric('offsetd_slots{state="loading"}') == 1
    assert daemon.metric('offsetd_slots{state="failed"}') == 0
    assert daemon.metric("offsetd_load_share") == pytest.approx(2 / 3)
    assert daemon.metric("offsetd_load_offsets") == 2
    assert not daemon.events("slots_loaded")
    hold.unlink()
    loaded = daemon.wait_for_event("slots_loaded")
    assert (loaded["slots"], loaded["offsets"], loaded["epoch"]) == (3, 3, 2)
    assert daemon.readiness()[0] == 200
    assert daemon.metric("offsetd_ready") == 1
    assert daemon.metric("offsetd_load_share") == 1
    assert daemon.metric("offsetd_load_seconds") > 0


def test_each_slot_answers_as_soon_as_it_is_whole(daemon: Daemon, hold: Path) -> None:
    """And what it acknowledges meanwhile is kept."""
    daemon.failpoints = f"load_slot=hold:{hold}@2"
    daemon.start(ready=False)
    daemon.wait_until(lambda: daemon.metric('offsetd_slots{state="ready"}') == 1)

    async def look() -> None:
        async with connected(daemon.port) as client:
            assert await client.committed(GROUPS[0], [ORDERS]) == {ORDERS: 40}
            assert await client.commit(GROUPS[0], {ORDERS: 50}) == {ORDERS: 0}
            assert await client.committed(GROUPS[0], [ORDERS]) == {ORDERS: 50}
            for group in GROUPS[1:]:
                assert await client.commit(group, {ORDERS: 1}) == {ORDERS: LOADING}
                assert await _fetch_codes(client, group, 9) == {LOADING}

    async def look_again() -> None:
        async with connected(daemon.port) as client:
            got = [await client.committed(group, [ORDERS]) for group in GROUPS]
            assert got == [{ORDERS: 50}, {ORDERS: 41}, {ORDERS: 42}]

    asyncio.run(look())
    daemon.kill()
    daemon.failpoints = ""
    daemon.start()
    asyncio.run(look_again())


def test_a_terminal_sees_a_progress_bar(daemon: Daemon, hold: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OFFSETD_")},
        "OFFSETD_FAILPOINTS": f"load_slot=hold:{hold}@2",
        "OFFSETD_OFFSETS_TOPIC_NUM_PARTITIONS": str(SLOTS),
        "OFFSETD_DISK_RESERVE_BYTES": "0",
        "OFFSETD_HTTP_LISTENERS": "",
    }
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "offsetd", "serve", "--data", str(daemon.data), *("--listen", "127.0.0.1:0")],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    try:
        seen = _read_until(ours, "loading [##########....................]  33%  1 offsets, ")
        hold.unlink()
        seen += _read_until(ours, "slots_loaded")
        process.send_signal(signal.SIGTERM)
        seen += _read_until(ours, "broker_stopped")
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)

    assert seen.index("broker_started") < seen.index("loading [")
    # The bar is wiped before the next line is written, and that line stands alone.
    assert "\r\x1b[K" in seen
    last = seen.rpartition("slots_loaded")[0].rpartition("\r\x1b[K")[2]
    assert "loading" not in last


def test_elsewhere_there_is_no_bar(daemon: Daemon, hold: Path) -> None:
    daemon.failpoints = f"load_slot=hold:{hold}@2"
    daemon.start(ready=False)
    daemon.wait_until(lambda: daemon.metric('offsetd_slots{state="ready"}') == 1)
    hold.unlink()
    daemon.wait_for_event("slots_loaded")

    assert "\r" not in daemon.log_text()
    assert all(json.loads(line)["event"] for line in daemon.log_text().splitlines())


def _read_until(terminal: int, words: str) -> str:
    seen = ""
    deadline = time.monotonic() + WAIT_SECONDS
    while words not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65_536).decode("utf-8", "replace")
    return seen
