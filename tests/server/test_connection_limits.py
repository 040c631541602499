"""How many connections there may be: in all, from one address, in a second, and within the limit of open files."""

import asyncio
import resource
from collections.abc import Iterator

import pytest

from offsetd.server.limits import ServerLimits
from offsetd.server.listener import Listener
from tests.fakes.wire import RawClient, commit_frame, commit_request, fetch_frame, fetch_request
from tests.server.edge import Edge, edge, turns, until

COMMIT = commit_frame(0, commit_request("billing", {("orders", 0): 5}), 8)
ASKED = fetch_frame(1, fetch_request("billing", [("orders", 0)], 7), 7)


async def is_served(client: RawClient) -> bool:
    """Tell whether a request on this connection is answered."""
    client.send_bytes(ASKED)
    return (await client.receive_frame())[:4] == b"\0\0\0\1"


async def test_one_connection_more_than_allowed_is_closed_at_once_and_the_others_stay() -> None:
    async with edge(connections_max=3) as world:
        clients = [await world.connect() for _ in range(3)]
        await until(lambda: len(world.peers) == 3)
        refused = await world.connect()

        assert await refused.is_closed()
        assert [await is_served(client) for client in clients] == [True] * 3
        assert world.observed.connections_refused == {"max.connections.total": 1}
        assert world.closed() == {}, "who was never let in has not left"


async def test_a_place_that_became_free_is_given_to_the_next() -> None:
    async with edge(connections_max=1) as world:
        for _ in range(5):
            async with world.client() as client:
                assert await is_served(client)
            await until(lambda: not len(world.peers))

        assert world.observed.connections_refused == {}


async def test_one_address_can_be_limited_alone() -> None:
    async with edge(connections_per_host_max=2) as world:
        clients = [await world.connect() for _ in range(2)]
        await until(lambda: len(world.peers) == 2)
        refused = await world.connect()
        closed = await refused.is_closed()
        await clients[0].close()
        await until(lambda: len(world.peers) == 1)
        async with world.client() as next_one:
            served = await is_served(next_one)

        assert closed
        assert served
        assert world.observed.connections_refused == {"max.connections.per.ip": 1}


async def test_more_new_connections_than_allowed_in_a_second_are_refused_until_time_has_passed() -> None:
    async with edge(connections_per_second_max=5) as world:
        for _ in range(12):
            await world.connect()
        await until(lambda: world.observed.connections_refused["max.connection.creation.rate"] == 7)
        let_in = len(world.peers)
        world.clock.advance(500)
        for _ in range(3):
            await world.connect()
        await until(lambda: world.observed.connections_refused["max.connection.creation.rate"] == 8)

        assert let_in == 5
        assert len(world.peers) == 7, "half a second is two connections and a half"


async def test_a_thousand_idle_connections_do_not_disturb_one_that_works() -> None:
    async with edge() as world:
        for _ in range(1000):
            await world.connect()
        await until(lambda: len(world.peers) == 1000)
        async with world.client() as client:
            served = await is_served(client)
        world.pass_time(600_001)
        await until(lambda: not len(world.peers))

        assert served
        assert world.closed()["idle"] == 1000


@pytest.fixture
def few_files() -> Iterator[int]:
    """Let this process believe that it may open few files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (600, hard))
    yield 600
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_leave_descriptors_for_the_journal(few_files: int) -> None:
    broker = Edge().broker

    assert Listener(broker, ServerLimits(connections_max=10_000)).connections_max == few_files - 128
    assert Listener(broker, ServerLimits(connections_max=100)).connections_max == 100


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_a_stop_answers_what_is_in_flight_and_takes_no_more() -> None:
    async with edge() as world, world.client() as client:
        client.send_bytes(COMMIT + ASKED)
        await until(lambda: world.log.held)
        stopping = asyncio.create_task(world.listener.stop(timeout_ms=60_000))
        await turns()
        client.send_bytes(ASKED)
        await turns()
        waited = not stopping.done()
        first = asyncio.create_task(client.receive_frame())
        await turns()
        world.log.settle()
        replies = [(await first)[:4], (await client.receive_frame())[:4]]
        await stopping

        assert waited
        assert replies == [b"\0\0\0\0", b"\0\0\0\1"], "a fetch that waits is answered as well"
        assert await client.is_closed()
        assert world.observed.fetch_requests == 1


async def test_a_stop_does_not_wait_longer_than_it_is_told_to() -> None:
    async with edge() as world, world.client() as client:
        client.send_bytes(COMMIT)
        await until(lambda: world.log.held)
        await world.listener.stop(timeout_ms=0)

        assert await client.is_closed()
        await world.have_closed(stopped=1)
