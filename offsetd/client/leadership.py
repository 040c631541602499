"""What the leader of a generation does for everybody: read what the members said, assign, and write it down. Pure."""

from collections.abc import Iterable

from offsetd.client.assignment.plan import Assignor, Candidate, PartitionCounts
from offsetd.client.consumer_protocol import read_subscription, write_assignment
from protocol.join_group import JoinGroupResponseMember


def candidates_of(assignor: Assignor, members: Iterable[JoinGroupResponseMember]) -> list[Candidate]:
    """Return the members as the assignor takes them; one that cannot be understood reads nothing."""
    found = []
    for member in members:
        said = read_subscription(member.metadata, sticky=assignor.remembers)
        found.append(
            Candidate(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                topics=said.topics,
                streams=said.streams,
                owned=said.owned,
                owned_generation=said.generation,
            )
        )
    return found


def topics_of(candidates: Iterable[Candidate]) -> frozenset[str]:
    """Return the topics that somebody reads."""
    return frozenset(topic for candidate in candidates for topic in candidate.topics)


def assignments_of(assignor: Assignor, candidates: list[Candidate], counts: PartitionCounts) -> dict[str, bytes]:
    """Return everybody's part."""
    plan = assignor.assign(candidates, counts)
    return {member_id: write_assignment(partitions) for member_id, partitions in plan.items()}
