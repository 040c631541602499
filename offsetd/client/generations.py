"""One generation of a group after another: what a member says to join it, and what it was assigned from.

When to join, and what to do with the partitions, is decided in `member`.
"""

from collections.abc import Sequence

from offsetd.client.assignment.plan import Assignor, PartitionCounts
from offsetd.client.consumer_protocol import read_assignment, write_sticky, write_streams, write_subscription
from offsetd.client.discovery import Discovery
from offsetd.client.leadership import assignments_of, candidates_of, topics_of
from offsetd.client.member_options import Partitions
from offsetd.client.membership import Joined, Membership
from offsetd.client.topic_filter import Topics, WhiteList
from offsetd.client.topics import chosen_topics, partition_counts


class Generations:
    """The generations that a member takes part in."""

    def __init__(
        self,
        membership: Membership,
        *,
        discovery: Discovery,
        topics: Topics,
        assignors: Sequence[Assignor],
        streams: int,
    ) -> None:
        self._membership = membership
        self._discovery = discovery
        self._topics: Topics = topics if isinstance(topics, WhiteList) else tuple(topics)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._streams = streams
        # What the member had last, for assignors that leave members what they had.
        self._had: Partitions = ()
        self._had_generation = -1
        # What the present generation was assigned from: the member's own topics, and, if it leads, everybody's.
        self._read: frozenset[str] = frozenset()
        self._group_read: frozenset[str] = frozenset()
        self._counts: PartitionCounts | None = None

    async def join(self, reason: str) -> Partitions:
        """Join the next generation and return the member's partitions; raises as `Membership.join` does."""
        self._read = await chosen_topics(self._discovery, self._topics)
        joined = await self._membership.join(self._protocols(), reason=reason)
        assignments = await self._assign(joined)
        self._had = read_assignment(await self._membership.sync(joined.protocol, assignments))
        self._had_generation = self._membership.identity.generation
        return self._had

    async def reason_for_another(self) -> str | None:
        """Return why there should be another generation: topics that came or went or, for the leader, partitions.

        Raises:
            Transient: nobody could say.
        """
        if await chosen_topics(self._discovery, self._topics) != self._read:
            return "its topics changed"
        if not self._group_read:
            return None
        before, self._counts = self._counts, await partition_counts(self._discovery, self._group_read)
        # A leader that was told to leave the assignment as it is has not counted yet.
        return None if before in (None, self._counts) else "its topics have other partitions"

    def _protocols(self) -> dict[str, bytes]:
        had = write_sticky(self._had, self._had_generation)
        streams = write_streams(self._streams)
        return {
            name: write_subscription(self._read, had if assignor.remembers else streams)
            for name, assignor in self._assignors.items()
        }

    async def _assign(self, joined: Joined) -> dict[str, bytes]:
        """Do the leader's work, if this is the leader."""
        self._counts = None
        self._group_read = self._read if joined.is_leader else frozenset()
        assignor = self._assignors.get(joined.protocol)
        if not joined.members or assignor is None:
            return {}
        candidates = candidates_of(assignor, joined.members)
        self._group_read = topics_of(candidates)
        self._counts = await partition_counts(self._discovery, self._group_read)
        return assignments_of(assignor, candidates, self._counts)
