"""Nobody may be slow for ever: neither in sending a request, nor in taking a reply, nor in doing nothing at all."""

import struct

from protocol.api import FETCH, encode_request
from protocol.fetch import FetchRequest
from tests.fakes.wire import commit_frame, commit_request, fetch_frame, fetch_request
from tests.server.edge import Edge, edge, turns, until

GROUP, PLACE = "billing", ("orders", 0)
#: All offsets of a group of 2000: a reply of about 60 kB.
ALL = fetch_frame(1, fetch_request(GROUP, None, 7), 7)


async def blocked(world: Edge) -> None:
    """Wait until the newest connection's peer has stopped taking replies."""
    await until(lambda: world.connections()[-1].unsent_since)


# --- a request that never becomes whole -------------------------------------------------------------------------------


async def test_a_frame_must_be_whole_in_time_however_steadily_its_bytes_come() -> None:
    async with edge(frame_read_ms_max=30_000) as world, world.client() as client:
        asked = fetch_frame(1, fetch_request("a group with a long name", [PLACE], 7), 7)
        for place, byte in enumerate(asked[:30], start=1):
            client.send_bytes(bytes([byte]))
            await world.have_received(place)
            world.pass_time(1000)
            assert len(world.peers) == 1, "up to thirty seconds it has time"
        client.send_bytes(asked[30:31])
        await world.have_received(31)
        world.pass_time(1000)

        assert await client.is_closed()
        await world.have_closed(frame_timeout=1)
        assert world.observed.in_flight_bytes == 0


async def test_silence_in_the_middle_of_a_length_is_as_bad_as_in_a_body() -> None:
    async with edge(frame_read_ms_max=30_000) as world, world.client() as client:
        client.send_bytes(b"\0\0")
        await world.have_received(2)
        world.pass_time(30_001)

        assert await client.is_closed()
        await world.have_closed(frame_timeout=1)


async def test_each_frame_has_its_own_time() -> None:
    async with edge(frame_read_ms_max=30_000) as world, world.client() as client:
        asked = fetch_frame(1, fetch_request(GROUP, [PLACE], 7), 7)
        client.send_bytes(asked[:9])
        for _ in range(5):
            await until(lambda: world.connections()[0].frame_since == world.clock.monotonic())
            world.pass_time(29_000)
            client.send_bytes(asked[9:] + asked[:9])
            await client.receive_frame()

        assert len(world.peers) == 1


async def test_the_rest_of_a_frame_is_not_waited_for_while_we_do_not_read() -> None:
    """What stops us is then the peer's slow reading, which has a longer time of its own."""
    async with edge(frame_read_ms_max=30_000, reply_write_ms_max=60_000) as world:
        await world.fill(GROUP, 1, 2000)
        async with world.client(reads=False) as client:
            client.send_bytes(ALL * 10 + ALL[:9])
            await blocked(world)
            world.pass_time(59_000)
            for _ in range(10):
                await client.receive_frame()
            await until(lambda: world.connections()[0].frame_since)
            world.pass_time(29_000)
            client.send_bytes(ALL[9:])
            await client.receive_frame()

            assert len(world.peers) == 1


async def test_a_client_with_all_it_may_have_in_flight_is_given_time_for_the_rest() -> None:
    async with edge(frame_read_ms_max=30_000, in_flight_max=1) as world, world.client() as client:
        client.send_bytes(encode_request(FETCH, 11, 1, "c", FetchRequest(max_wait_ms=29_000, min_bytes=1)))
        await until(world.connections()[0].is_waiting)
        client.send_bytes(ALL)
        await turns()
        world.pass_time(31_000)
        await client.receive_frame()
        await client.receive_frame()

        assert len(world.peers) == 1


# --- replies that nobody reads ----------------------------------------------------------------------------------------


async def test_a_peer_that_reads_no_replies_is_not_read_from_and_costs_little_memory() -> None:
    async with edge() as world:
        await world.fill(GROUP, 1, 2000)
        async with world.client(reads=False) as client:
            client.send_bytes(ALL * 5000)
            await blocked(world)
            await turns()
            answered, received = world.observed.fetch_requests, world.observed.bytes_received
            await turns()

            assert answered < 200
            assert (world.observed.fetch_requests, world.observed.bytes_received) == (answered, received)
            assert world.connections()[0].held_bytes() < 600_000
            client.reset()


