"""A member of a group in aiokafka."""

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from tests.clients.program import Row, serve

_ASSIGNORS = {RangePartitionAssignor.name: RangePartitionAssignor}


class AioKafkaMember(ConsumerRebalanceListener):  # type: ignore[misc]
    """One subscribed consumer."""

    def __init__(self, address: str, options: dict[str, Any]) -> None:
        self._assignments = 0
        self._error: str | None = None
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=address,
            client_id=options["client_id"],
            group_id=options["group"],
            group_instance_id=options["instance"],
            partition_assignment_strategy=(_ASSIGNORS[options["assignor"]],),
            session_timeout_ms=options["session_ms"],
            heartbeat_interval_ms=options["heartbeat_ms"],
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
        )
        self._consumer.subscribe(options["topics"], listener=self)
        self._polling = asyncio.create_task(self._poll())

    @classmethod
    async def made(cls, address: str, options: dict[str, Any]) -> "AioKafkaMember":
        """Make it on the loop that it lives on."""
        return cls(address, options)

    async def on_partitions_revoked(self, revoked: object) -> None:
        """Nothing is kept of them."""

    async def on_partitions_assigned(self, assigned: object) -> None:
        """Count."""
        self._assignments += 1

    async def _poll(self) -> None:
        try:
            # Returns when the group has taken it in.
            await self._consumer.start()
            while True:
                await self._consumer.getmany(timeout_ms=1000)
        except Exception as error:  # noqa: BLE001  whatever the library raises is what the test wants to see
            self._error = f"{type(error).__name__}: {error}"

    def look(self) -> dict[str, Any]:
        """Tell what it owns, how often it was assigned partitions, and the error that ended it."""
        owned = sorted([one.topic, one.partition] for one in self._consumer.assignment())
        return {"owned": owned, "assignments": self._assignments, "error": self._error}

    async def commit(self, rows: list[Row]) -> None:
        """Commit offsets as a member."""
        await self._consumer.commit({TopicPartition(*place): offset for *place, offset in rows})

    async def committed(self, rows: list[Row]) -> list[Row]:
        """Read offsets; none where the client says so."""
        return [[*row, await self._consumer.committed(TopicPartition(*row))] for row in rows]

    async def close(self) -> None:
        """Leave the group."""
        self._polling.cancel()
        with suppress(asyncio.CancelledError):
            await self._polling
        # Stopped while it rests from a failed Fetch, the library lets its own cancellation out.
        with suppress(asyncio.CancelledError):
            await self._consumer.stop()


if __name__ == "__main__":
    serve(AioKafkaMember.made(sys.argv[1], json.loads(sys.argv[2])))
