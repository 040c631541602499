"""A fault of ours in one request costs its own connection: neither its neighbours nor the commits of its batch."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from offsetd.broker import Broker
from offsetd.broker.client import Client
from protocol.api import METADATA, OFFSET_FETCH, encode_request
from protocol.metadata import MetadataRequest
from tests.fakes.wire import commit_frame, commit_request, fetch_frame, fetch_request
from tests.server.edge import edge, until

GROUP, PLACE = "billing", ("orders", 0)


def commit(group: str, offset: int) -> bytes:
    """Return a commit's frame."""
    return commit_frame(1, commit_request(group, {PLACE: offset}), 8)


def fetch(group: str) -> bytes:
    """Return a fetch's frame."""
    return fetch_frame(2, fetch_request(group, [PLACE], 7), 7)


def fault(*_: object, **__: object) -> Any:
    """Fail as no request should make us fail."""
    raise ZeroDivisionError("a fault of ours")


def break_metadata(broker: Broker) -> None:
    """Plant a fault where Metadata is answered."""
    broker.topics.names = fault  # type: ignore[method-assign]


ALL_TOPICS = encode_request(METADATA, 9, 3, "c", MetadataRequest(topics=None))


async def test_a_fault_while_a_request_is_handled_closes_its_connection_alone() -> None:
    async with edge() as world, world.client() as other, world.client() as client:
        break_metadata(world.broker)
        with capture_logs() as lines:
            client.send_bytes(ALL_TOPICS)
            closed = await client.is_closed()
        other.send_bytes(commit(GROUP, 5) + fetch(GROUP))
        await world.settle_when(1)
        await other.receive_frame()
        await other.receive_frame()

        assert closed
        await world.have_closed(fault=1)
        (line,) = [line for line in lines if line["event"] == "request_failed"]
        assert isinstance(line["exc_info"], ZeroDivisionError)
        assert line["log_level"] == "error"


@pytest.mark.parametrize(
    "late", [ALL_TOPICS, b"\0\0\0\x0c" + OFFSET_FETCH.to_bytes(2, "big") + b"\0\1\0\0\0\2\xff\xff\x7f\xff"]
)
async def test_a_request_that_fails_when_its_turn_comes_costs_nobody_the_commits_of_the_same_batch(late: bytes) -> None:
    """Its turn is brought by a settled commit, in the middle of a batch with the commits of others."""
    async with edge() as world, world.client() as client, world.client() as other:
        break_metadata(world.broker)
        with capture_logs():
            client.send_bytes(commit("first", 1) + late)
            await until(lambda: len(world.log.held) == 1)
            other.send_bytes(commit("second", 2))
            await world.settle_when(2)
            mine = await client.receive_frame()
            theirs = await other.receive_frame()
            closed = await client.is_closed()
        shown = await other.committed("second", [PLACE])

        assert mine[:4] == theirs[:4] == b"\0\0\0\1"
        assert closed
        assert shown == {PLACE: 2}
        assert len(world.peers) == 1
        assert await other.committed("first", [PLACE]) == {PLACE: 1}


async def test_a_failed_request_takes_those_behind_it_along_and_forgets_them() -> None:
    async with edge() as world, world.client() as client:
        break_metadata(world.broker)
        with capture_logs():
            client.send_bytes(commit(GROUP, 1) + ALL_TOPICS + commit(GROUP, 2) + fetch(GROUP))
            await until(lambda: len(world.log.held) == 2)
            world.log.settle()
            await until(lambda: not len(world.peers))
        async with world.client() as another:
            shown = await another.committed(GROUP, [PLACE])

        assert shown == {PLACE: 2}, "what was appended is kept, whoever hears of it"
        world.peers.tick()
        assert world.observed.in_flight_bytes == 0


async def test_deadlines_go_on_after_a_fault_in_one_look_at_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async with edge(idle_ms_max=1000) as world, world.client() as client:
        loop = asyncio.get_running_loop()
        faults: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: faults.append(context))
        looks: list[Callable[[], None]] = [fault]
        tick = world.peers.tick
        monkeypatch.setattr(world.peers, "tick", lambda: looks.pop()() if looks else tick())
        world.clock.advance(1001)

        assert await client.is_closed()
        assert len(faults) == 1
        await world.have_closed(idle=1)


async def test_the_broker_sees_a_connection_as_it_declares_it() -> None:
    async with edge() as world, world.client():
        seen: Client = world.connections()[0]

        assert seen.host == "/127.0.0.1"
        assert seen.received_at == world.clock.monotonic()
