"""Any bytes to a real daemon: it goes on answering, keeps what it acknowledged, and gives back what it took."""

import asyncio
from pathlib import Path

import pytest

from protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.fakes.daemon import Daemon, running
from tests.fakes.wire import connected
from tests.fuzz.attack import Attacker, check_replies, faults
from tests.fuzz.campaign import Campaign, campaign
from tests.fuzz.specimens import ROUTES
from tests.protocol.messages import sample_frame

ATTACKERS = 6
KEPT = [("kept", partition) for partition in range(3)]
#: Sockets and files that may be open besides those of before: a segment that was rolled, a process that compacts.
DESCRIPTORS_MORE_MAX = 8
#: Memory beyond that of before: what the fuzzer made, caches, and what large replies left to the allocator. Measured
#: over seven minutes it goes up and down between 35 and 65 MiB.
MEMORY_MORE_BYTES_MAX = 96 * 1024 * 1024

SETTINGS = {
    "socket.request.max.bytes": 2**20,
    "request.read.timeout.ms": 2000,
    # However slow the machine is, no commit may end with an unknown outcome.
    "offsets.commit.timeout.ms": 600_000,
}


async def _warm_up(daemon: Daemon) -> None:
    """Send every request once, so that whatever is made at first use is there."""
    for route in ROUTES:
        frame = sample_frame(route)
        async with connected(daemon.port) as client:
            client.send_frame(frame)
            await check_replies(client, [frame])


async def _keep(run: Campaign, daemon: Daemon) -> int:
    """Commit and read back, undisturbed by whatever happens beside; return the last offset."""
    offset = 0
    async with connected(daemon.port) as client:
        for offset in run.rounds():
            codes = await client.commit("kept", dict.fromkeys(KEPT, offset))
            assert set(codes.values()) == {0}
            assert await client.committed("kept", KEPT) == dict.fromkeys(KEPT, offset)
    return offset


async def _attack(run: Campaign, daemon: Daemon) -> None:
    attacker = Attacker(run, daemon.port, daemon.http_port)
    while not run.is_over:
        await attacker.attack()


async def _fuzz(run: Campaign, daemon: Daemon) -> int:
    run.begin()
    async with asyncio.TaskGroup() as tasks:
        keeper = tasks.create_task(_keep(run, daemon))
        for _ in range(ATTACKERS):
            tasks.create_task(_attack(run, daemon))
    return keeper.result()


async def _check_service(daemon: Daemon, offset: int) -> None:
    async with connected(daemon.port) as client:
        versions = await client.call(ApiVersionsRequest(), 0)
        assert isinstance(versions, ApiVersionsResponse)
        assert versions.error_code == 0
        assert await client.committed("kept", KEPT) == dict.fromkeys(KEPT, offset)


@pytest.mark.integration
def test_a_daemon_survives_any_bytes_and_forgets_nothing_but_them(tmp_path: Path) -> None:
    with campaign("socket fuzzer") as run, running(tmp_path, SETTINGS) as daemon:
        asyncio.run(_warm_up(daemon))
        descriptors, memory_bytes = daemon.descriptors(), daemon.memory_bytes()
        offset = asyncio.run(_fuzz(run, daemon))

        assert run.frames > 0
        asyncio.run(_check_service(daemon, offset))
        assert faults(daemon) == []
        daemon.wait_until(lambda: daemon.descriptors() <= descriptors + DESCRIPTORS_MORE_MAX)
        more_bytes = daemon.memory_bytes() - memory_bytes
        print(f"{offset} commits kept, memory {memory_bytes >> 20} MiB and {more_bytes >> 10} KiB more")
        assert more_bytes <= MEMORY_MORE_BYTES_MAX

        daemon.restart()
        asyncio.run(_check_service(daemon, offset))
        assert daemon.terminate() == 0
