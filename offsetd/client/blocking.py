"""The client for programs without a loop: the same methods, each of which returns when it is done.

One object may be used from any number of threads; commits of one group from all of them share requests. It is closed by
`close`, by the end of its `with` block, when nobody refers to it any more, or when the interpreter ends.
"""

import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from ssl import SSLContext
from types import TracebackType
from typing import Self, TypeVar

from offsetd.client.assignment.plan import Assignor
from offsetd.client.assignment.range import Range
from offsetd.client.assignment.round_robin import RoundRobin
from offsetd.client.blocking_keeper import BlockingKeeper
from offsetd.client.blocking_member import BlockingCallback, BlockingMember, CallbackThread, ignore
from offsetd.client.client import Client
from offsetd.client.errors import ClientError
from offsetd.client.keeper import Keeper
from offsetd.client.limits import Limits
from offsetd.client.loop_thread import LoopThread
from offsetd.client.member import Member
from offsetd.client.member_options import Timing
from offsetd.client.position import Committed, Offsets, TopicPartition
from offsetd.client.topic_filter import Topics

K = TypeVar("K", bound=Keeper)


class BlockingClient:
    """`Client`, with a loop in a thread of its own."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        client_id: str = "offsetd-client",
        limits: Limits | None = None,
        ssl: SSLContext | None = None,
    ) -> None:
        """Make a client; the arguments are those of `Client`."""
        self._client = Client(bootstrap, client_id=client_id, limits=limits, ssl=ssl)
        self._loop = LoopThread("offsetd-client")
        self._members: weakref.WeakSet[BlockingMember] = weakref.WeakSet()
        self._finalizer = weakref.finalize(self, self._loop.stop, self._client.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let members leave, close all connections and end the thread. Calls in other threads end with `Closed`."""
        for member in list(self._members):
            # What ended a member is that member's word, and was or will be said by it.
            with suppress(ClientError):
                member.close()
        self._finalizer()

    def commit(self, group: str, offsets: Offsets, *, timeout_s: float | None = None) -> None:
        """Return when every offset, or a newer one committed through this client, is durable; see `Client.commit`."""
        self._loop.run(self._client.commit(group, offsets, timeout_s=timeout_s))

    def fetch(
        self, group: str, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets of a group; see `Client.fetch`."""
        return self._loop.run(self._client.fetch(group, partitions, timeout_s=timeout_s))

    def fetch_groups(
        self, asked: Mapping[str, Iterable[tuple[str, int]] | None], *, timeout_s: float | None = None
    ) -> dict[str, dict[TopicPartition, Committed]]:
        """Return the committed offsets of several groups; see `Client.fetch_groups`."""
        return self._loop.run(self._client.fetch_groups(asked, timeout_s=timeout_s))

    def delete(self, group: str, partitions: Iterable[tuple[str, int]], *, timeout_s: float | None = None) -> None:
        """Delete the offsets of partitions; see `Client.delete`."""
        self._loop.run(self._client.delete(group, partitions, timeout_s=timeout_s))

    def keep(self, discipline: type[K], group: str, *, first_offset: int = 0) -> BlockingKeeper[K]:
        """Return a keeper of positions: `AtMostOnce`, `AtLeastOnce` or `ExactlyOnce`."""
        return BlockingKeeper(self._loop, self._client.keep(discipline, group, first_offset=first_offset))

    def member(
        self,
        group: str,
        topics: Topics,
        *,
        on_assigned: BlockingCallback = ignore,
        on_revoked: BlockingCallback = ignore,
        on_lost: BlockingCallback = ignore,
        assignors: Sequence[Assignor] = (Range(), RoundRobin()),
        instance_id: str | None = None,
        streams: int = 1,
        timing: Timing | None = None,
    ) -> BlockingMember:
        """Return a member of a group, which joins it in a ``with`` block and leaves at its end; see `Client.member`."""
        callbacks = CallbackThread()

        async def make() -> Member:
            return self._client.member(
                group,
                topics,
                on_assigned=callbacks.wrap(on_assigned),
                on_revoked=callbacks.wrap(on_revoked),
                on_lost=callbacks.wrap(on_lost),
                assignors=assignors,
                instance_id=instance_id,
                streams=streams,
                timing=timing,
            )

        try:
            member = BlockingMember(self._loop, callbacks, self._loop.run(make()))
        except BaseException:
            callbacks.stop()
            raise
        self._members.add(member)
        return member
