"""What an assignor is given and what it returns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from offsetd.client.position import TopicPartition

#: Partitions by member; every member of the group is in it, idle ones with none.
Plan: TypeAlias = dict[str, tuple[TopicPartition, ...]]
#: How many partitions each topic has.
PartitionCounts: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A member as the leader sees it."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    streams: int = 1
    """How many readers work side by side in it."""
    owned: tuple[TopicPartition, ...] = ()
    """What it had before, as it says itself."""
    owned_generation: int = -1
    """In which generation it had that; the newer word counts where two members claim a partition."""

    @property
    def rank(self) -> tuple[bool, str]:
        """Where it stands among the members: static ones first, by a name that survives a restart, as in Kafka."""
        return (self.instance_id is None, self.member_id if self.instance_id is None else self.instance_id)


class Assignor(Protocol):
    """A way of assigning that members of a group agree on by its name."""

    @property
    def name(self) -> str:
        """How it is called in every library that knows it."""

    @property
    def remembers(self) -> bool:
        """Whether members tell it what they had, in Kafka's words for it; if not, they tell their streams."""

    def assign(self, candidates: Iterable[Candidate], counts: PartitionCounts) -> Plan:
        """Give every partition of every topic that somebody reads to exactly one of its readers."""


@dataclass(slots=True)
class Draft:
    """A plan under construction."""

    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> "Draft":
        """Begin with nobody owning anything."""
        return cls({candidate.member_id: [] for candidate in candidates})

    def plan(self) -> Plan:
        """Return it, with the partitions of each member in order."""
        return {member_id: tuple(sorted(partitions)) for member_id, partitions in self.owned.items()}


def readers_of(topic: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the members that read a topic, in their order."""
    return sorted((each for each in candidates if topic in each.topics), key=lambda each: each.rank)


def partitions_of(counts: PartitionCounts, candidates: Iterable[Candidate]) -> Iterator[TopicPartition]:
    """Yield the partitions of the topics that somebody reads, in order."""
    wanted = {topic for candidate in candidates for topic in candidate.topics}
    for topic in sorted(wanted):
        for number in range(counts.get(topic, 0)):
            yield TopicPartition(topic, number)
