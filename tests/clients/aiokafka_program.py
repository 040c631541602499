"""aiokafka as a client process."""

import asyncio
import sys
import time
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import OffsetAndMetadata

from tests.clients.program import Row, serve


class AioKafka:
    """A consumer for each group, and one admin client; all are made when they are first wanted."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._consumers: dict[str, Any] = {}
        self._admin_client: Any = None

    async def _consumer(self, group: str) -> Any:
        if group not in self._consumers:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._address,
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=100,
            )
            await consumer.start()
            self._consumers[group] = consumer
        return self._consumers[group]

    async def _admin(self) -> Any:
        if self._admin_client is None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
            await admin.start()
            self._admin_client = admin
        return self._admin_client

    async def commit(self, group: str, rows: list[Row]) -> None:
        """Commit as a consumer that assigned its partitions itself."""
        consumer = await self._consumer(group)
        partitions = {TopicPartition(topic, partition) for topic, partition, *_ in rows}
        # An assignment that replaces another one while the broker is away ends the library's own coordination task.
        if consumer.assignment() != partitions:
            consumer.assign(partitions)
        await consumer.commit(
            {
                TopicPartition(topic, partition): OffsetAndMetadata(offset, metadata)
                for topic, partition, offset, metadata in rows
            }
        )

    async def committed(self, group: str, rows: list[Row]) -> list[Row]:
        """Read offsets; none where the client says so."""
        consumer = await self._consumer(group)
        return [[*row, await consumer.committed(TopicPartition(*row))] for row in rows]

    async def commit_position(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Go to an offset and commit where the consumer stands."""
        consumer = await self._consumer(group)
        consumer.assign([TopicPartition(topic, partition)])
        consumer.seek(TopicPartition(topic, partition), offset)
        await consumer.commit()

    async def position(self, group: str, topic: str, partition: int) -> int:
        """Return where a fresh assignment starts."""
        consumer = await self._consumer(group)
        consumer.assign([TopicPartition(topic, partition)])
        found: int = await consumer.position(TopicPartition(topic, partition))
        return found

    async def poll(self, group: str, rows: list[Row], seconds: float) -> dict[str, Any]:
        """Poll for a while; return how many records came and how long it took."""
        consumer = await self._consumer(group)
        consumer.assign([TopicPartition(*row) for row in rows])
        began = time.monotonic()
        records = 0
        while (left := began + seconds - time.monotonic()) > 0:
            records += sum(map(len, (await consumer.getmany(timeout_ms=int(left * 1000) + 1)).values()))
        return {"records": records, "errors": [], "seconds": time.monotonic() - began}

    async def start_at(self, group: str, topic: str, partition: int, where: str) -> int:
        """Go to the `beginning` or the `end` of a partition and return where that is."""
        consumer = await self._consumer(group)
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        await getattr(consumer, f"seek_to_{where}")(place)
        found: int = await consumer.position(place)
        return found

    async def offset_at(self, group: str, topic: str, partition: int, time_ms: int) -> int | None:
        """Return the first offset at or after a time."""
        place = TopicPartition(topic, partition)
        found = (await (await self._consumer(group)).offsets_for_times({place: time_ms}))[place]
        return None if found is None else int(found.offset)

    async def ends(self, group: str, rows: list[Row]) -> list[Row]:
        """Return the first and the last offset of partitions."""
        consumer = await self._consumer(group)
        partitions = [TopicPartition(*row) for row in rows]
        first, last = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        return [[*row, first[partition], last[partition]] for row, partition in zip(rows, partitions, strict=True)]

    async def topics(self) -> dict[str, int]:
        """Return the number of partitions of each topic."""
        admin = await self._admin()
        return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}

    async def cluster(self) -> dict[str, Any]:
        """Describe the cluster."""
        found = await (await self._admin()).describe_cluster()
        brokers = [[broker["node_id"], broker["host"], broker["port"]] for broker in found["brokers"]]
        return {"id": found["cluster_id"], "controller": found["controller_id"], "brokers": brokers}

    async def group_offsets(self, asked: dict[str, list[Row] | None]) -> dict[str, list[Row]]:
        """Read the offsets of groups as an administrator, of all their topics where none are named."""
        admin = await self._admin()
        answer = {}
        for group, rows in asked.items():
            wanted = None if rows is None else [TopicPartition(*row) for row in rows]
            found = await admin.list_consumer_group_offsets(group, partitions=wanted)
            answer[group] = [[*place, one.offset, one.metadata] for place, one in found.items()]
        return answer

    async def close(self) -> None:
        """Leave in order."""
        for consumer in self._consumers.values():
            # Stopped while it rests from a failed Fetch, the library lets its own cancellation out.
            with suppress(asyncio.CancelledError):
                await consumer.stop()
        if self._admin_client is not None:
            await self._admin_client.close()


if __name__ == "__main__":
    serve(AioKafka(sys.argv[1]))
