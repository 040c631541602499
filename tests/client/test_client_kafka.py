"""The client against a real Apache Kafka: the same calls, the same words."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator

import pytest

from offsetd.bench.kafka import KafkaProcess
from offsetd.client import (
    Client,
    Committed,
    Fenced,
    PartitionsRefused,
    Range,
    Sticky,
    Timing,
    TopicPartition,
    WhiteList,
)
from protocol.errors import Code
from tests.client.scripted import WAIT_SECONDS
from tests.conformance.peers import LIBRARIES, is_brought

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif("OFFSETD_CONFORMANCE" not in os.environ, reason="OFFSETD_CONFORMANCE asks for a real Kafka"),
    pytest.mark.skipif(not is_brought(), reason="Kafka's jars are not there"),
]

TIMING = Timing(heartbeat_interval_s=0.1, topics_refresh_s=0.1)
ORDERS = TopicPartition("orders", 0)
#: As many as the peer gives to a topic that is asked for.
PARTITIONS = 10


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Kafka of one node."""
    kafka = KafkaProcess(LIBRARIES, tmp_path_factory.mktemp("kafka"))
    try:
        yield f"127.0.0.1:{kafka.port}"
    finally:
        kafka.kill()


async def test_members_share_a_topic_and_commit_as_its_owners(address: str) -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        Client(address) as client,
        Client(address) as other,
        client.member("shared", ["orders"], timing=TIMING) as first,
        other.member("shared", WhiteList("ord.*"), assignors=[Sticky(), Range()], timing=TIMING) as second,
    ):
        while (len(first.partitions), len(second.partitions)) != (PARTITIONS // 2, PARTITIONS // 2):
            await asyncio.sleep(0.01)
        await first.commit({first.partitions[0]: Committed(5, "note", 3)})

        assert Counter((*first.partitions, *second.partitions)) == Counter(
            TopicPartition("orders", number) for number in range(PARTITIONS)
        )
        assert await other.fetch("shared") == {first.partitions[0]: Committed(5, "note", 3)}


async def test_a_static_member_comes_back_and_fences_the_one_before(address: str) -> None:
    async with Client(address) as client:
        older = client.member("static", ["orders"], instance_id="one", timing=TIMING)
        older.start()
        await older.assigned()
        async with client.member("static", ["orders"], instance_id="one", timing=TIMING) as newer:
            await newer.assigned()

            with pytest.raises(Fenced):
                await older.ended()
            assert older.partitions == ()


async def test_offsets_are_committed_fetched_and_deleted(address: str) -> None:
    async with Client(address) as client, client.member("makes the topic", ["orders"], timing=TIMING) as member:
        async with asyncio.timeout(WAIT_SECONDS):
            while not member.partitions:
                await asyncio.sleep(0.01)
        with pytest.raises(PartitionsRefused) as caught:
            await client.commit("simple", {ORDERS: 5, ("orders", 1): 6, ("orders", PARTITIONS): 7})

        assert caught.value.refused == {("orders", PARTITIONS): Code.UNKNOWN_TOPIC_OR_PARTITION}
        await client.delete("simple", [("orders", 1)])
        assert await client.fetch_groups({"simple": None, "nobody": None}) == {
            "simple": {ORDERS: Committed(5)},
            "nobody": {},
        }
