"""Sticky: as even as can be, and among the even plans one that moves few partitions.

Everybody first keeps what it had. What nobody has goes to whoever has least. Then, while somebody has two more than a
member it could hand one on to, directly or through others who read the same topics, one is handed on. When no such
chain is left, no plan is more even (Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs and load
balancing). Streams do not count here: they would be moved for the sake of a share.
"""

from collections.abc import Iterable, Iterator

from offsetd.client.assignment.plan import Candidate, PartitionCounts, Plan, partitions_of
from offsetd.client.position import TopicPartition


class Sticky:
    """Even, with the fewest moves."""

    name = "sticky"
    remembers = True

    def assign(self, candidates: Iterable[Candidate], counts: PartitionCounts) -> Plan:
        """Give every partition to exactly one reader of its topic."""
        return _Table(sorted(candidates, key=lambda each: each.rank), counts).plan()


class _Table:
    """Who has what, and who could have it."""

    def __init__(self, members: list[Candidate], counts: PartitionCounts) -> None:
        self._readers: dict[str, list[str]] = {}
        # What each member has, by topic; the dictionaries keep the order, so the same question has the same answer.
        self._owned: dict[str, dict[str, list[TopicPartition]]] = {}
        self._loads: dict[str, int] = {}
        for member in members:
            self._owned[member.member_id] = {}
            self._loads[member.member_id] = 0
            for topic in sorted(member.topics):
                self._readers.setdefault(topic, []).append(member.member_id)
        partitions = list(partitions_of(counts, members))
        self._kept = _claims(members, frozenset(partitions))
        for partition, member_id in self._kept.items():
            self._give(partition, member_id)
        for partition in partitions:
            if partition not in self._kept:
                self._give(partition, min(self._readers[partition.topic], key=self._loads.__getitem__))
        self._level()

    def plan(self) -> Plan:
        return {
            member_id: tuple(sorted(partition for rows in topics.values() for partition in rows))
            for member_id, topics in self._owned.items()
        }

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self._owned[member_id].setdefault(partition.topic, []).append(partition)
        self._loads[member_id] += 1

    def _level(self) -> None:
        """Hand partitions on until no chain makes the plan more even."""
        # From a settled member no chain leads to one that has two less; nor from whomever it could hand on to.
        settled: set[str] = set()
        while len(settled) < len(self._loads):
            source = max((each for each in self._loads if each not in settled), key=self._loads.__getitem__)
            came_from = self._search(source, settled)
            target = next(reversed(came_from))
            if self._loads[target] > self._loads[source] - 2:
                settled |= came_from.keys()
                continue
            while target != source:
                giver, topic = came_from[target]
                self._hand_on(topic, giver, target)
                target = giver

    def _search(self, source: str, settled: set[str]) -> dict[str, tuple[str, str]]:
        """Find, by the fewest hands, a member that has at least two less: the last of those that were reached.

        Each comes with the one before it in the chain, and the topic that would be handed on.
        """
        reached: dict[str, tuple[str, str]] = {source: ("", "")}
        topics: set[str] = set()
        row = [source]
        while row:
            found: list[str] = []
            for giver, topic in self._hands(row, topics):
                for reader in self._readers[topic]:
                    if reader not in reached and reader not in settled:
                        reached[reader] = (giver, topic)
                        found.append(reader)
            if found:
                least = min(found, key=self._loads.__getitem__)
                if self._loads[least] <= self._loads[source] - 2:
                    reached[least] = reached.pop(least)
                    break
            row = found
        return reached

    def _hands(self, row: list[str], seen: set[str]) -> Iterator[tuple[str, str]]:
        """Yield who of a row could hand on which topic, each topic once."""
        for giver in row:
            for topic, partitions in self._owned[giver].items():
                if partitions and topic not in seen:
                    seen.add(topic)
                    yield giver, topic

    def _hand_on(self, topic: str, giver: str, taker: str) -> None:
        rows = self._owned[giver][topic]
        # One that comes back to where it was, or was new here anyway, is no move at all.
        free = (each for each in rows if self._kept.get(each) in {None, taker})
        partition = next(free, rows[-1])
        rows.remove(partition)
        self._loads[giver] -= 1
        self._give(partition, taker)


def _claims(members: list[Candidate], partitions: frozenset[TopicPartition]) -> dict[TopicPartition, str]:
    """Return who may keep what: of two who claim a partition, the one of the newer generation; of equals, neither."""
    best: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        for partition in dict.fromkeys(member.owned):
            if partition not in partitions or partition.topic not in member.topics:
                continue
            generation, _ = best.get(partition, (-2, ""))
            if member.owned_generation > generation:
                best[partition] = (member.owned_generation, member.member_id)
            elif member.owned_generation == generation:
                best[partition] = (generation, "")
    return {partition: best[partition][1] for partition in sorted(best) if best[partition][1]}
