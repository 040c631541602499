"""Answers that would be very large: bounded, made in slices between the requests of others, and never piled up."""

from contextlib import AsyncExitStack
from typing import cast

import pytest
from structlog.testing import capture_logs

from protocol.api import METADATA, OFFSET_FETCH, decode_response
from protocol.errors import Code
from protocol.metadata import MetadataRequest, MetadataResponse
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from tests.fakes.wire import commit_frame, commit_request, fetch_frame, fetch_request, fetched_offsets
from tests.server.edge import edge, turns, until

LARGE, PLACE = "large", ("orders", 0)
MEBIBYTE = 1024 * 1024
SMALL = fetch_frame(1, fetch_request("nobody", [PLACE], 7), 7)


def all_of(group: str, number: int = 2) -> bytes:
    """Return a fetch of all offsets of a group."""
    return fetch_frame(number, fetch_request(group, None, 7), 7)


def fetched(reply: bytes, version: int = 7) -> OffsetFetchResponse:
    """Return a fetch's response."""
    return cast("OffsetFetchResponse", decode_response(OFFSET_FETCH, version, reply)[1])


async def test_all_offsets_of_a_large_group_are_made_between_the_requests_of_others() -> None:
    async with edge() as world, world.client() as admin, world.client() as other:
        await world.fill(LARGE, 40, 1000)
        admin.send_bytes(all_of(LARGE))
        await until(world.connections()[0].is_waiting)
        served = 0
        while world.connections()[0].is_waiting():
            other.send_bytes(SMALL)
            await other.receive_frame()
            served += 1
        offsets = fetched_offsets(fetched(await admin.receive_frame()))

        assert served >= 5, "many times in the course of forty slices"
        assert len(offsets) == 40_000


async def test_a_commit_while_a_large_answer_is_made_is_not_in_it_or_wholly_in_it() -> None:
    async with edge() as world, world.client() as admin, world.client() as other:
        await world.fill(LARGE, 40, 1000)
        everywhere = {(f"topic-{topic}", partition): 77_777 for topic in range(40) for partition in range(1000)}
        other.send_bytes(commit_frame(1, commit_request(LARGE, everywhere), 8))
        await until(lambda: world.log.held)
        admin.send_bytes(all_of(LARGE))
        await until(world.connections()[0].is_waiting)
        await turns(5)
        world.log.settle()
        halfway = world.connections()[0].is_waiting()
        offsets = fetched_offsets(fetched(await admin.receive_frame()))

        assert halfway
        assert len(offsets) == 40_000
        assert sum(offset == 77_777 for offset in offsets.values()) in {0, 40_000}


@pytest.mark.parametrize("version", [2, 7, 9])
async def test_an_answer_above_the_limit_is_an_error_and_the_connection_stays(version: int) -> None:
    async with edge(response_bytes_max=200_000) as world, world.client() as admin:
        await world.fill(LARGE, 20, 1000)
        with capture_logs() as lines:
            admin.send(fetch_request(LARGE, None, version), version)
            (reply,) = await world.all_replies([admin])
        response = fetched(reply, version)
        admin.send_bytes(SMALL)
        await admin.receive_frame()

        codes = [group.error_code for group in response.groups] if version >= 8 else [response.error_code]
        assert codes == [Code.UNKNOWN_SERVER_ERROR]
        assert len(reply) < 1000
        assert [line["event"] for line in lines] == ["reply_too_large"]


async def test_a_group_that_is_asked_for_a_thousand_times_in_one_request_is_an_error_too() -> None:
    """A small request for a very large answer: what is made of it before that is known stays below the limit."""
    async with edge(response_bytes_max=MEBIBYTE) as world, world.client() as admin:
        await world.fill(LARGE, 20, 1000)
        groups = tuple(OffsetFetchRequestGroup(group_id=LARGE, topics=None) for _ in range(1000))
        with capture_logs():
            admin.send(OffsetFetchRequest(groups=groups), 9)
            (reply,) = await world.all_replies([admin])
        response = fetched(reply, 9)

        assert {group.error_code for group in response.groups} == {Code.UNKNOWN_SERVER_ERROR}
        assert len(response.groups) == 1000


async def test_a_description_of_all_topics_above_the_limit_is_an_error_for_each() -> None:
    """A commit to one high partition makes a topic of ten thousand: few bytes in, many out."""
    async with edge(response_bytes_max=MEBIBYTE) as world, world.client() as client:
        client.send(commit_request(LARGE, {(f"topic-{number}", 9_999): 1 for number in range(20)}), 8)
        await world.settle_when(1)
        await client.receive_frame()
        with capture_logs() as lines:
            client.send(MetadataRequest(topics=None), 9)
            (reply,) = await world.all_replies([client])
        response = cast("MetadataResponse", decode_response(METADATA, 9, reply)[1])

        assert [line["event"] for line in lines] == ["reply_too_large"]
        assert [broker.node_id for broker in response.brokers] == [1], "a client still learns where to go"
        assert {topic.error_code for topic in response.topics} == {Code.UNKNOWN_SERVER_ERROR}
        assert len(response.topics) == 20
        assert len(reply) < 5000


async def test_long_answers_that_could_not_be_sent_are_not_made() -> None:
    """Ten clients that read nothing, each with a large answer to come, do not hold ten of them."""
    async with edge(memory_bytes_max=MEBIBYTE) as world, AsyncExitStack() as stack:
        await world.fill(LARGE, 20, 1000)
        admins = [await stack.enter_async_context(world.client(reads=False)) for _ in range(10)]
        for admin in admins:
            admin.send_bytes(all_of(LARGE))
        await until(lambda: all(connection.is_waiting() for connection in world.connections()))
        await until(lambda: world.peers.held)
        for _ in range(200):
            world.clock.advance(10)
            await turns(3)
        held = sum(connection.held_bytes() for connection in world.connections())
        waiting = sum(connection.is_waiting() for connection in world.connections())
        replies = await world.all_replies(admins)

        assert held < 2 * MEBIBYTE, "all of them take four"
        assert waiting >= 5
        assert len({len(reply) for reply in replies}) == 1
        assert len(fetched_offsets(fetched(replies[-1]))) == 20_000


async def test_a_long_answer_whose_client_is_gone_is_not_made_to_its_end() -> None:
    """Also if it was not even begun, because it could not have been sent."""
    async with edge() as world, world.client() as other:
        await world.fill(LARGE, 40, 1000)
        for blocked in (False, True):
            async with world.client() as admin:
                admin.send_bytes(all_of(LARGE))
                await until(world.connections()[1].is_waiting)
                if blocked:
                    world.connections()[1].turns.block()
                await turns(2)
                admin.reset()
            await until(lambda: len(world.peers) == 1)
            world.clock.advance(10)
            await turns(5)
            assert not world.broker._long._queue, "forty slices take as many turns"
        other.send_bytes(all_of(LARGE))
        (reply,) = await world.all_replies([other])

        assert len(fetched_offsets(fetched(reply))) == 40_000
