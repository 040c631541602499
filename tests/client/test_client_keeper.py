"""Keepers: what is committed when, and what becomes of it when something fails."""

import logging

import pytest

from offsetd.client import AtLeastOnce, AtMostOnce, ExactlyOnce, Keeper, NotAuthorized, Refused
from protocol.errors import Code
from protocol.offset_commit import OffsetCommitRequest
from tests.client.scripted import OFFSET_COMMIT, Hold, client_of, committed, scripted

ORDERS, BILLS = ("orders", 0), ("bills", 7)


class Failed(Exception):
    """What a block of the application fails with."""


async def test_at_most_once_commits_before_the_block() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        async with client.keep(AtMostOnce, "billing").processing({ORDERS: 5}):
            assert broker.table["billing", "orders", 0][0] == 5

        assert len(broker.of(OffsetCommitRequest)) == 1


async def test_at_most_once_does_not_run_the_block_when_the_commit_fails() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_COMMIT, Code.UNKNOWN_SERVER_ERROR)
        with pytest.raises(Refused):
            async with client.keep(AtMostOnce, "billing").processing({ORDERS: 5}):
                pytest.fail("the block was run")


async def test_at_least_once_commits_behind_the_block() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        async with client.keep(AtLeastOnce, "billing").processing({ORDERS: 5}):
            assert broker.table == {}

        assert broker.table["billing", "orders", 0][0] == 5


@pytest.mark.parametrize("discipline", [AtLeastOnce, ExactlyOnce])
async def test_a_block_that_fails_is_not_taken_for_processed(discipline: type[Keeper]) -> None:
    async with scripted() as [broker], client_of(broker) as client:
        with pytest.raises(Failed):
            async with client.keep(discipline, "billing") as keeper, keeper.processing({ORDERS: 5}):
                raise Failed

        assert broker.table == {}


async def test_positions_go_on_where_they_were_or_where_the_application_begins() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.table["billing", "orders", 0] = (42, "", -1)
        found = await client.keep(AtLeastOnce, "billing", first_offset=7).resume([ORDERS, BILLS])

        assert {partition: each.offset for partition, each in found.items()} == {ORDERS: 42, BILLS: 7}


async def test_exactly_once_waits_for_nobody_and_tells_the_newest() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold = Hold()
        broker.then(OFFSET_COMMIT, hold)
        async with client.keep(ExactlyOnce, "billing") as keeper:
            async with keeper.processing({ORDERS: 1}):
                pass
            await hold.arrived.wait()
            for offset in range(2, 50):
                async with keeper.processing({ORDERS: offset, BILLS: offset}):
                    pass
            hold.release.set()

        assert [committed(request) for request in broker.of(OffsetCommitRequest)] == [
            {ORDERS: 1},
            {ORDERS: 49, BILLS: 49},
        ]


async def test_exactly_once_takes_the_larger_truth_and_tells_the_broker_what_it_missed() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.table["billing", "orders", 0] = (40, "", -1)
        broker.table["billing", "bills", 7] = (60, "", -1)
        async with client.keep(ExactlyOnce, "billing") as keeper:
            found = await keeper.resume({ORDERS: 45, BILLS: 50, ("new", 0): None})

        assert {partition: each.offset for partition, each in found.items()} == {ORDERS: 45, BILLS: 60, ("new", 0): 0}
        assert [committed(request) for request in broker.of(OffsetCommitRequest)] == [{ORDERS: 45}]


async def test_exactly_once_needs_to_know_what_was_stored() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        with pytest.raises(TypeError, match="a mapping of partitions to offsets or None"):
            await client.keep(ExactlyOnce, "billing").resume([ORDERS])


async def test_a_broker_that_could_not_be_told_is_told_with_the_next_block(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_COMMIT, Code.GROUP_AUTHORIZATION_FAILED)
        async with client.keep(ExactlyOnce, "billing") as keeper:
            with caplog.at_level(logging.WARNING):
                async with keeper.processing({ORDERS: 1}):
                    pass
                assert keeper._telling is not None
                await keeper._telling
            async with keeper.processing({BILLS: 2}):
                pass

        assert broker.table == {("billing", "orders", 0): (1, "", -1), ("billing", "bills", 7): (2, "", -1)}
        assert "the broker was not told of offsets that are stored" in caplog.text


async def test_closing_says_when_the_broker_could_not_be_told() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_COMMIT, *[Code.GROUP_AUTHORIZATION_FAILED] * 2)
        keeper = client.keep(ExactlyOnce, "billing")
        async with keeper.processing({ORDERS: 1}):
            pass

        with pytest.raises(NotAuthorized):
            await keeper.close()
        # Whoever may again is told by the next.
        await keeper.close()
        assert broker.table == {("billing", "orders", 0): (1, "", -1)}
