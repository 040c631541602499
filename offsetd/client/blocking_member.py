"""A member of a group for programs without a loop. Its callbacks run in a thread of their own, one at a time."""

import asyncio
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeAlias, TypeVar

from offsetd.client.blocking_keeper import BlockingKeeper
from offsetd.client.errors import ClientError, Closed
from offsetd.client.keeper import Keeper
from offsetd.client.loop_thread import LoopThread
from offsetd.client.member import Member
from offsetd.client.member_options import Callback, Partitions
from offsetd.client.position import Committed, Offsets, TopicPartition

K = TypeVar("K", bound=Keeper)
#: Told which partitions a member got or lost; may make blocking calls.
BlockingCallback: TypeAlias = Callable[[Partitions], None]


def ignore(_: Partitions) -> None:
    """Do nothing about it."""


class CallbackThread:
    """Where a member's callbacks run: not on the loop, which goes on sending heartbeats meanwhile."""

    def __init__(self) -> None:
        # Made now: when the interpreter ends no thread can be made any more, and one callback is still to come.
        self.loop = LoopThread("offsetd-callbacks")

    def wrap(self, function: BlockingCallback) -> Callback:
        """Return a callback for the loop that waits for a function in this thread."""

        async def call(partitions: Partitions) -> None:
            async def run() -> None:
                function(partitions)

            await asyncio.wrap_future(self.loop.submit(run()))

        return call

    def stop(self) -> None:
        """End the thread."""

        async def nothing() -> None:
            pass

        self.loop.stop(nothing)


class BlockingMember:
    """`Member`, in a ``with`` block."""

    def __init__(self, loop: LoopThread, callbacks: CallbackThread, member: Member) -> None:
        self._loop = loop
        self._callbacks = callbacks
        self._member = member
        self._finalizer = weakref.finalize(self, _abandon, loop, callbacks, member)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ClientError:
            # What the block failed with is nearer to the cause.
            if error is None:
                raise

    def start(self) -> None:
        """Begin to join."""

        async def start() -> None:
            self._member.start()

        self._loop.run(start())

    def close(self) -> None:
        """Let go of the partitions, by `on_revoked`, and leave the group; see `Member.close`."""
        if self._callbacks.loop.is_here:
            raise RuntimeError("a callback cannot close its member, which waits for the callback")
        if self._finalizer.detach() is None:
            return
        try:
            # The client may have been closed before, and its members with it.
            with suppress(Closed):
                self._loop.run(self._member.close())
        finally:
            self._callbacks.stop()

    @property
    def partitions(self) -> Partitions:
        """The partitions that this member owns now."""
        return self._member.partitions

    @property
    def streams(self) -> tuple[Partitions, ...]:
        """The partitions of each of its streams."""
        return self._member.streams

    def assigned(self, *, timeout_s: float | None = None) -> Partitions:
        """Wait until this member owns partitions, or is idle; see `Member.assigned`."""
        return self._loop.run(self._member.assigned(timeout_s=timeout_s))

    def ended(self) -> None:
        """Wait until this member has ended, by `close` or by an error, which is raised."""
        self._loop.run(self._member.ended())

    def commit(self, offsets: Offsets, *, timeout_s: float | None = None) -> None:
        """Commit as the owner of partitions; see `Member.commit`."""
        self._loop.run(self._member.commit(offsets, timeout_s=timeout_s))

    def fetch(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets of the group; see `Client.fetch`."""
        return self._loop.run(self._member.fetch(partitions, timeout_s=timeout_s))

    def keep(self, discipline: type[K], *, first_offset: int = 0) -> BlockingKeeper[K]:
        """Return a keeper of positions that commits as this member."""
        return BlockingKeeper(self._loop, discipline(self._member, first_offset=first_offset))


def _abandon(loop: LoopThread, callbacks: CallbackThread, member: Member) -> None:
    """Close a member that nobody refers to, or whose interpreter ends; nobody is left to hear of its errors."""
    # A process that was forked has no loop to close it on, and no membership of its own.
    with suppress(ClientError, RuntimeError):
        loop.run(member.close())
    callbacks.stop()
