"""Requests that wait for time or for others do not hold up a stop: they are answered, and then it goes."""

from pathlib import Path

import pytest

from protocol.errors import Code
from protocol.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic, FetchResponse
from protocol.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tests.fakes.daemon import Daemon, running
from tests.fakes.wire import RawClient, connect

pytestmark = pytest.mark.integration
#: Longer than anything may wait here: only being answered early ends these tests.
PATIENCE_MS = 1_800_000


async def stopped(daemon: Daemon, client: RawClient) -> int:
    """Stop the daemon when all that was sent has been read."""
    await client.writer.drain()
    daemon.wait_until(lambda: daemon.metric("offsetd_requests_total") >= 1)
    daemon.signal(15)
    return daemon.wait()


async def test_a_member_whose_join_is_held_is_sent_away_when_the_daemon_stops(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": PATIENCE_MS, "shutdown.timeout.ms": PATIENCE_MS}
    with running(tmp_path, settings) as daemon:
        client = await connect(daemon.port)
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=PATIENCE_MS,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
        client.send(request, 3)

        code = await stopped(daemon, client)

        _, reply = await client.receive(JoinGroupResponse, 3)
        assert (code, reply.error_code) == (0, Code.COORDINATOR_NOT_AVAILABLE)
        await client.close()


async def test_a_long_poll_is_answered_when_the_daemon_stops(tmp_path: Path) -> None:
    with running(tmp_path, {"shutdown.timeout.ms": PATIENCE_MS}) as daemon:
        client = await connect(daemon.port)
        topic = FetchRequestTopic(topic="t", partitions=(FetchRequestPartition(partition=0),))
        for _ in range(3):
            client.send(FetchRequest(max_wait_ms=PATIENCE_MS, min_bytes=1, topics=(topic,)), 11)

        code = await stopped(daemon, client)

        replies = [await client.receive(FetchResponse, 11) for _ in range(3)]
        assert code == 0
        assert [correlation for correlation, _ in replies] == [1, 2, 3]
        await client.close()
