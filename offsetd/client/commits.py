"""Committing offsets: all callers of one group share its requests.

While a commit of a group is on its way, further ones wait, and then become one request of the newest offsets. Newest
means asked for last, not largest: an application may go back. One request of a group is under way at a time, so none
overtakes another, and each caller hears when its own offset, or a newer one of the same partition, is durable.

A commit whose outcome is unknown (the connection was lost behind it, or the broker answered REQUEST_TIMED_OUT) is made
again: the same offset twice is the same as once. A newer offset that has come in the meantime goes in its place.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from offsetd.client.address import Address
from offsetd.client.connections import Connections
from offsetd.client.discovery import Discovery
from offsetd.client.errors import (
    ClientError,
    Closed,
    PartitionsRefused,
    Unavailable,
    concerns_group,
    refusal,
)
from offsetd.client.limits import Limits
from offsetd.client.persistence import Persistence
from offsetd.client.position import Committed, TopicPartition
from offsetd.client.transient import Busy, ConnectionFailed, Transient, is_transient, moved
from protocol.errors import Code
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

ACTION: Final = "committing offsets"
#: Partition, offset, leader epoch and lengths of one row; the topic's name is counted with every row, which is safe.
_ROW_BYTES: Final = 24


class Identity(NamedTuple):
    """As whom a commit is made."""

    member_id: str
    generation: int
    instance_id: str | None


#: Somebody outside the group, which is how offsets are committed that no membership guards.
NOBODY: Final = Identity(member_id="", generation=-1, instance_id=None)


class _Caller:
    """One call of `commit`: what of it is not durable yet, and who waits for it."""

    __slots__ = ("done", "identity", "last", "left", "refused", "sent", "size_bytes", "under_way")

    def __init__(self, identity: Identity, offsets: dict[TopicPartition, Committed]) -> None:
        self.identity = identity
        self.left = offsets
        self.refused: dict[TopicPartition, int] = {}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.last: Transient | None = None
        # Whether a broker may have done it: by an earlier request, or by the one under way.
        self.sent = self.under_way = False
        self.size_bytes = sum(
            _ROW_BYTES + len(partition.topic) + 3 * len(committed.metadata) for partition, committed in offsets.items()
        )

    def fail(self, error: BaseException) -> None:
        """End the call with an error, unless it has ended."""
        if not self.done.done():
            self.done.set_exception(error)

    def settle(self, group: str) -> None:
        """End the call if nothing of it is left."""
        if self.left or self.done.done():
            return
        if self.refused:
            self.done.set_exception(PartitionsRefused(action=ACTION, group=group, refused=self.refused))
        else:
            self.done.set_result(None)


class Commits:
    """The commits of all groups of a client."""

    def __init__(
        self, *, discovery: Discovery, connections: Connections, persistence: Persistence, limits: Limits
    ) -> None:
        self._discovery = discovery
        self._connections = connections
        self._persistence = persistence
        self._limits = limits
        self._callers: dict[str, list[_Caller]] = {}
        self._flights: dict[str, asyncio.Task[None]] = {}

    async def commit(
        self,
        group: str,
        offsets: dict[TopicPartition, Committed],
        *,
        identity: Identity = NOBODY,
        timeout_s: float | None = None,
    ) -> None:
        """Return when every offset, or a newer one of its partition, is durable.

        Raises:
            Unavailable: that could not be had in time; it may have happened nevertheless.
            Refused: the broker does not take it.
        """
        if not offsets:
            return
        caller = _Caller(identity, offsets)
        self._callers.setdefault(group, []).append(caller)
        flight = self._flights.get(group)
        if flight is None or flight.done():
            flight = self._flights[group] = asyncio.create_task(self._fly(group))
            flight.add_done_callback(lambda task: self._landed(group, task))
        total_s = self._persistence.timeout_s(timeout_s)
        try:
            async with asyncio.timeout(total_s):
                await caller.done
        except TimeoutError:
            # The wait has cancelled the future, and so the next request goes without it.
            sent = caller.sent or caller.under_way
            raise Unavailable(
                action=ACTION, group=group, timeout_s=total_s, last=caller.last, sent=sent
            ) from caller.last

    async def close(self) -> None:
        """End all requests under way; whoever waits for them is told."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    # --- flights ----------------------------------------------------------------------------------------------------

    async def _fly(self, group: str) -> None:
        """Send requests for a group until nobody waits."""
        backoff = self._persistence.backoff()
        while batch := self._next_batch(group):
            try:
                await self._send(group, batch)
                backoff.reset()
            except Transient as error:
                for caller in batch:
                    caller.last = error
                    caller.sent = caller.sent or error.sent
                    caller.under_way = False
                await self._persistence.sleep(backoff.next_s())
            except ClientError as error:
                for caller in batch:
                    caller.fail(error)

    def _landed(self, group: str, flight: "asyncio.Task[None]") -> None:
        """Take note of a flight's end; callers that it left behind were overtaken by `close`, or by a fault of ours."""
        if self._flights.get(group) is flight:
            del self._flights[group]
            error = None if flight.cancelled() else flight.exception()
            for caller in self._callers.pop(group, ()):
                caller.fail(error or Closed())

    def _next_batch(self, group: str) -> list[_Caller]:
        """Return the callers of the next request: those who came first and commit as the same member."""
        waiting = [caller for caller in self._callers[group] if not caller.done.done()]
        self._callers[group] = waiting
        batch: list[_Caller] = []
        size_bytes = 0
        for caller in waiting:
            size_bytes += caller.size_bytes
            if batch and (caller.identity != batch[0].identity or size_bytes > self._limits.commit_bytes_max):
                break
            batch.append(caller)
        return batch

    async def _send(self, group: str, batch: list[_Caller]) -> None:
        address = await self._discovery.coordinator(group)
        offsets = {partition: committed for caller in batch for partition, committed in caller.left.items()}
        try:
            connection = await self._connections.get(address)
            for caller in batch:
                caller.under_way = True
            reply = await connection.call(_request(group, batch[0].identity, offsets), OffsetCommitResponse)
        except ConnectionFailed:
            self._discovery.forget(group, address)
            raise
        codes = _read(reply, offsets, address)
        for code in codes.values():
            if concerns_group(code):
                raise refusal(action=ACTION, group=group, code=code)
        _take(codes, batch, group)
        again = [code for code in codes.values() if is_transient(code)]
        if any(moved(code) for code in again):
            self._discovery.forget(group, address)
        if again:
            raise Busy(address=address, code=again[0])