async def test_replies_that_waited_for_a_commit_do_not_pile_up_either() -> None:
    """A read is made when its turn has come and there is somebody to take it."""
    async with edge(in_flight_max=64) as world:
        await world.fill(GROUP, 1, 2000)
        async with world.client(reads=False) as client:
            client.send_bytes(commit_frame(0, commit_request(GROUP, {PLACE: 7}), 8) + ALL * 63)
            await until(lambda: len(world.connections()[0].turns.queue) == 64)
            await world.settle_when(1)
            await blocked(world)
            held = world.connections()[0].held_bytes()
            sizes = [len(await client.receive_frame()) for _ in range(64)]

            assert held < 250_000
            assert sum(sizes) > 2_000_000, "all of them at once would have been much more"
            assert len(set(sizes[1:])) == 1


async def test_a_peer_that_reads_no_replies_is_disconnected_when_its_time_is_over() -> None:
    async with edge(reply_write_ms_max=60_000) as world:
        await world.fill(GROUP, 1, 2000)
        async with world.client(reads=False) as client:
            client.send_bytes(ALL * 20)
            await blocked(world)
            world.pass_time(60_000)
            still = len(world.peers)
            world.pass_time(1)
            await world.have_closed(write_timeout=1)

            assert still == 1
            assert world.observed.in_flight_bytes < 600_000
            world.peers.tick()
            assert world.observed.in_flight_bytes == 0


async def test_a_slow_reader_that_catches_up_is_served_on() -> None:
    async with edge(reply_write_ms_max=60_000) as world:
        await world.fill(GROUP, 1, 2000)
        async with world.client(reads=False) as client:
            for _ in range(3):
                client.send_bytes(ALL * 10)
                await blocked(world)
                world.pass_time(59_000)
                for _ in range(10):
                    await client.receive_frame()
                await until(lambda: not world.connections()[0].unsent_since)

            assert len(world.peers) == 1


async def test_a_peer_that_is_being_closed_must_take_its_last_replies_in_time_too() -> None:
    """A malformed request ends a connection gently; that is no way around the deadline."""
    async with edge(reply_write_ms_max=60_000) as world:
        await world.fill(GROUP, 1, 2000)
        async with world.client(reads=False) as client:
            client.send_bytes(ALL + struct.pack(">i", -1))
            await until(lambda: world.connections()[0].closing and not world.connections()[0].is_waiting())
            still = len(world.peers)
            world.pass_time(60_001)
            await world.have_closed(malformed=1)

            assert still == 1


async def test_a_peer_that_half_closed_must_take_its_last_replies_in_time_too() -> None:
    async with edge(reply_write_ms_max=60_000) as world:
        await world.fill(GROUP, 1, 2000)
        async with world.client(reads=False) as client:
            client.send_bytes(ALL * 10)
            client.writer.write_eof()
            await blocked(world)
            world.pass_time(60_001)
            await until(lambda: not len(world.peers))


# --- nothing at all ---------------------------------------------------------------------------------------------------


async def test_a_connection_that_asks_nothing_is_closed() -> None:
    async with edge(idle_ms_max=600_000) as world, world.client() as silent, world.client() as busy:
        for _ in range(4):
            world.pass_time(200_000)
            busy.send_bytes(ALL)
            await busy.receive_frame()

        assert await silent.is_closed()
        await world.have_closed(idle=1)
        assert len(world.peers) == 1


async def test_a_connection_that_waits_for_us_is_not_idle() -> None:
    async with edge(idle_ms_max=10_000) as world, world.client() as client:
        client.send_bytes(encode_request(FETCH, 11, 1, "c", FetchRequest(max_wait_ms=30_000, min_bytes=1)))
        await until(world.connections()[0].is_waiting)
        world.pass_time(20_000)
        still = len(world.peers)
        world.pass_time(10_000)
        await client.receive_frame()

        assert still == 1


async def test_a_silent_connection_with_a_few_unread_replies_is_idle_all_the_same() -> None:
    async with edge(idle_ms_max=600_000) as world:
        await world.fill(GROUP, 1, 2900)
        async with world.client(reads=False) as client:
            client.send_bytes(ALL)
            await until(world.connections()[0].stuck_bytes)
            await turns()
            unread = world.connections()[0].stuck_bytes()
            unnoticed = not world.connections()[0].unsent_since
            world.pass_time(600_001)
            await world.have_closed(idle=1)

            assert unread
            assert unnoticed
