"""Expiry in a real daemon: what is too old goes, for good; what a setting or a request keeps stays."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.daemon import Daemon
from tests.fakes.engine import commit_entry, leave
from tests.fakes.wire import RawClient, connected

SLOTS = 3
ORDERS = ("orders", 0)
HOUR_MS = 3_600_000
NONE = -1


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started, that looks for expired offsets all the time."""
    daemon = Daemon(
        tmp_path,
        {
            "offsets.topic.num.partitions": SLOTS,
            "offsets.retention.minutes": 60,
            "offsets.retention.overrides": "audit-*=-1,weekly-*=10080",
            "offsets.retention.check.interval.ms": 1,
        },
    )
    yield daemon
    daemon.clean_up()


async def offset_of(client: RawClient, group: str) -> int:
    """Return what a group has committed, -1 for nothing."""
    return (await client.committed(group, [ORDERS]))[ORDERS]


async def until_gone(client: RawClient, group: str) -> None:
    """Wait until a group's offset has expired."""
    async with asyncio.timeout(60):
        while await offset_of(client, group) != NONE:
            await asyncio.sleep(0.01)


async def test_what_is_older_than_its_retention_goes_for_good(daemon: Daemon) -> None:
    """Three of six offsets at once: the first sweep that sees it warns, the second decides."""
    now_ms = time.time_ns() // 1_000_000
    old = {("orders", partition): 7 for partition in range(3)}
    entries = [
        commit_entry("billing", old, time_ms=now_ms - 2 * HOUR_MS),
        commit_entry("audit-eu", {ORDERS: 8}, time_ms=now_ms - 2 * HOUR_MS),
        commit_entry("weekly-report", {ORDERS: 9}, time_ms=now_ms - 2 * HOUR_MS),
        commit_entry("fresh", {ORDERS: 10}, time_ms=now_ms),
    ]
    await leave(daemon.data, entries)
    daemon.start()

    expired = await asyncio.to_thread(daemon.wait_for_event, "offsets_expired")

    (postponed,) = daemon.events("expiry_postponed")
    assert (postponed["level"], postponed["due"], postponed["live"]) == ("warning", 3, 6)
    assert (expired["offsets"], expired["live"]) == (3, 3)
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_offsets") == 3)
    assert daemon.metric("offsetd_groups") == 3
    assert daemon.metric("offsetd_expired_offsets_total") == 3
    assert daemon.metric("offsetd_expired_groups_total") == 1
    for _ in range(2):
        async with connected(daemon.port) as client:
            assert await client.committed("billing", old) == dict.fromkeys(old, NONE)
            assert await client.committed("billing") == {}
            kept = [await offset_of(client, group) for group in ("audit-eu", "weekly-report", "fresh")]
            assert kept == [8, 9, 10]
        daemon.restart()


async def test_a_commit_brings_an_old_group_back_to_life(daemon: Daemon) -> None:
    """Its new offset is young, and stays."""
    now_ms = time.time_ns() // 1_000_000
    entries = [
        commit_entry("billing", {ORDERS: 7}, time_ms=now_ms - 2 * HOUR_MS),
        commit_entry("fresh", {ORDERS: 10}, time_ms=now_ms),
    ]
    await leave(daemon.data, entries)
    daemon.start()
    async with connected(daemon.port) as client:
        await until_gone(client, "billing")

        assert await client.commit("billing", {ORDERS: 11}) == {ORDERS: 0}
        # A sweep that takes another group has looked at this one too.
        assert await client.commit("short", {ORDERS: 12}, 2, retention_ms=1) == {ORDERS: 0}
        await until_gone(client, "short")
        assert await offset_of(client, "billing") == 11


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_an_old_client_may_name_a_retention_of_its_own(daemon: Daemon, version: int) -> None:
    """Shorter than the setting, also for a group that is otherwise kept for ever; other versions cannot."""
    daemon.start()
    async with connected(daemon.port) as client:
        assert await client.commit("steady", {ORDERS: 1}, version) == {ORDERS: 0}
        assert await client.commit("later", {ORDERS: 2}, version, retention_ms=HOUR_MS) == {ORDERS: 0}
        assert await client.commit("newer", {ORDERS: 3}, 5, retention_ms=1) == {ORDERS: 0}
        assert await client.commit("audit-eu", {ORDERS: 4}, version, retention_ms=1) == {ORDERS: 0}

        await until_gone(client, "audit-eu")

        kept = [await offset_of(client, group) for group in ("steady", "later", "newer")]
        assert kept == [1, 2, 3]
    daemon.restart()
    async with connected(daemon.port) as client:
        assert await offset_of(client, "audit-eu") == NONE
        assert await offset_of(client, "later") == 2


async def test_nothing_expires_while_it_loads(daemon: Daemon, tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    entries = [
        commit_entry("billing", {ORDERS: 7}, time_ms=now_ms - 2 * HOUR_MS),
        commit_entry("fresh", {ORDERS: 10}, time_ms=now_ms),
    ]
    await leave(daemon.data, entries)
    hold = tmp_path / "hold"
    hold.touch()
    daemon.failpoints = f"load_slot=hold:{hold}@3"
    daemon.start(ready=False)
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric('offsetd_slots{state="ready"}') == 2)

    assert daemon.metric("offsetd_expired_offsets_total") == 0
    hold.unlink()
    await asyncio.to_thread(daemon.wait_until, lambda: daemon.metric("offsetd_expired_offsets_total") == 1)
