"""Values that are odd but not malformed are answered as the protocol page says, and the connection stays."""

import struct
from typing import cast

import pytest

from protocol.api import OFFSET_COMMIT, OFFSET_FETCH
from protocol.errors import Code
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.offset_fetch import OffsetFetchResponse
from tests.fakes.wire import RawClient, commit_codes, commit_request, fetch_request, fetched_offsets
from tests.server.edge import Edge, edge

ORDERS = ("orders", 0)
LARGEST = (1 << 63) - 1


async def commit(world: Edge, client: RawClient, request: OffsetCommitRequest, *, kept: bool = True) -> list[int]:
    """Commit, settle what was accepted, and return the codes in the order of the reply."""
    client.send(request, 8)
    if kept:
        await world.settle_when(1)
    _, response = await client.receive(OffsetCommitResponse, 8)
    return [row.error_code for topic in response.topics for row in topic.partitions]


def commit_of(
    *rows: OffsetCommitRequestPartition, group: str = "billing", topic: str = "orders"
) -> OffsetCommitRequest:
    """Return a commit of hand-made rows."""
    return OffsetCommitRequest(group_id=group, topics=(OffsetCommitRequestTopic(name=topic, partitions=rows),))


@pytest.mark.parametrize("group", ["", "a" * 1024, "with\0nul", "with\nline", "naïve ✓ 日本", "../../etc/passwd"])
async def test_a_group_may_have_any_name_up_to_a_kibibyte(group: str) -> None:
    async with edge() as world, world.client() as client:
        codes = await commit(world, client, commit_request(group, {ORDERS: 5}))

        assert codes == [Code.NONE]
        assert await client.committed(group, [ORDERS]) == {ORDERS: 5}


@pytest.mark.parametrize("group", ["a" * 1025, "é" * 513, "a" * 32_767])
async def test_a_longer_group_is_refused(group: str) -> None:
    async with edge() as world, world.client() as client:
        codes = await commit(world, client, commit_request(group, {ORDERS: 5}), kept=False)

        assert codes == [Code.INVALID_GROUP_ID]
        assert not world.log.held
        assert len(world.peers) == 1


@pytest.mark.parametrize(
    "topic", ["", ".", "..", "a" * 250, "with space", "with\nline", "a/b", "\x1b[31mred", "ümlaut"]
)
async def test_a_topic_that_no_kafka_could_hold_is_refused(topic: str) -> None:
    async with edge() as world, world.client() as client:
        codes = await commit(world, client, commit_request("billing", {(topic, 0): 5}), kept=False)

        assert codes == [Code.INVALID_TOPIC_EXCEPTION]
        assert len(world.peers) == 1


async def test_bytes_that_are_no_utf8_are_replaced_as_kafka_does() -> None:
    async with edge() as world, world.client() as client:
        head = struct.pack(">hhih", OFFSET_COMMIT, 2, 7, -1)
        group = b"\xff\xfe\x80g"
        row = struct.pack(">iqh", 0, 5, -1)
        body = struct.pack(">h", len(group)) + group + struct.pack(">ihq", -1, 0, -1)
        client.send_frame(head + body + struct.pack(">ih6si", 1, 6, b"orders", 1) + row)
        await world.settle_when(1)
        await client.receive_frame()

        assert await client.committed("\ufffd\ufffd\ufffdg", [ORDERS]) == {ORDERS: 5}


@pytest.mark.parametrize("offset", [0, -1, -2, -(1 << 63), LARGEST])
@pytest.mark.parametrize("epoch", [-1, -2, 0, (1 << 31) - 1])
async def test_any_offset_and_leader_epoch_is_stored_and_returned_as_it_is(offset: int, epoch: int) -> None:
    async with edge() as world, world.client() as client:
        row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_leader_epoch=epoch)
        codes = await commit(world, client, commit_of(row))
        response = cast("OffsetFetchResponse", await client.call(fetch_request("billing", [ORDERS], 7), 7))
        (shown,) = response.topics[0].partitions

        assert codes == [Code.NONE]
        assert (shown.committed_offset, shown.committed_leader_epoch, shown.error_code) == (offset, epoch, Code.NONE)


async def test_partitions_may_be_large_but_not_negative() -> None:
    async with edge() as world, world.client() as client:
        rows = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=9) for index in (-1, 0, (1 << 31) - 1)
        ]
        client.send(commit_of(*rows), 8)
        await world.settle_when(1)
        _, response = await client.receive(OffsetCommitResponse, 8)
        shown = await client.committed("billing", None)

        assert commit_codes(response) == {
            ("orders", -1): Code.UNKNOWN_TOPIC_OR_PARTITION,
            ("orders", 0): Code.NONE,
            ("orders", (1 << 31) - 1): Code.NONE,
        }
        assert shown == {("orders", 0): 9, ("orders", (1 << 31) - 1): 9}


async def test_of_a_partition_named_twice_the_last_counts_and_both_are_answered() -> None:
    async with edge() as world, world.client() as client:
        rows = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset) for offset in (5, 6)]
        codes = await commit(world, client, commit_of(*rows))

        assert codes == [Code.NONE, Code.NONE]
        assert await client.committed("billing", [ORDERS]) == {ORDERS: 6}


async def test_metadata_that_is_too_long_is_refused_for_its_partition_alone() -> None:
    async with edge() as world, world.client() as client:
        texts = ["a" * 4096, "a" * 4097, None, "\0\x1b\n", "😀" * 2048, "😀" * 2049]
        rows = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=text)
            for index, text in enumerate(texts)
        ]
        codes = await commit(world, client, commit_of(*rows))
        response = cast("OffsetFetchResponse", await client.call(fetch_request("billing", None, 7), 7))
        shown = {row.partition_index: row.metadata for row in response.topics[0].partitions}

        large = Code.OFFSET_METADATA_TOO_LARGE
        assert codes == [Code.NONE, large, Code.NONE, Code.NONE, Code.NONE, large]
        assert shown == {0: texts[0], 2: "", 3: texts[3], 4: texts[4]}


async def test_a_commit_larger_than_an_entry_may_be_is_refused_whole_and_the_next_is_taken() -> None:
    async with edge() as world, world.client() as client:
        wide = {("orders", partition): 1 for partition in range(90_000)}
        codes = await commit(world, client, commit_request("billing", wide), kept=False)
        after = await commit(world, client, commit_request("billing", {ORDERS: 7}))

        assert set(codes) == {Code.UNKNOWN_SERVER_ERROR}
        assert after == [Code.NONE]
        assert await client.committed("billing", None) == {ORDERS: 7}


async def test_a_fetch_of_nothing_is_answered_with_nothing() -> None:
    async with edge() as world, world.client() as client:
        client.send_frame(struct.pack(">hhih", OFFSET_FETCH, 2, 7, -1) + struct.pack(">h7si", 7, b"billing", 0))
        client.send_frame(struct.pack(">hhih", OFFSET_FETCH, 2, 8, -1) + struct.pack(">h7si", 7, b"billing", -1))
        responses = [(await client.receive(OffsetFetchResponse, 2))[1] for _ in range(2)]

        assert [fetched_offsets(response) for response in responses] == [{}, {}]
        assert len(world.peers) == 1
