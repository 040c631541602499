"""Many requests at once on one connection: strictly in order, a bounded number at a time, whatever becomes of it."""

import gc
import socket
import struct
from typing import cast

from offsetd.server.connection import Connection
from protocol.api import API_VERSIONS, FETCH, METADATA, OFFSET_COMMIT, OFFSET_FETCH, decode_response, encode_request
from protocol.api_versions import ApiVersionsRequest
from protocol.errors import Code
from protocol.fetch import FetchRequest
from protocol.metadata import MetadataRequest
from protocol.offset_commit import OffsetCommitResponse
from protocol.offset_fetch import OffsetFetchResponse
from protocol.produce import ProduceRequest
from tests.fakes.wire import commit_codes, commit_frame, commit_request, fetch_frame, fetch_request, fetched_offsets
from tests.server.edge import edge, turns, until

GROUP, PLACE = "billing", ("orders", 0)


def commits(numbers: range) -> bytes:
    """Return pipelined commits whose correlation ids and offsets count up."""
    return b"".join(commit_frame(number, commit_request(GROUP, {PLACE: number}), 8) for number in numbers)


def correlation_id(reply: bytes) -> int:
    """Return the number by which a client finds the request that was answered."""
    number: int = struct.unpack_from(">i", reply)[0]
    return number


async def test_ten_thousand_pipelined_commits_are_answered_in_order_and_few_are_decoded_at_once() -> None:
    async with edge(in_flight_max=64) as world, world.client() as client:
        client.send_bytes(commits(range(10_000)))
        replies: list[int] = []
        most = 0
        while len(replies) < 10_000:
            await until(lambda: world.log.held)
            await turns(3)
            most = max(most, len(world.log.held))
            settled = world.log.settle()
            replies += [correlation_id(await client.receive_frame()) for _ in range(settled)]

        assert replies == list(range(10_000))
        assert most == 64


async def test_a_connection_with_all_it_may_have_in_flight_is_not_read_from() -> None:
    """Back-pressure is TCP's: what we do not read stays with the peer."""
    async with edge(in_flight_max=4) as world, world.client() as client:
        flood = commits(range(1)) * 100_000
        client.send_bytes(flood)
        await until(lambda: len(world.log.held) == 4)
        await turns()

        assert len(world.log.held) == 4
        assert world.observed.bytes_received < len(flood) / 4
        client.reset()


async def test_different_requests_keep_their_order_though_some_must_wait() -> None:
    async with edge() as world, world.client() as client:
        hello = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        asked = [
            encode_request(API_VERSIONS, 3, 0, "c", hello),
            commit_frame(1, commit_request(GROUP, {PLACE: 5}), 8),
            encode_request(METADATA, 9, 2, "c", MetadataRequest(topics=())),
            fetch_frame(3, fetch_request(GROUP, [PLACE], 7), 7),
            encode_request(FETCH, 11, 4, "c", FetchRequest(max_wait_ms=0)),
            fetch_frame(5, fetch_request(GROUP, None, 7), 7),
        ]
        client.send_bytes(b"".join(asked))
        replies = [await client.receive_frame()]
        await turns()
        sent = world.observed.bytes_sent
        await world.settle_when(1)
        replies += [await client.receive_frame() for _ in asked[1:]]
        shown = [cast("OffsetFetchResponse", decode_response(OFFSET_FETCH, 7, replies[place])[1]) for place in (3, 5)]

        assert sent == len(replies[0]) + 4, "nothing overtakes the commit"
        assert [correlation_id(reply) for reply in replies] == [0, 1, 2, 3, 4, 5]
        assert [fetched_offsets(response) for response in shown] == [{PLACE: 5}] * 2, (
            "a fetch sees the commit before it"
        )


async def test_a_produce_that_wants_no_reply_leaves_no_gap() -> None:
    async with edge() as world, world.client() as client:
        client.send_bytes(
            commit_frame(1, commit_request(GROUP, {PLACE: 5}), 8)
            + encode_request(0, 7, 2, "c", ProduceRequest(acks=0, timeout_ms=1))
            + fetch_frame(3, fetch_request(GROUP, [PLACE], 7), 7)
        )
        await world.settle_when(1)

        assert [correlation_id(await client.receive_frame()) for _ in range(2)] == [1, 3]


async def test_correlation_ids_are_echoed_untouched_also_repeated_and_negative_ones() -> None:
    numbers = [7, 7, 0, -1, -(1 << 31), (1 << 31) - 1, 7]
    async with edge() as world, world.client() as client:
        for number in numbers:
            client.send_bytes(fetch_frame(number, fetch_request(GROUP, [PLACE], 7), 7))
        kept = [correlation_id(await client.receive_frame()) for _ in numbers]
        for number in numbers:
            client.send_bytes(commit_frame(number, commit_request(GROUP, {PLACE: 5}), 8))
        await world.settle_when(len(numbers))
        written = [correlation_id(await client.receive_frame()) for _ in numbers]

        assert kept == numbers
        assert written == numbers


