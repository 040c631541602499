"""All connections together have one budget of memory: above it nobody is read from, and it always comes free again."""

import asyncio
import struct
from contextlib import AsyncExitStack
from functools import partial

import pytest

from offsetd.broker.turns import REQUEST_BYTES_LEAST
from offsetd.server.peers import Peer
from tests.fakes.wire import RawClient, commit_frame, commit_request, fetch_frame, fetch_request
from tests.server.edge import Edge, edge, turns, until

GROUP, PLACE = "billing", ("orders", 0)
MEBIBYTE = 1024 * 1024
#: The most that a loop reads at once, so the most by which a budget can be exceeded.
READ_BYTES_MAX = 256 * 1024
SMALL = fetch_frame(1, fetch_request("nobody", [PLACE], 7), 7)
ALL = fetch_frame(2, fetch_request(GROUP, None, 7), 7)


def large_commit(number: int) -> bytes:
    """Return a commit of about 30 kB."""
    return commit_frame(number, commit_request(GROUP, {("orders", row): number for row in range(1700)}), 8)


def appended(world: Edge, entries: int) -> bool:
    """Tell whether so many commits have been appended, or no more are taken."""
    return len(world.log.held) >= entries or world.peers.held


async def is_answered(world: Edge, client: RawClient) -> bool:
    """Tell whether a small request is answered while the loop turns a few times."""
    before = world.observed.fetch_requests
    client.send_bytes(SMALL)
    await turns()
    return world.observed.fetch_requests > before


async def test_halves_of_large_frames_stop_all_reading_and_the_largest_go_first() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world, world.client() as healthy:
        hogs = [await world.connect() for _ in range(12)]
        for place, hog in enumerate(hogs):
            hog.send_bytes(struct.pack(">i", 900_000) + bytes(100_000 + 1000 * place))
        await until(lambda: world.peers.held)
        await turns()
        most = world.observed.in_flight_bytes
        answered = await is_answered(world, healthy)
        sizes = {peer.address: peer.held_bytes() for peer in world.peers}
        world.pass_time(1000)
        closed_early = world.closed()
        await world.recover()
        await healthy.receive_frame()
        left = {peer.address for peer in world.peers}

        assert MEBIBYTE < most <= MEBIBYTE + READ_BYTES_MAX
        assert not answered
        assert not closed_early, "a whole second without progress is waited for"
        ended = set(sizes) - left
        assert ended
        assert min(sizes[peer] for peer in ended) >= max(sizes[peer] for peer in left & set(sizes))
        assert world.closed() == {"memory": len(ended)}
        assert world.observed.in_flight_bytes <= MEBIBYTE
        assert await is_answered(world, healthy)


async def test_a_frame_that_the_budget_could_never_hold_is_refused_by_its_length() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world, world.client() as client:
        client.send_bytes(struct.pack(">i", MEBIBYTE + 1))

        assert await client.is_closed()
        await world.have_closed(malformed=1)


async def test_a_frame_as_large_as_the_budget_can_still_be_received() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world, world.client() as client:
        padded = SMALL[4:] + bytes(MEBIBYTE - 4 - len(SMALL[4:]))
        client.send_bytes(struct.pack(">i", len(padded)) + padded)

        assert (await client.receive_frame())[:4] == b"\0\0\0\1"
        assert not world.peers.held


async def test_requests_that_wait_for_the_disk_count_and_those_behind_them_are_answered_later() -> None:
    async with edge(memory_bytes_max=MEBIBYTE, in_flight_max=1000) as world, world.client() as client:
        client.send_bytes(b"".join(large_commit(number) for number in range(100)))
        await until(lambda: world.peers.held)
        await turns()
        taken = len(world.log.held)
        replies: list[int] = []
        while len(replies) < 100:
            settled = world.log.settle()
            replies += [struct.unpack_from(">i", await client.receive_frame())[0] for _ in range(settled)]
            world.pass_time(1000)
            await turns()

        assert 20 < taken < 60
        assert replies == list(range(100))


async def test_commits_count_until_they_are_settled_though_their_clients_are_gone() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world, world.client() as healthy:
        for number in range(4):
            async with world.client() as client:
                client.send_bytes(b"".join(large_commit(number) for _ in range(10)))
                await until(partial(appended, world, 10 * number + 5))
                client.reset()
        world.pass_time(1000)
        world.pass_time(1000)
        answered = await is_answered(world, healthy)
        world.log.settle()
        world.pass_time(1000)
        await healthy.receive_frame()
        await until(lambda: len(world.peers) == 1)
        world.peers.tick()

        assert not answered
        assert world.closed() == {"error": 4}
        assert world.observed.in_flight_bytes == 0


async def test_commits_count_until_they_are_settled_though_their_time_is_over() -> None:
    """Otherwise a disk that hangs would let clients fill the memory by trying again."""
    async with edge(memory_bytes_max=MEBIBYTE) as world, world.client() as client:
        for entries in (10, 20, 30, 40):
            client.send_bytes(b"".join(large_commit(number) for number in range(10)))
            await until(partial(appended, world, entries))
            world.pass_time(6000)
        await turns()

        assert world.peers.held
        assert len(world.log.held) <= 40
        world.log.settle()
        world.pass_time(1000)
        assert not world.peers.held


