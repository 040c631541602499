"""A connection: replies in order, time limits, what is no reply, and its end."""

import asyncio
import socket
from dataclasses import replace

import pytest

from offsetd.client import Closed, Committed, Unavailable, Unsupported
from offsetd.client.address import Address
from offsetd.client.connection import Connection, open_connection
from offsetd.client.limits import Limits
from offsetd.client.transient import ConnectionFailed
from protocol.api_versions import ApiVersionsResponseApiKey
from protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from tests.client.scripted import (
    FIND_COORDINATOR,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    QUICK,
    Close,
    Hold,
    ScriptedBroker,
    Silence,
    client_of,
    scripted,
)

ORDERS = ("orders", 0)
ASK_ALL = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="billing", topics=None),))
ASK_WHO = FindCoordinatorRequest(coordinator_keys=("billing",))


async def opened(broker: ScriptedBroker, limits: Limits = QUICK) -> Connection:
    """Open a connection to a broker."""
    address = Address("127.0.0.1", broker.port)
    return await open_connection(address, client_id="test", software_version="1", limits=limits, ssl=None)


async def test_requests_share_a_connection_and_each_caller_gets_its_own_reply() -> None:
    async with scripted() as [broker]:
        broker.table["billing", "orders", 0] = (7, "", -1)
        connection = await opened(broker)
        hold = Hold()
        broker.then(OFFSET_FETCH, hold)
        first = asyncio.create_task(connection.call(ASK_ALL, OffsetFetchResponse))
        await hold.arrived.wait()
        second = asyncio.create_task(connection.call(ASK_WHO, FindCoordinatorResponse))
        hold.release.set()

        assert (await first).groups[0].topics[0].partitions[0].committed_offset == 7
        assert (await second).coordinators[0].port == broker.port
        assert broker.connections == 1
        await connection.close()


async def test_a_caller_that_gives_up_does_not_shift_the_replies_of_others() -> None:
    async with scripted() as [broker]:
        connection = await opened(broker)
        hold = Hold()
        broker.then(OFFSET_FETCH, hold)
        first = asyncio.create_task(connection.call(ASK_ALL, OffsetFetchResponse))
        await hold.arrived.wait()
        first.cancel()
        second = asyncio.create_task(connection.call(ASK_WHO, FindCoordinatorResponse))
        hold.release.set()

        assert (await second).coordinators[0].key == "billing"
        assert first.cancelled()
        await connection.close()


async def test_a_reply_that_does_not_come_ends_the_connection_for_all_who_wait() -> None:
    async with scripted() as [broker]:
        connection = await opened(broker, replace(QUICK, request_timeout_s=0.02))
        broker.then(OFFSET_FETCH, Silence())
        calls = [connection.call(ASK_ALL, OffsetFetchResponse), connection.call(ASK_WHO, FindCoordinatorResponse)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)

        assert [str(outcome).partition(": ")[2] for outcome in outcomes] == ["no reply within 0.02 s"] * 2
        assert all(isinstance(outcome, ConnectionFailed) and outcome.sent for outcome in outcomes)
        assert not connection.is_open


async def test_a_time_limit_is_kept_for_callers_that_have_gone() -> None:
    """Or a connection on which nothing comes back would be used for ever by callers with little patience."""
    async with scripted() as [broker]:
        broker.then(OFFSET_FETCH, Silence())
        async with client_of(broker, limits=replace(QUICK, request_timeout_s=0.05)) as client:
            with pytest.raises(Unavailable, match=r"offsets of group 'billing' did not succeed within 0\.01 s"):
                await client.fetch("billing", timeout_s=0.01)

            assert await client.fetch("billing") == {}
            assert broker.connections >= 2


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        (3).to_bytes(4, "big") + b"abc",
        (12).to_bytes(4, "big") + b"\xff" * 12,
        (-1).to_bytes(4, "big", signed=True),
        (12).to_bytes(4, "big") + bytes(4) + b"\xff" * 8,
    ],
    ids=["another protocol", "too short", "another correlation id", "negative length", "cut in its middle"],
)
async def test_what_is_no_reply_is_asked_again_on_a_new_connection(garbage: bytes) -> None:
    async with scripted() as [broker]:
        broker.then(OFFSET_COMMIT, garbage)
        async with client_of(broker) as client:
            await client.commit("billing", {ORDERS: 5})

            assert broker.table == {("billing", "orders", 0): (5, "", -1)}
            assert broker.connections == 2


