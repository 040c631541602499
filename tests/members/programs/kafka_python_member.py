"""A member of a group in kafka-python."""

import json
import sys
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata

from tests.clients.program import Row, serve
from tests.members.programs.polled import Polled

_POLL_MS = 50
_NO_EPOCH = -1
_ASSIGNORS = {assignor.name: assignor for assignor in (RangePartitionAssignor, CooperativeStickyAssignor)}


class KafkaPythonMember(ConsumerRebalanceListener):  # type: ignore[misc]
    """One subscribed consumer."""

    def __init__(self, address: str, options: dict[str, Any]) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=address,
            client_id=options["client_id"],
            group_id=options["group"],
            group_instance_id=options["instance"],
            partition_assignment_strategy=[_ASSIGNORS[options["assignor"]]],
            session_timeout_ms=options["session_ms"],
            heartbeat_interval_ms=options["heartbeat_ms"],
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
        )
        self._polled = Polled(self._poll, self._consumer.assignment)
        self._consumer.subscribe(options["topics"], listener=self)
        # Else a leader whose topics arrive only after it has assigned assigns once more, though nothing has changed.
        self._consumer.topics()
        self._polled.start()

    def on_partitions_revoked(self, revoked: object) -> None:
        """Nothing is kept of them."""

    def on_partitions_assigned(self, assigned: object) -> None:
        """Count."""
        self._polled.assigned()

    def _poll(self) -> None:
        self._consumer.poll(timeout_ms=_POLL_MS)

    def look(self) -> dict[str, Any]:
        """Tell how it is."""
        return self._polled.look()

    def commit(self, rows: list[Row]) -> None:
        """Commit offsets as a member."""
        offsets = {TopicPartition(*place): OffsetAndMetadata(offset, "", _NO_EPOCH) for *place, offset in rows}
        self._polled.call(lambda: self._consumer.commit(offsets))

    def committed(self, rows: list[Row]) -> list[Row]:
        """Read offsets; none where the client says so."""
        places = [TopicPartition(*row) for row in rows]
        found = self._polled.call(lambda: [self._consumer.committed(place) for place in places])
        return [[*row, offset] for row, offset in zip(rows, found, strict=True)]

    def close(self) -> None:
        """Leave the group."""
        self._polled.end(self._consumer.close)


if __name__ == "__main__":
    serve(KafkaPythonMember(sys.argv[1], json.loads(sys.argv[2])))
