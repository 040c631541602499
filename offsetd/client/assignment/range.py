"""Range, as the older high-level consumer assigned, and as Kafka's clients do since.

Topic by topic, partitions and readers are put in order, and each reader takes a run of neighbouring partitions; the
first ones take one more each where it does not come out even. A member counts as many times as it has streams.
"""

from collections.abc import Iterable
from itertools import pairwise

from offsetd.client.assignment.plan import Candidate, Draft, PartitionCounts, Plan, readers_of
from offsetd.client.position import TopicPartition


class Range:
    """Neighbouring partitions of each topic to each reader: 4 partitions and 3 members give 2, 1, 1."""

    name = "range"
    remembers = False

    def assign(self, candidates: Iterable[Candidate], counts: PartitionCounts) -> Plan:
        """Give every partition to exactly one reader of its topic."""
        members = list(candidates)
        draft = Draft.of(members)
        for topic in sorted({topic for member in members for topic in member.topics}):
            streams = [each.member_id for each in readers_of(topic, members) for _ in range(each.streams)]
            for member_id, (start, stop) in zip(streams, cut(counts.get(topic, 0), len(streams)), strict=True):
                draft.owned[member_id] += (TopicPartition(topic, number) for number in range(start, stop))
        return draft.plan()


def cut(count: int, parts: int) -> list[tuple[int, int]]:
    """Cut a row of so many things into neighbouring parts, the first ones longer by one where it does not come out."""
    least, longer = divmod(count, parts)
    starts = [least * number + min(number, longer) for number in range(parts + 1)]
    return list(pairwise(starts))


def split(partitions: Iterable[TopicPartition], streams: int) -> tuple[tuple[TopicPartition, ...], ...]:
    """Return which of a member's partitions each of its streams reads.

    A run that `Range` gave to a member comes apart here as it was counted there, so no other word is needed.
    """
    topics: dict[str, list[TopicPartition]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition)
    found: list[list[TopicPartition]] = [[] for _ in range(streams)]
    for rows in topics.values():
        for stream, (start, stop) in zip(found, cut(len(rows), streams), strict=True):
            stream.extend(rows[start:stop])
    return tuple(tuple(stream) for stream in found)