async def test_unread_replies_count_and_the_largest_are_ended_if_nothing_moves() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world, AsyncExitStack() as stack:
        await world.fill(GROUP, 28, 1250)
        hogs = [await stack.enter_async_context(world.client(reads=False)) for _ in range(4)]
        async with world.client() as healthy:
            for hog in hogs:
                hog.send_bytes(ALL * 3)
            await until(lambda: world.peers.held)
            await turns()
            stuck = sum(connection.stuck_bytes() for connection in world.connections())
            answered = await is_answered(world, healthy)
            await world.recover()
            await healthy.receive_frame()

            assert MEBIBYTE < stuck < 2 * MEBIBYTE, "all twelve would have been eight"
            assert not answered
            assert world.closed()["memory"] >= 1


async def test_a_reader_that_makes_progress_is_not_ended() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world:
        await world.fill(GROUP, 20, 1250)
        async with world.client(reads=False) as one, world.client(reads=False) as two:
            one.send_bytes(ALL)
            two.send_bytes(ALL)
            await until(lambda: world.peers.held or world.observed.fetch_requests == 2)
            for _ in range(5):
                await one.reader.readexactly(10_000)
                await two.reader.readexactly(10_000)
                await turns()
                world.pass_time(1000)

            assert len(world.peers) == 2


async def test_reads_that_wait_behind_commits_are_not_all_made_at_once_when_their_batch_settles() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world, AsyncExitStack() as stack:
        await world.fill(GROUP, 10, 1250)
        clients = [await stack.enter_async_context(world.client(reads=False)) for _ in range(12)]
        for number, client in enumerate(clients):
            client.send_bytes(commit_frame(number, commit_request(f"group-{number}", {PLACE: 1}), 8) + ALL)
        await until(lambda: len(world.log.held) == 12)
        await until(lambda: sum(len(connection.turns.queue) for connection in world.connections()) == 24)
        world.log.settle()
        made = sum(connection.stuck_bytes() for connection in world.connections())
        waiting = sum(connection.is_waiting() for connection in world.connections())
        for client in clients:
            await client.receive_frame()
        rest = await world.all_replies(clients)

        assert made < MEBIBYTE + 300_000
        assert waiting > 0
        assert len({len(reply) for reply in rest}) == 1


async def test_a_connection_that_comes_in_while_there_is_no_memory_waits_for_its_turn() -> None:
    async with edge(memory_bytes_max=MEBIBYTE) as world:
        hogs = [await world.connect() for _ in range(12)]
        for hog in hogs:
            hog.send_bytes(struct.pack(">i", 900_000) + bytes(100_000))
        await until(lambda: world.peers.held)
        async with world.client() as newcomer:
            answered = await is_answered(world, newcomer)
            await world.recover()
            await newcomer.receive_frame()

            assert not answered


async def test_a_connection_that_comes_in_just_before_there_is_memory_again_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with edge() as world:
        admit = world.peers.admit

        def admit_at_the_last_moment(peer: Peer) -> bool:
            asyncio.get_running_loop().call_soon(world.peers.tick)
            return admit(peer)

        monkeypatch.setattr(world.peers, "admit", admit_at_the_last_moment)
        world.peers.held = True
        client = await world.connect()
        client.send_bytes(SMALL)

        assert (await client.receive_frame())[:4] == b"\0\0\0\1"


async def test_what_waits_is_counted_once_and_what_is_over_not_at_all() -> None:
    async with edge() as world, world.client() as client:
        commit = large_commit(1)
        client.send_bytes(commit + SMALL + b"\0")
        await until(lambda: len(world.connections()[0].turns.queue) == 2)
        world.peers.tick()
        waiting = world.observed.in_flight_bytes
        world.log.settle()
        world.peers.tick()

        assert waiting == len(commit) - 4 + REQUEST_BYTES_LEAST + 1
        assert world.observed.in_flight_bytes == 1


async def test_a_large_request_that_waits_is_not_also_kept_as_it_was_read() -> None:
    async with edge(in_flight_max=1) as world, world.client() as client:
        padded = large_commit(1)[4:] + bytes(MEBIBYTE)
        client.send_bytes(struct.pack(">i", len(padded)) + padded)
        await until(lambda: world.log.held)

        assert len(world.connections()[0]._frames._buffer) == 0


async def test_a_large_request_that_was_taken_leaves_nothing_behind() -> None:
    """Neither itself nor, for the sake of a small rest behind it, the whole of what was read with it."""
    async with edge() as world, world.client() as client:
        padded = SMALL[4:] + bytes(MEBIBYTE)
        frame = struct.pack(">i", len(padded)) + padded
        kept: list[int] = []
        for rest in (b"", b"\0\0\0"):
            client.send_bytes(frame + rest)
            await client.receive_frame()
            await world.have_received(len(kept) * len(frame) + len(frame) + len(rest))
            kept.append(len(world.connections()[0]._frames._buffer))

        assert kept == [0, 3]