async def test_a_client_that_pipelines_cheap_requests_does_not_keep_others_waiting() -> None:
    """What one read brings is taken in portions, with turns for the other connections between them."""
    async with edge(in_flight_max=8) as world, world.client() as hasty, world.client() as other:
        fetch = fetch_frame(1, fetch_request(GROUP, [PLACE], 7), 7)
        hasty.send_bytes(fetch * 4000)
        other.send_bytes(fetch)
        await until(lambda: world.observed.fetch_requests)
        await other.receive_frame()
        answered_then = world.observed.fetch_requests
        for _ in range(4000):
            await hasty.receive_frame()

        assert answered_then < 2000
        assert world.observed.fetch_requests == 4001


# --- a client that leaves ---------------------------------------------------------------------------------------------


async def test_a_client_that_half_closes_still_gets_every_reply() -> None:
    """Scripts send all they have, close their side, and read."""
    async with edge(in_flight_max=8) as world, world.client() as client:
        client.send_bytes(commits(range(20)) + fetch_frame(20, fetch_request(GROUP, [PLACE], 7), 7))
        client.writer.write_eof()
        settled = 0
        while settled < 20:
            await until(lambda: world.log.held)
            settled += world.log.settle()
        replies = [await client.receive_frame() for _ in range(21)]

        assert [correlation_id(reply) for reply in replies] == list(range(21))
        assert await client.is_closed()
        await world.have_closed(peer=1)


async def test_a_client_that_half_closes_with_nothing_in_flight_is_closed() -> None:
    async with edge() as world, world.client() as client:
        client.writer.write_eof()

        assert await client.is_closed()
        await world.have_closed(peer=1)


async def test_a_commit_whose_client_is_gone_completes_and_nothing_is_kept_of_the_connection() -> None:
    async with edge() as world:
        async with world.client() as client:
            client.send_bytes(commits(range(3)) + b"\0\1" + bytes(30_000))
            await until(lambda: len(world.log.held) == 3 and world.connections()[0].stuck_bytes() > 30_000)
            connection = world.connections()[0]
            client.reset()
        await world.have_closed(error=1)
        half_a_frame = connection._frames.pending_bytes
        del connection
        world.log.settle()
        async with world.client() as another:
            shown = await another.committed(GROUP, [PLACE])
        await world.have_closed(error=1, peer=1)
        world.peers.tick()
        gc.collect()

        assert shown == {PLACE: 2}
        assert half_a_frame == 0, "a commit on its way knows its connection, but need not keep that"
        assert world.observed.in_flight_bytes == 0
        assert world.broker.commits.held_bytes() == 0
        assert not [thing for thing in gc.get_objects() if isinstance(thing, Connection)]


async def test_a_poll_that_waits_is_forgotten_with_its_client() -> None:
    """Otherwise a client could have memory held for half a minute by leaving, again and again."""
    async with edge() as world:
        async with world.client() as client:
            client.send(FetchRequest(max_wait_ms=30_000, min_bytes=1), 11)
            await until(world.connections()[0].is_waiting)
            turn = world.connections()[0].turns.queue[0]
            waiting = turn.parked
            client.reset()
        await world.have_closed(error=1)

        assert waiting is not None
        assert (turn.parked, turn.read, turn.reply) == (None, None, None)
        world.clock.advance(30_000)
        assert turn.reply is None


async def test_a_peer_whose_machine_lost_power_is_found_by_the_system() -> None:
    """Half-open connections send nothing and receive nothing: only keepalive and unanswered bytes tell."""
    async with edge() as world, world.client():
        transport = world.connections()[0]._transport
        assert transport is not None
        sock: socket.socket = transport.get_extra_info("socket")

        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 10
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 90_000
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


# --- commits that take too long ---------------------------------------------------------------------------------------


async def test_a_commit_that_times_out_is_answered_in_its_turn_and_may_still_be_settled() -> None:
    async with edge() as world, world.client() as client:
        client.send_bytes(commits(range(2)))
        await until(lambda: len(world.log.held) == 2)
        world.pass_time(6000)
        replies = [await client.receive_frame() for _ in range(2)]
        codes = [
            commit_codes(cast("OffsetCommitResponse", decode_response(OFFSET_COMMIT, 8, reply)[1])) for reply in replies
        ]
        world.log.settle()

        assert [correlation_id(reply) for reply in replies] == [0, 1]
        assert codes == [{PLACE: Code.REQUEST_TIMED_OUT}] * 2
        assert await client.committed(GROUP, [PLACE]) == {PLACE: 1}
