"""What the fuzzers once found is sent to a daemon for ever."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.daemon import Daemon, running
from tests.fakes.wire import connected
from tests.fuzz.attack import check_replies, faults


def _findings() -> list[bytes]:
    lines = Path(__file__).with_name("findings.txt").read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if not line.startswith("#")]


async def _send(daemon: Daemon, frame: bytes) -> None:
    async with connected(daemon.port) as client:
        client.send_frame(frame)
        await check_replies(client, [frame])


@pytest.mark.integration
def test_no_frame_that_was_ever_found_causes_a_fault(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        for frame in _findings():
            asyncio.run(_send(daemon, frame))

        assert faults(daemon) == []
