"""The client against a real daemon: what was acknowledged is there, also when the daemon was not for a while."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from offsetd.client import BlockingClient, Client, Committed, PartitionsRefused, TopicPartition
from protocol.errors import Code
from tests.fakes.daemon import Daemon, running

pytestmark = pytest.mark.integration

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 7)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that nothing bad happens to; each test has groups of its own."""
    with running(tmp_path_factory.mktemp("daemon")) as found:
        yield found
        assert [event for event in found.events() if event["level"] != "info"] == []


async def test_offsets_come_back_as_they_were_committed(daemon: Daemon) -> None:
    async with Client(daemon.address) as client:
        offsets = {ORDERS: Committed(42, "first \u20ac", 7), BILLS: Committed(2**63 - 1)}
        await client.commit("round", offsets)

        assert await client.fetch("round") == offsets
        assert await client.fetch("round", [BILLS, ("none", 0)]) == {BILLS: offsets[BILLS]}
        assert await client.fetch_groups({"round": [ORDERS], "never seen": None}) == {
            "round": {ORDERS: offsets[ORDERS]},
            "never seen": {},
        }


async def test_a_partition_whose_metadata_is_too_long_does_not_hold_up_the_others(daemon: Daemon) -> None:
    async with Client(daemon.address) as client:
        with pytest.raises(PartitionsRefused) as caught:
            await client.commit("metadata", {ORDERS: Committed(1, "x" * 4097), BILLS: Committed(2, "x" * 4096)})

        assert caught.value.refused == {ORDERS: Code.OFFSET_METADATA_TOO_LARGE}
        assert list(await client.fetch("metadata")) == [BILLS]


async def test_many_commits_at_once_become_few(daemon: Daemon) -> None:
    async with Client(daemon.address) as client:
        before = daemon.metric("offsetd_commit_requests_total")
        await asyncio.gather(
            *(client.commit("many", {("orders", number % 50): number}) for number in range(5000)),
        )
        found = await client.fetch("many")

        assert {partition.partition: each.offset for partition, each in found.items()} == {
            number: 4950 + number for number in range(50)
        }
        assert 0 < daemon.metric("offsetd_commit_requests_total") - before < 100


async def test_a_large_burst_of_metadata_stays_below_what_a_broker_takes(daemon: Daemon) -> None:
    async with Client(daemon.address) as client:
        note = "x" * 4096
        await asyncio.gather(
            *(client.commit("burst", {("orders", number): Committed(1, note)}) for number in range(600))
        )

        assert len(await client.fetch("burst")) == 600


def test_the_same_without_a_loop(daemon: Daemon) -> None:
    with BlockingClient(daemon.address) as client:
        client.commit("blocking", {ORDERS: 42})

        assert client.fetch("blocking") == {ORDERS: Committed(42)}


@pytest.mark.crash
async def test_what_was_acknowledged_outlives_kills_and_calls_outlive_restarts(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        async with Client(daemon.address) as client:
            acknowledged = 0
            stopping = False

            async def work() -> None:
                nonlocal acknowledged
                while not stopping:
                    await client.commit("billing", {ORDERS: acknowledged + 1})
                    acknowledged += 1
                    found = await client.fetch("billing", [ORDERS])
                    assert found[ORDERS].offset == acknowledged

            job = asyncio.create_task(work())
            for _ in range(3):
                reached = acknowledged + 20
                while acknowledged < reached and not job.done():
                    await asyncio.sleep(0.001)
                await asyncio.to_thread(daemon.kill)
                await asyncio.to_thread(daemon.start, listen=daemon.address)
            stopping = True
            await job

            assert (await client.fetch("billing"))[ORDERS].offset == acknowledged
