"""A member of a group: gets partitions, loses them, and commits as their owner.

It lives in a task of its own, from its start to `close`: join, hold what was assigned, let go of it, join again. What
the application is told, it is told by callbacks, one at a time; heartbeats go on meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar

from offsetd.client.assignment.plan import Assignor
from offsetd.client.assignment.range import split
from offsetd.client.commits import ACTION, Commits, Identity
from offsetd.client.connections import Connections
from offsetd.client.consumer_protocol import STREAMS_MAX
from offsetd.client.discovery import Discovery
from offsetd.client.errors import (
    ClientError,
    Closed,
    Fenced,
    MembershipLost,
    RebalanceInProgress,
    Unavailable,
    refusal,
)
from offsetd.client.generations import Generations
from offsetd.client.group import Group
from offsetd.client.member_options import Callback, Callbacks, Partitions, Timing
from offsetd.client.membership import MEMBERSHIP, Membership, Rejoin
from offsetd.client.persistence import Persistence
from offsetd.client.position import Committed, Offsets, TopicPartition, checked_offsets
from offsetd.client.topic_filter import Topics
from offsetd.client.transient import Transient
from protocol.errors import Code

T = TypeVar("T")

_LEAVE_SECONDS_MAX: Final = 5.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _End:
    """Why a member does not hold its partitions any longer."""

    reason: str
    lost: bool = False
    failure: ClientError | None = None


class Member:
    """A member, from `start` to `close`."""

    def __init__(
        self,
        group: Group,
        topics: Topics,
        *,
        assignors: Sequence[Assignor],
        instance_id: str | None,
        streams: int,
        callbacks: Callbacks,
        timing: Timing,
        discovery: Discovery,
        connections: Connections,
        commits: Commits,
        persistence: Persistence,
    ) -> None:
        if not 1 <= streams <= STREAMS_MAX:
            raise ValueError(f"streams is {streams}, want 1..{STREAMS_MAX}")
        if not assignors:
            raise ValueError("a member needs an assignor that it can agree on with the others")
        self._group = group
        self._streams = streams
        self._callbacks = callbacks
        self._timing = timing
        self._connections = connections
        self._commits = commits
        self._persistence = persistence
        self._membership = Membership(
            group.group,
            instance_id=instance_id,
            session_timeout_s=timing.session_timeout_s,
            rebalance_timeout_s=timing.rebalance_timeout_s,
            discovery=discovery,
            connections=connections,
        )
        self._generations = Generations(
            self._membership, discovery=discovery, topics=topics, assignors=assignors, streams=streams
        )
        self._life: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        # What it holds now, and as whom; and, when it is decided, why no longer.
        self._holding = asyncio.Event()
        self._partitions: Partitions = ()
        self._identity: Identity | None = None
        self._over: asyncio.Future[_End] | None = None
        self._trouble: Transient | None = None

    # --- for the application ----------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except ClientError:
            # What the block failed with is nearer to the cause.
            if error is None:
                raise

    def start(self) -> None:
        """Begin to join."""
        if self._life is None:
            self._life = asyncio.create_task(self._live())

    async def close(self) -> None:
        """Let go of the partitions, by `on_revoked`, and leave the group.

        Raises:
            ClientError: what ended this member before.
        """
        if asyncio.current_task() is self._life:
            raise RuntimeError("a callback cannot close its member, which waits for the callback")
        self._closing.set()
        self._end(_End("the application closed it"))
        if self._life is not None:
            await asyncio.shield(self._life)

    @property
    def partitions(self) -> Partitions:
        """The partitions that this member owns now."""
        return self._partitions

    @property
    def streams(self) -> tuple[Partitions, ...]:
        """The partitions of each of its streams."""
        return split(self._partitions, self._streams)

    async def assigned(self, *, timeout_s: float | None = None) -> Partitions:
        """Wait until this member owns partitions, or is idle in a group that has fewer than members; return them.

        Raises:
            Unavailable: that was not so in time.
            ClientError: what ended this member.
        """
        life = self._running()
        total_s = self._persistence.timeout_s(timeout_s)
        holding = asyncio.create_task(self._holding.wait())
        try:
            await asyncio.wait({holding, life}, timeout=total_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            holding.cancel()
        self._running()
        if not self._holding.is_set():
            raise Unavailable(
                action=MEMBERSHIP, group=self._group.group, timeout_s=total_s, last=self._trouble, sent=False
            ) from self._trouble
        return self._partitions

    async def ended(self) -> None:
        """Wait until this member has ended, by `close` or by an error, which is raised."""
        await asyncio.shield(self._started())

    async def commit(self, offsets: Offsets, *, timeout_s: float | None = None) -> None:
        """Commit as the owner of partitions; see `Client.commit`.

        Raises:
            MembershipLost: this member is not what it was, and nothing was written. It joins again by itself.
            ClientError: as `Client.commit`, and what ended this member.
        """
        checked = checked_offsets(offsets)
        self._running()
        identity = self._identity
        if identity is None:
            raise refusal(action=ACTION, group=self._group.group, code=Code.REBALANCE_IN_PROGRESS)
        try:
            await self._commits.commit(self._group.group, checked, identity=identity, timeout_s=timeout_s)
        except MembershipLost as error:
            if identity == self._identity:
                self._take(error)
            raise

    async def fetch(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets of the group; see `Client.fetch`."""
        return await self._group.fetch(partitions, timeout_s=timeout_s)

    # --- its life ---------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        backoff = self._persistence.backoff()
        reason = "the application started it"
        fenced = False
        try:
            while not self._closing.is_set():
                try:
                    if not await self._unless_closing(self._join(reason)):
                        break
                    backoff.reset()
                except (Rejoin, Transient) as error:
                    self._trouble = error if isinstance(error, Transient) else self._trouble
                    logger.info("group %r is joined again: %s", self._group.group, error)
                    await self._unless_closing(self._persistence.sleep(backoff.next_s()))
                else:
                    reason = await self._hold()
        except Fenced:
            fenced = True
            raise
        finally:
            await self._leave(fenced=fenced)

    async def _join(self, reason: str) -> bool:
        """Join a generation and learn its partitions."""
        self._partitions = await self._generations.join(reason)
        self._identity = self._membership.identity
        return True

    async def _hold(self) -> str:
        """Own the partitions of a generation until it is over; return why it is."""
        self._over = asyncio.get_running_loop().create_future()
        partitions = self._partitions
        background = [asyncio.create_task(self._beat()), asyncio.create_task(self._watch())]
        try:
            if self._closing.is_set():
                self._end(_End("the application closed it"))
            await self._tell(self._callbacks.on_assigned, partitions)
            self._holding.set()
            end = await self._over
            self._holding.clear()
            if end.lost:
                self._identity = None
            if partitions:
                await self._tell(self._callbacks.on_lost if end.lost else self._callbacks.on_revoked, partitions)
        finally:
            self._identity, self._partitions = None, ()
            self._holding.clear()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
        if end.failure is not None:
            raise end.failure
        return end.reason

    async def _tell(self, callback: Callback, partitions: Partitions) -> None:
        """Call back. A commit in there that came too late ends the generation, and not the member."""
        try:
            await callback(partitions)
        except Fenced:
            raise
        except MembershipLost as error:
            logger.warning("a callback of a member came too late: %s", error)

    async def _leave(self, *, fenced: bool) -> None:
        try:
            async with asyncio.timeout(_LEAVE_SECONDS_MAX):
                if not fenced:
                    await self._membership.leave()
        except (Transient, ClientError, TimeoutError) as error:
            # Its session ends by itself.
            logger.info("group %r was left without a word: %s", self._group.group, error)
        finally:
            await self._connections.close()

    # --- beside it --------------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Send heartbeats; also while the application lets go, for until then this is still a member."""
        backoff = self._persistence.backoff()
        pause_s = self._timing.heartbeat_interval_s
        while True:
            await self._persistence.sleep(pause_s)
            pause_s = self._timing.heartbeat_interval_s
            try:
                await self._membership.heartbeat()
                backoff.reset()
            except Rejoin as error:
                self._end(_End(str(error), lost=error.lost))
                if error.lost:
                    return
            except Transient as error:
                self._trouble = error
                pause_s = min(pause_s, backoff.next_s())
            except ClientError as error:
                self._end(_End(str(error), lost=True, failure=error))
                return

    async def _watch(self) -> None:
        """Look for topics and partitions that came or went."""
        while True:
            await self._persistence.sleep(self._timing.topics_refresh_s)
            try:
                reason = await self._generations.reason_for_another()
                if reason is not None:
                    self._end(_End(reason))
            except Transient as error:
                self._trouble = error

    def _take(self, error: MembershipLost) -> None:
        """Learn from a refused commit."""
        if isinstance(error, Fenced):
            self._end(_End(str(error), lost=True, failure=error))
        elif isinstance(error, RebalanceInProgress):
            self._end(_End(error.code.name))
        else:
            self._membership.forget(error.code)
            self._end(_End(error.code.name, lost=True))

    def _end(self, end: _End) -> None:
        """End the generation; the first reason counts."""
        if self._over is not None and not self._over.done():
            self._over.set_result(end)

    def _started(self) -> "asyncio.Task[None]":
        if self._life is None:
            raise RuntimeError("the member was not started: use it in a with block, or call start")
        return self._life

    def _running(self) -> "asyncio.Task[None]":
        """Return its life, which goes on: if not, raise what ended it."""
        life = self._started()
        if life.done():
            life.result()
            raise Closed
        return life

    async def _unless_closing(self, work: Awaitable[T]) -> T | None:
        """Do something that may take long, but not longer than the application wants this member."""
        task = asyncio.ensure_future(work)
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait({task, closing}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            # A request that the coordinator holds has nobody left to be answered, and would hold up the last one.
            await self._connections.drop()
            return None
        finally:
            closing.cancel()
            task.cancel()
            await asyncio.gather(closing, task, return_exceptions=True)
