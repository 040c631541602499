"""Coordinators: found from any address, followed when they move, waited for while they load."""

from random import Random

import pytest

from offsetd.client import NotAuthorized, Refused, TopicPartition, Unavailable
from protocol.errors import Code
from protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.offset_commit import OffsetCommitRequest
from protocol.offset_fetch import OffsetFetchRequest
from tests.client.scripted import FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH, client_of, scripted

ORDERS = TopicPartition("orders", 0)


async def test_a_coordinator_is_found_from_any_address_and_remembered() -> None:
    async with scripted(3) as brokers:
        away, asked, coordinator = brokers
        await away.stop()
        asked.coordinator_of["billing"] = coordinator
        async with client_of(away, asked, random=Random(0)) as client:
            for offset in (1, 2, 3):
                await client.commit("billing", {ORDERS: offset})

            assert len(asked.of(FindCoordinatorRequest)) == 1
            assert len(coordinator.of(OffsetCommitRequest)) == 3


async def test_clients_with_one_list_begin_at_different_addresses() -> None:
    async with scripted(3) as brokers:
        for seed in range(20):
            async with client_of(*brokers, random=Random(seed)) as client:
                await client.fetch("billing")

        assert all(broker.of(FindCoordinatorRequest) for broker in brokers)


@pytest.mark.parametrize("code", [Code.NOT_COORDINATOR, Code.COORDINATOR_NOT_AVAILABLE, Code.REQUEST_TIMED_OUT])
async def test_a_coordinator_that_moved_is_followed(code: Code) -> None:
    async with scripted(2) as [old, new], client_of(old) as client:
        await client.commit("billing", {ORDERS: 1})
        old.coordinator_of["billing"] = new
        old.then(OFFSET_COMMIT, code)
        await client.commit("billing", {ORDERS: 2})

        assert (len(old.of(OffsetCommitRequest)), len(new.of(OffsetCommitRequest))) == (2, 1)
        assert old.table["billing", "orders", 0][0] == 2

        old.coordinator_of.clear()
        new.then(OFFSET_FETCH, code)
        found = await client.fetch("billing", [ORDERS])

        assert found[ORDERS].offset == 2
        assert (len(old.of(OffsetFetchRequest)), len(new.of(OffsetFetchRequest))) == (1, 1)


async def test_a_coordinator_that_dies_is_looked_for_again() -> None:
    async with scripted(3) as [asked, old, new]:
        asked.coordinator_of["billing"] = old
        async with client_of(asked) as client:
            await client.commit("billing", {ORDERS: 1})
            await old.stop()
            asked.coordinator_of["billing"] = new
            await client.commit("billing", {ORDERS: 2})

            assert len(new.of(OffsetCommitRequest)) == 1


async def test_a_coordinator_that_loads_is_waited_for_where_it_is() -> None:
    async with scripted() as [broker]:
        pauses: list[float] = []

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)

        broker.then(OFFSET_COMMIT, *[Code.COORDINATOR_LOAD_IN_PROGRESS] * 4)
        async with client_of(broker, sleep=sleep) as client:
            await client.commit("billing", {ORDERS: 1})

            assert len(pauses) == 4
            assert len(broker.of(FindCoordinatorRequest)) == 1
            assert broker.table["billing", "orders", 0][0] == 1


async def test_a_broker_that_does_not_know_the_coordinator_is_not_the_only_one_asked() -> None:
    async with scripted(2) as [ignorant, other]:
        ignorant.then(FIND_COORDINATOR, *[Code.COORDINATOR_NOT_AVAILABLE] * 9)
        async with client_of(ignorant, other) as client:
            await client.commit("billing", {ORDERS: 1})

            assert len(ignorant.of(FindCoordinatorRequest)) <= 1
            assert len(other.of(FindCoordinatorRequest)) == 1


async def test_a_group_that_may_not_be_looked_for_is_said_at_once() -> None:
    async with scripted() as [broker]:
        broker.then(FIND_COORDINATOR, Code.GROUP_AUTHORIZATION_FAILED)
        async with client_of(broker) as client:
            with pytest.raises(NotAuthorized, match="allow this user to read the group") as caught:
                await client.fetch("billing")

        assert (caught.value.group, caught.value.code) == ("billing", Code.GROUP_AUTHORIZATION_FAILED)
        assert len(broker.seen) == 1


async def test_a_code_of_tomorrow_is_final_and_named_by_its_number() -> None:
    async with scripted() as [broker]:
        row = broker._coordinator("billing")._replace(error_code=999)
        broker.then(FIND_COORDINATOR, FindCoordinatorResponse(coordinators=(row,)))
        async with client_of(broker) as client:
            with pytest.raises(Refused, match="refused with 999"):
                await client.fetch("billing")


async def test_an_answer_that_leaves_the_group_out_is_asked_for_again() -> None:
    async with scripted() as [broker]:
        broker.then(FIND_COORDINATOR, FindCoordinatorResponse())
        async with client_of(broker) as client:
            assert await client.fetch("billing") == {}
            assert len(broker.of(FindCoordinatorRequest)) == 2


async def test_time_runs_out_while_everybody_loads() -> None:
    async with scripted() as [broker]:
        broker.then(OFFSET_FETCH, *[Code.COORDINATOR_LOAD_IN_PROGRESS] * 100_000)
        async with client_of(broker) as client:
            with pytest.raises(Unavailable, match="answered 14 COORDINATOR_LOAD_IN_PROGRESS") as caught:
                await client.fetch("billing", timeout_s=0.5)

        assert not caught.value.outcome_unknown