def _request(group: str, identity: Identity, offsets: dict[TopicPartition, Committed]) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), committed in offsets.items():
        row = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )
        topics.setdefault(topic, []).append(row)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=tuple(OffsetCommitRequestTopic(name=topic, partitions=tuple(rows)) for topic, rows in topics.items()),
    )


def _read(reply: OffsetCommitResponse, sent: Iterable[TopicPartition], address: Address) -> dict[TopicPartition, int]:
    """Return the code of each partition that was sent; a reply that leaves one out settles nothing."""
    codes = {
        TopicPartition(topic.name, row.partition_index): row.error_code
        for topic in reply.topics
        for row in topic.partitions
    }
    try:
        return {partition: codes[partition] for partition in sent}
    except KeyError as error:
        reason = f"a reply that leaves out {error.args[0]}"
        raise ConnectionFailed(address=address, reason=reason, sent=True) from None


def _take(codes: dict[TopicPartition, int], batch: list[_Caller], group: str) -> None:
    """Tell callers what became of their offsets."""
    for partition, code in codes.items():
        if is_transient(code):
            continue
        owners = [caller for caller in batch if partition in caller.left]
        # Only the newest was sent. If it was refused for its own metadata, the others' have not been tried.
        for caller in owners[-1:] if code == Code.OFFSET_METADATA_TOO_LARGE else owners:
            del caller.left[partition]
            if code != Code.NONE:
                caller.refused[partition] = code
    for caller in batch:
        caller.settle(group)
