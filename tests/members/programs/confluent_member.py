"""A member of a group in confluent-kafka, which is librdkafka."""

import json
import sys
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients.program import Row, serve
from tests.members.programs.polled import Polled

_POLL_SECONDS = 0.05
#: How long librdkafka may go on trying; it has no wait without an end.
_TIMEOUT_SECONDS = 60
#: What librdkafka says where a group has no offset.
_NO_OFFSET = -1001


class ConfluentMember:
    """One subscribed consumer."""

    def __init__(self, address: str, options: dict[str, Any]) -> None:
        settings = {
            "bootstrap.servers": address,
            "client.id": options["client_id"],
            "group.id": options["group"],
            "group.protocol": options["protocol"],
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "fetch.wait.max.ms": 100,
        }
        if options["protocol"] == "classic":
            # The newer protocol leaves these to the broker.
            settings |= {
                "partition.assignment.strategy": options["assignor"],
                "session.timeout.ms": options["session_ms"],
                "heartbeat.interval.ms": options["heartbeat_ms"],
            }
        if options["instance"] is not None:
            settings["group.instance.id"] = options["instance"]
        self._consumer = Consumer(settings)
        self._admin = AdminClient({"bootstrap.servers": address})
        self._polled = Polled(self._poll, self._consumer.assignment)
        self._consumer.subscribe(options["topics"], on_assign=lambda *_: self._polled.assigned())
        self._polled.start()

    def _poll(self) -> None:
        message = self._consumer.poll(_POLL_SECONDS)
        # Any other error is the library's own business: it tries again.
        if message is not None and message.error().code() == KafkaError._FATAL:
            raise KafkaException(message.error())

    def look(self) -> dict[str, Any]:
        """Tell how it is."""
        return self._polled.look()

    def commit(self, rows: list[Row]) -> None:
        """Commit offsets as a member."""
        offsets = [TopicPartition(*row) for row in rows]
        found = self._polled.call(lambda: self._consumer.commit(offsets=offsets, asynchronous=False))
        assert all(one.error is None for one in found), found

    def committed(self, rows: list[Row]) -> list[Row]:
        """Read offsets; none where the client says so."""
        asked = [TopicPartition(*row) for row in rows]
        found = self._polled.call(lambda: self._consumer.committed(asked, timeout=_TIMEOUT_SECONDS))
        assert all(one.error is None for one in found), found
        return [[one.topic, one.partition, None if one.offset == _NO_OFFSET else one.offset] for one in found]

    # --- what an administrator does -----------------------------------------------------------------------------

    def groups(self) -> list[str]:
        """List all groups."""
        found = self._admin.list_consumer_groups().result()
        assert found.errors == [], found.errors
        return [group.group_id for group in found.valid]

    def describe(self, group: str) -> dict[str, Any]:
        """Tell a group's state, and what each client of it owns."""
        found = self._admin.describe_consumer_groups([group])[group].result()
        owned = {
            member.client_id: [[one.topic, one.partition] for one in member.assignment.topic_partitions]
            for member in found.members
        }
        return {"state": found.state.name.lower(), "owned": owned}

    def reset(self, group: str, rows: list[Row]) -> None:
        """Set a group's offsets."""
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(*row) for row in rows])
        (future,) = self._admin.alter_consumer_group_offsets([wanted]).values()
        found = future.result().topic_partitions
        assert all(one.error is None for one in found), found

    def delete(self, group: str) -> None:
        """Delete a group."""
        self._admin.delete_consumer_groups([group])[group].result()

    def close(self) -> None:
        """Leave the group."""
        self._polled.end(self._consumer.close)


if __name__ == "__main__":
    serve(ConfluentMember(sys.argv[1], json.loads(sys.argv[2])))
