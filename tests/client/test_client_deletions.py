"""Deletions: single offsets, tried again like a commit."""

import pytest

from offsetd.client import PartitionsRefused, Refused
from protocol.errors import Code
from protocol.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tests.client.scripted import OFFSET_DELETE, Close, client_of, scripted

ORDERS, BILLS = ("orders", 0), ("bills", 7)


@pytest.mark.parametrize("act", [Code.COORDINATOR_LOAD_IN_PROGRESS, Code.NOT_COORDINATOR, Close(done=True)])
async def test_an_offset_is_deleted_whatever_passes_on_the_way(act: Code | Close) -> None:
    async with scripted() as [broker], client_of(broker) as client:
        await client.commit("billing", {ORDERS: 1, BILLS: 2})
        broker.then(OFFSET_DELETE, act)
        await client.delete("billing", [ORDERS])

        assert list(await client.fetch("billing")) == [BILLS]
        assert len(broker.of(OffsetDeleteRequest)) == 2


async def test_partitions_that_members_read_are_named() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        row = OffsetDeleteResponsePartition(partition_index=0, error_code=Code.GROUP_SUBSCRIBED_TO_TOPIC)
        topic = OffsetDeleteResponseTopic(name="orders", partitions=(row,))
        broker.then(OFFSET_DELETE, OffsetDeleteResponse(topics=(topic,)))
        with pytest.raises(PartitionsRefused, match="members of the group read the topic") as caught:
            await client.delete("billing", [ORDERS, BILLS])

        assert caught.value.refused == {ORDERS: Code.GROUP_SUBSCRIBED_TO_TOPIC}


async def test_a_group_that_is_not_there_is_said() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_DELETE, Code.GROUP_ID_NOT_FOUND)
        with pytest.raises(Refused, match="there is no such group"):
            await client.delete("billing", [ORDERS])


async def test_a_group_that_went_with_its_last_offset_was_deleted_by_us() -> None:
    """The answer to the first request was lost, and it had taken the group along."""
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_DELETE, Close(done=True), Code.GROUP_ID_NOT_FOUND)
        await client.delete("billing", [ORDERS])

        assert len(broker.of(OffsetDeleteRequest)) == 2
