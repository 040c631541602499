"""What the fuzzers once found is sent to a daemon for ever."""

import asyncio
import struct
from pathlib import Path

import pytest

from protocol.api import FIND_COORDINATOR
from tests.fakes.daemon import Daemon, running
from tests.fakes.wire import connected
from tests.fuzz.attack import check_replies, due, faults


def _findings() -> list[bytes]:
    lines = Path(__file__).with_name("findings.txt").read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if not line.startswith("#")]


async def _send(daemon: Daemon, frame: bytes) -> None:
    async with connected(daemon.port) as client:
        client.send_frame(frame)
        await check_replies(client, [frame])


def _find_coordinator(bad_bytes: int) -> bytes:
    return struct.pack(">hhihh", FIND_COORDINATOR, 0, 7, -1, bad_bytes) + b"\xff" * bad_bytes


def test_it_is_known_when_a_name_grows_beyond_what_a_reply_can_repeat() -> None:
    """Each bad byte becomes three."""
    assert due(_find_coordinator(10_922)) == "a reply"
    assert due(_find_coordinator(10_923)) == "a reply or the end"


@pytest.mark.integration
def test_no_frame_that_was_ever_found_causes_a_fault(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        for frame in (*_findings(), _find_coordinator(10_922), _find_coordinator(10_923)):
            asyncio.run(_send(daemon, frame))

        assert faults(daemon) == []
