"""The client: one object for any number of groups, on the loop that made it."""

import asyncio
import weakref
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from ssl import SSLContext
from types import TracebackType
from typing import Self, TypeVar

from offsetd import __version__
from offsetd.client import deletions, fetches
from offsetd.client.address import Address, parse_bootstrap
from offsetd.client.assignment.plan import Assignor
from offsetd.client.assignment.range import Range
from offsetd.client.assignment.round_robin import RoundRobin
from offsetd.client.commits import Commits
from offsetd.client.connection import Connection, open_connection
from offsetd.client.connections import Connections
from offsetd.client.discovery import Discovery
from offsetd.client.errors import Closed
from offsetd.client.group import Group
from offsetd.client.keeper import Keeper
from offsetd.client.limits import Limits
from offsetd.client.member import Member
from offsetd.client.member_options import Callback, Callbacks, Timing, ignore
from offsetd.client.persistence import Persistence, Sleep
from offsetd.client.position import Committed, Offsets, TopicPartition, checked_offsets, checked_string
from offsetd.client.topic_filter import Topics

K = TypeVar("K", bound=Keeper)


class Client:
    """Commits, reads and deletes offsets, wherever the groups' coordinators are and move to.

    What passes by itself is tried again, with pauses, until the call's time limit; what does not is raised at once. The
    errors are in `offsetd.client.errors`.
    """

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        client_id: str = "offsetd-client",
        limits: Limits | None = None,
        ssl: SSLContext | None = None,
        random: Random | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Make a client; nothing is connected before the first call.

        Args:
            bootstrap: addresses of one or more brokers, as ``"one:9092,two:9092"`` or a list.
            client_id: how the broker's log and the group's description name this program.
            ssl: speak TLS to every broker; the context says whom to trust and who we are.
            random: draws the pauses between attempts.
            sleep: makes them.
        """
        self.limits = limits or Limits()
        self.client_id = checked_string(client_id, "client id")
        self._ssl = ssl
        self._random = random or Random()  # noqa: S311  # it spreads load and hides nothing
        self._connections = Connections(self._open)
        self._discovery = Discovery(parse_bootstrap(bootstrap), self._connections, random=self._random)
        self._persistence = Persistence(limits=self.limits, random=self._random, sleep=sleep)
        self._commits = Commits(
            discovery=self._discovery,
            connections=self._connections,
            persistence=self._persistence,
            limits=self.limits,
        )
        self._members: weakref.WeakSet[Member] = weakref.WeakSet()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let members leave, and close all connections. Calls that are still under way end with `Closed`."""
        await asyncio.gather(*(member.close() for member in list(self._members)), return_exceptions=True)
        self._closed = True
        await self._commits.close()
        await self._connections.close()

    # --- offsets ----------------------------------------------------------------------------------------------------

    async def commit(self, group: str, offsets: Offsets, *, timeout_s: float | None = None) -> None:
        """Return when every offset, or a newer one committed through this client, is durable.

        Calls for the same group that come while one is on its way share the next request.

        Args:
            offsets: by partition, each the offset of the record to read next, or a `Committed` with metadata.
            timeout_s: the time limit of this call, in place of `Limits.total_timeout_s`.

        Raises:
            Unavailable: it could not be had in time; `outcome_unknown` tells whether it may have happened.
            PartitionsRefused: some partitions were refused, the others are durable.
            Refused: the group was.
        """
        self._check(group)
        await self._commits.commit(group, checked_offsets(offsets), timeout_s=timeout_s)

    async def fetch(
        self, group: str, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets of a group; partitions without one are left out.

        Args:
            partitions: those to ask for; None for all that have an offset.

        Raises:
            Unavailable: nobody could answer in time. It is never taken for "no offset".
            Refused: the group may not be read.
        """
        return (await self.fetch_groups({group: partitions}, timeout_s=timeout_s))[group]

    async def fetch_groups(
        self, asked: Mapping[str, Iterable[tuple[str, int]] | None], *, timeout_s: float | None = None
    ) -> dict[str, dict[TopicPartition, Committed]]:
        """Return the committed offsets of several groups; as `fetch` for each, in as few requests as can be."""
        for group in asked:
            self._check(group)
        fetch = fetches.Fetch(asked)
        return await self._persistence.run(
            lambda: fetch.attempt(self._discovery, self._connections),
            action=fetches.ACTION,
            group=next(iter(asked)) if len(asked) == 1 else None,
            timeout_s=timeout_s,
        )

    async def delete(
        self, group: str, partitions: Iterable[tuple[str, int]], *, timeout_s: float | None = None
    ) -> None:
        """Delete the offsets of partitions; those that had none are none the worse for it.

        Raises:
            PartitionsRefused: members of the group read the topic; the other partitions' are deleted.
            Refused: there is no such group, or it may not be changed.
            Unavailable: as in `commit`.
        """
        self._check(group)
        deletion = deletions.Deletion(group, partitions)
        await self._persistence.run(
            lambda: deletion.attempt(self._discovery, self._connections),
            action=deletions.ACTION,
            group=group,
            changes=True,
            timeout_s=timeout_s,
        )

    def group(self, group: str) -> Group:
        """Return one group, whose offsets can then be committed and fetched without naming it."""
        return Group(self, group)

    def keep(self, discipline: type[K], group: str, *, first_offset: int = 0) -> K:
        """Return a keeper of positions: `AtMostOnce`, `AtLeastOnce` or `ExactlyOnce`.

        Args:
            first_offset: where a partition begins that nothing is known of.
        """
        return discipline(self.group(group), first_offset=first_offset)

    def member(
        self,
        group: str,
        topics: Topics,
        *,
        on_assigned: Callback = ignore,
        on_revoked: Callback = ignore,
        on_lost: Callback = ignore,
        assignors: Sequence[Assignor] = (Range(), RoundRobin()),
        instance_id: str | None = None,
        streams: int = 1,
        timing: Timing | None = None,
    ) -> Member:
        """Return a member of a group, which joins it in an ``async with`` block and leaves at its end.

        Args:
            topics: names, or a `WhiteList` or `BlackList`, which follow topics as they come and go.
            on_assigned: called with all partitions that it has now, which may be none.
            on_revoked: called before others get them: finish, and commit.
            on_lost: called when others may have them already: drop what is unfinished.
            assignors: what it can assign by, the best first; a group takes one that all its members know.
            instance_id: a name that survives restarts: back under it within its session, it keeps its partitions.
            streams: how many readers work side by side in it; range and round robin count each.
        """
        self._check(group)
        member = Member(
            self.group(group),
            topics,
            assignors=assignors,
            instance_id=instance_id,
            streams=streams,
            callbacks=Callbacks(on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost),
            timing=timing or Timing(),
            discovery=self._discovery,
            # A join that is held would hold up the replies to everything behind it.
            connections=Connections(self._open),
            commits=self._commits,
            persistence=self._persistence,
        )
        self._members.add(member)
        return member

    # --- inside -----------------------------------------------------------------------------------------------------

    async def _open(self, address: Address) -> Connection:
        return await open_connection(
            address, client_id=self.client_id, software_version=__version__, limits=self.limits, ssl=self._ssl
        )

    def _check(self, group: str) -> None:
        if self._closed:
            raise Closed
        checked_string(group, "group id")
