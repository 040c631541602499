"""Who belongs to a group: members by id, static members by instance, ids that were given out; and what they agree on.

When anything of it changes is the membership's business.
"""

from collections import Counter

from offsetd.coordinator.member import Member, excess_of
from offsetd.coordinator.slot import java_hash
from offsetd.coordinator.subscription import subscribed_topics
from offsetd.record import GenerationMember
from protocol.errors import Code


class Roster:
    """The members of one group, in the order in which they came."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.leader: str | None = None
        # Ids that were given out and have not joined yet, with the moment at which they are forgotten.
        self.pending: dict[str, int] = {}
        # Joined, and have not asked for their part yet.
        self.unsynced: set[str] = set()
        self._static: dict[str, str] = {}
        # How many members support each protocol: what all of them do is asked for at every join.
        self._supporters: Counter[str] = Counter()
        # How many joins are held.
        self.waiting = 0
        # By how many bytes the members say more than members usually do.
        self.excess_bytes = 0

    def __len__(self) -> int:
        return len(self.members)

    def add(self, member: Member) -> None:
        """Take a member in; the first one leads."""
        self.pending.pop(member.member_id, None)
        self.members[member.member_id] = member
        self.leader = self.leader or member.member_id
        self._support(member)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id

    def remove(self, member: Member) -> None:
        """Take a member out; if it led, the one that is there longest leads."""
        assert member.joining is None, "its join was answered before"
        del self.members[member.member_id]
        self._unsupport(member)
        self.unsynced.discard(member.member_id)
        if member.instance_id is not None:
            del self._static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member another id; its place among the members stays."""
        old = member.member_id
        self.members = {(member_id if known == old else known): each for known, each in self.members.items()}
        if old in self.unsynced:
            self.unsynced.remove(old)
            self.unsynced.add(member_id)
        if self.leader == old:
            self.leader = member_id
        assert member.instance_id is not None, "only a static member comes back under another id"
        self._static[member.instance_id] = member_id
        member.member_id = member_id

    def hold(self, member: Member, join: object) -> object | None:
        """Hold a member's join; return an older one that was held, for its answer."""
        older, member.joining = member.joining, join
        self.waiting += older is None
        return older

    def let_go(self, member: Member) -> object | None:
        """Return a member's join if one is held, for its answer."""
        held, member.joining = member.joining, None
        self.waiting -= held is not None
        return held

    def change_protocols(self, member: Member, protocols: tuple[tuple[str, bytes], ...]) -> None:
        """Take what a member that joins again supports now."""
        self._unsupport(member)
        member.protocols = protocols
        self._support(member)

    def _support(self, member: Member) -> None:
        self._supporters.update(name for name, _ in member.protocols)
        self.excess_bytes += excess_of(member.protocols)

    def _unsupport(self, member: Member) -> None:
        self.excess_bytes -= excess_of(member.protocols)
        for name, _ in member.protocols:
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]

    def static(self, instance_id: str) -> Member | None:
        """Return the member of an instance."""
        member_id = self._static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def refuse(self, member_id: str, instance_id: str | None) -> Code:
        """Tell why a request in somebody's name is refused, if it is: the instance is looked at first."""
        if instance_id is not None:
            known = self._static.get(instance_id)
            if known is None:
                return Code.UNKNOWN_MEMBER_ID
            return Code.NONE if known == member_id else Code.FENCED_INSTANCE_ID
        return Code.NONE if member_id in self.members else Code.UNKNOWN_MEMBER_ID

    def elect(self) -> bool:
        """Make somebody leader whose join is held; tell whether there is one."""
        joined = [each.member_id for each in self.members.values() if each.joining is not None]
        if joined and self.leader not in joined:
            self.leader = joined[0]
        return bool(joined)

    def all_joined(self) -> bool:
        """Tell whether a join phase has nobody more to wait for."""
        return not self.pending and self.waiting == len(self.members)

    def rebalance_timeout_ms(self) -> int:
        """Return the patience of the most patient member."""
        return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))

    def candidates(self) -> set[str]:
        """Return the protocols that every member supports."""
        return {name for name, supporters in self._supporters.items() if supporters == len(self.members)}

    def choose(self) -> str:
        """Return the protocol that most members like best; Kafka breaks a tie by the order of Java's hash table."""
        candidates = self.candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return min(votes, key=lambda name: (-votes[name], _bucket(name)))

    def subscribed(self, protocol: str | None) -> frozenset[str] | None:
        """Return all topics that the members, consumers, read; None if that cannot be told of one of them."""
        topics: set[str] = set()
        for member in self.members.values():
            read = subscribed_topics(member.metadata(protocol))
            if read is None:
                return None
            topics |= read
        return frozenset(topics)

    def rows(self, protocol: str | None, assignments: dict[str, bytes]) -> tuple[GenerationMember, ...]:
        """Return the members as the log keeps them."""
        return tuple(
            GenerationMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                metadata=member.metadata(protocol),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        )


def _bucket(name: str) -> int:
    spread = java_hash(name) & 0xFFFFFFFF
    return (spread ^ spread >> 16) & 15
