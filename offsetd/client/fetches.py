"""Reading committed offsets: of one group or of many, of some partitions or of all.

An error is never read as "no offset": whatever the broker could not answer is asked again, or raised.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from offsetd.client.address import Address
from offsetd.client.connections import Connections
from offsetd.client.discovery import GROUPS_PER_REQUEST_MAX, Discovery
from offsetd.client.errors import refusal
from offsetd.client.position import Committed, TopicPartition, checked_partitions
from offsetd.client.transient import Busy, ConnectionFailed, Transient, is_transient, moved
from protocol.errors import Code
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

ACTION = "fetching offsets"
_NO_OFFSET = -1

#: What is asked for: partitions by group, None for all that have an offset.
Asked: TypeAlias = Mapping[str, tuple[TopicPartition, ...] | None]


class Fetch:
    """One call: what was asked for, and what has been found so far."""

    def __init__(self, asked: Mapping[str, Iterable[tuple[str, int]] | None]) -> None:
        self._asked: Asked = {
            group: None if partitions is None else checked_partitions(partitions) for group, partitions in asked.items()
        }
        self._found: dict[str, dict[TopicPartition, Committed]] = {}

    async def attempt(
        self, discovery: Discovery, connections: Connections
    ) -> dict[str, dict[TopicPartition, Committed]]:
        """Ask every coordinator for its groups at once, leaving out what an earlier attempt has found.

        Raises:
            Transient: some of them could not answer.
            Refused: a group may not be read.
        """
        missing = [group for group in self._asked if group not in self._found]
        by_address: dict[Address, list[str]] = {}
        for group, address in (await discovery.coordinators(missing)).items():
            by_address.setdefault(address, []).append(group)
        outcomes = await asyncio.gather(
            *(
                self._ask(discovery, connections, address, groups[start : start + GROUPS_PER_REQUEST_MAX])
                for address, groups in by_address.items()
                for start in range(0, len(groups), GROUPS_PER_REQUEST_MAX)
            ),
            return_exceptions=True,
        )
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        # What is final is said before anything is tried again.
        for failure in sorted(failures, key=lambda each: isinstance(each, Transient)):
            raise failure
        return {group: self._found[group] for group in self._asked}

    async def _ask(self, discovery: Discovery, connections: Connections, address: Address, groups: list[str]) -> None:
        request = OffsetFetchRequest(groups=tuple(_request_group(group, self._asked[group]) for group in groups))
        try:
            connection = await connections.get(address)
            reply = await connection.call(request, OffsetFetchResponse)
        except ConnectionFailed:
            for group in groups:
                discovery.forget(group, address)
            raise
        rows = {row.group_id: row for row in reply.groups}
        failed: Transient | None = None
        for group in groups:
            try:
                self._found[group] = _read(group, self._asked[group], rows.get(group), address)
            except Transient as error:
                failed = error
                if not isinstance(error, Busy) or moved(error.code):
                    discovery.forget(group, address)
        if failed is not None:
            raise failed


def _request_group(group: str, partitions: tuple[TopicPartition, ...] | None) -> OffsetFetchRequestGroup:
    if partitions is None:
        return OffsetFetchRequestGroup(group_id=group, topics=None)
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return OffsetFetchRequestGroup(
        group_id=group,
        topics=tuple(
            OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(numbers)) for topic, numbers in topics.items()
        ),
    )


def _read(
    group: str,
    partitions: tuple[TopicPartition, ...] | None,
    row: OffsetFetchResponseGroup | None,
    address: Address,
) -> dict[TopicPartition, Committed]:
    """Return the offsets of one group that a reply shows; partitions without one are left out."""
    if row is None:
        raise ConnectionFailed(address=address, reason=f"a reply that leaves out group {group!r}", sent=False)
    rows = {TopicPartition(topic.name, each.partition_index): each for topic in row.topics for each in topic.partitions}
    codes = [row.error_code, *(each.error_code for each in rows.values())]
    for code in codes:
        if code != Code.NONE and not is_transient(code):
            raise refusal(action=ACTION, group=group, code=code)
    for code in codes:
        if code != Code.NONE:
            raise Busy(address=address, code=code)
    if not all(partition in rows for partition in partitions or ()):
        raise ConnectionFailed(address=address, reason="a reply that leaves out partitions", sent=False)
    return {
        partition: Committed(each.committed_offset, each.metadata or "", each.committed_leader_epoch)
        for partition, each in rows.items()
        if each.committed_offset != _NO_OFFSET
    }
