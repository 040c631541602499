"""Round robin: all partitions of all topics are dealt out in turn, so that members differ by one at most.

Where members read different topics, those who do not read a partition's topic are passed over, as in Kafka's clients.
"""

from collections.abc import Iterable

from offsetd.client.assignment.plan import Candidate, Draft, PartitionCounts, Plan, partitions_of


class RoundRobin:
    """One partition to each stream in turn."""

    name = "roundrobin"
    remembers = False

    def assign(self, candidates: Iterable[Candidate], counts: PartitionCounts) -> Plan:
        """Give every partition to exactly one reader of its topic."""
        members = sorted(candidates, key=lambda each: each.rank)
        draft = Draft.of(members)
        circle = [member for member in members for _ in range(member.streams)]
        turn = 0
        for partition in partitions_of(counts, members):
            while partition.topic not in circle[turn % len(circle)].topics:
                turn += 1
            draft.owned[circle[turn % len(circle)].member_id].append(partition)
            turn += 1
        return draft.plan()