async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    async with scripted() as [broker]:
        connection = await opened(broker)
        connection.data_received((8).to_bytes(4, "big") + bytes(8))

        with pytest.raises(ConnectionFailed, match="a reply to no request"):
            await connection.call(ASK_WHO, FindCoordinatorResponse)


async def test_a_reply_larger_than_the_limit_is_not_read() -> None:
    async with scripted() as [broker]:
        broker.then(OFFSET_FETCH, (10_000).to_bytes(4, "big"))
        connection = await opened(broker, replace(QUICK, reply_bytes_max=9_999))

        with pytest.raises(ConnectionFailed, match="frame of 10000 bytes exceeds the limit of 9999"):
            await connection.call(ASK_ALL, OffsetFetchResponse)


async def test_a_broker_that_is_too_old_is_named_and_not_asked_again() -> None:
    async with scripted() as [broker]:
        broker.api_versions = (ApiVersionsResponseApiKey(api_key=10, min_version=0, max_version=3),)
        async with client_of(broker) as client:
            with pytest.raises(Unsupported, match="does not serve API 10 in version 4 or newer") as caught:
                await client.fetch("billing")

            assert (caught.value.address.port, caught.value.api_key, caught.value.version) == (broker.port, 10, 4)
            assert broker.connections == 1


async def test_a_listener_that_never_speaks_is_left_after_the_time_for_connecting() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as quiet,
        pytest.raises(ConnectionFailed, match=r"nothing within 0\.02 s"),
    ):
        await open_connection(
            Address("127.0.0.1", quiet.getsockname()[1]),
            client_id="test",
            software_version="1",
            limits=replace(QUICK, connect_timeout_s=0.02),
            ssl=None,
        )


async def test_callers_that_need_a_connection_at_once_share_one() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        await asyncio.gather(*(client.fetch(f"group-{number}") for number in range(20)))

        assert broker.connections == 1


async def test_closing_tells_whoever_waits() -> None:
    async with scripted() as [broker]:
        client = client_of(broker)
        hold, commit_hold = Hold(), Hold()
        broker.then(FIND_COORDINATOR, hold)
        broker.then(OFFSET_COMMIT, commit_hold)
        commit = asyncio.create_task(client.commit("billing", {ORDERS: 5}))
        await hold.arrived.wait()
        hold.release.set()
        await commit_hold.arrived.wait()
        fetch = asyncio.create_task(client.fetch("other"))
        await asyncio.sleep(0)
        await client.close()

        with pytest.raises(Closed):
            await commit
        with pytest.raises(Closed):
            await fetch
        with pytest.raises(Closed):
            await client.fetch("billing")
        await client.close()


async def test_a_client_that_was_never_used_closes() -> None:
    async with client_of(ScriptedBroker(port=1)):
        pass


async def test_nobody_there_is_said_with_what_was_tried_last() -> None:
    async with scripted() as [broker]:
        await broker.stop()
        async with client_of(broker) as client:
            with pytest.raises(Unavailable) as caught:
                await client.commit("billing", {ORDERS: 5}, timeout_s=0.5)

        assert (caught.value.group, caught.value.outcome_unknown) == ("billing", False)
        assert f"127.0.0.1:{broker.port}: no connection" in str(caught.value)
        assert isinstance(caught.value.__cause__, ConnectionFailed)


async def test_a_lost_connection_behind_a_commit_leaves_it_open_whether_it_happened() -> None:
    async with scripted() as [broker]:
        broker.then(OFFSET_COMMIT, Close(done=True))
        limits = replace(QUICK, backoff_first_s=60, backoff_max_s=60)
        async with client_of(broker, limits=limits) as client:
            with pytest.raises(Unavailable, match="it may have happened nevertheless") as caught:
                await client.commit("billing", {ORDERS: 5}, timeout_s=1)

        assert caught.value.outcome_unknown
        assert broker.table == {("billing", "orders", 0): (5, "", -1)}


async def test_a_commit_behind_a_lost_connection_is_made_again() -> None:
    """It is the same twice as once."""
    async with scripted() as [broker]:
        broker.then(OFFSET_COMMIT, Close(done=True), Close(done=False))
        async with client_of(broker) as client:
            await client.commit("billing", {ORDERS: Committed(5, "note", 3)})

            assert broker.table == {("billing", "orders", 0): (5, "note", 3)}
            assert broker.connections == 3
