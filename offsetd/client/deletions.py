"""Deleting single offsets of a group."""

from collections.abc import Iterable
from typing import Final

from offsetd.client.connections import Connections
from offsetd.client.discovery import Discovery
from offsetd.client.errors import PartitionsRefused, refusal
from offsetd.client.position import TopicPartition, checked_partitions
from offsetd.client.transient import Busy, ConnectionFailed, is_transient, moved
from protocol.errors import Code
from protocol.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

ACTION: Final = "deleting offsets"


class Deletion:
    """One call. Deleting twice is the same as once, so it is tried again like a commit."""

    def __init__(self, group: str, partitions: Iterable[tuple[str, int]]) -> None:
        self._group = group
        self._partitions = checked_partitions(partitions)
        self._maybe_done = False

    async def attempt(self, discovery: Discovery, connections: Connections) -> None:
        """Ask the coordinator once.

        Raises:
            Transient: it could not.
            Refused: it does not.
        """
        group = self._group
        address = await discovery.coordinator(group)
        try:
            connection = await connections.get(address)
            reply = await connection.call(self._request(), OffsetDeleteResponse)
        except ConnectionFailed as error:
            discovery.forget(group, address)
            self._maybe_done = self._maybe_done or error.sent
            raise
        if is_transient(reply.error_code):
            self._maybe_done = self._maybe_done or reply.error_code == Code.REQUEST_TIMED_OUT
            if moved(reply.error_code):
                discovery.forget(group, address)
            raise Busy(address=address, code=reply.error_code)
        if reply.error_code == Code.GROUP_ID_NOT_FOUND and self._maybe_done:
            # The attempt before took the group's last offsets, and the group with them.
            return
        if reply.error_code != Code.NONE:
            raise refusal(action=ACTION, group=group, code=reply.error_code)
        self._check(reply)

    def _request(self) -> OffsetDeleteRequest:
        topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for topic, partition in self._partitions:
            topics.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=partition))
        return OffsetDeleteRequest(
            group_id=self._group,
            topics=tuple(
                OffsetDeleteRequestTopic(name=topic, partitions=tuple(rows)) for topic, rows in topics.items()
            ),
        )

    def _check(self, reply: OffsetDeleteResponse) -> None:
        refused = {
            TopicPartition(topic.name, row.partition_index): row.error_code
            for topic in reply.topics
            for row in topic.partitions
            if row.error_code != Code.NONE
        }
        if refused:
            raise PartitionsRefused(action=ACTION, group=self._group, refused=refused)
