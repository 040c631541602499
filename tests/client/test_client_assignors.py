"""Assignors: the older consumer's examples, what Kafka's clients do, and what must hold for any group."""

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.client.assignment.plan import Assignor, Candidate, PartitionCounts, Plan
from offsetd.client.assignment.range import Range, split
from offsetd.client.assignment.round_robin import RoundRobin
from offsetd.client.assignment.sticky import Sticky
from offsetd.client.position import TopicPartition

steady = settings(derandomize=True, deadline=None, database=None, max_examples=80)
ASSIGNORS: list[Assignor] = [Range(), RoundRobin(), Sticky()]


def members(count: int, *topics: str, streams: int = 1) -> list[Candidate]:
    """Return members that read the same topics."""
    names = frozenset(topics or ("orders",))
    return [Candidate(member_id=f"m-{number}", topics=names, streams=streams) for number in range(count)]


def numbers(plan: Plan) -> list[list[int]]:
    """Return the partitions of each member by their numbers."""
    return [[partition.partition for partition in partitions] for partitions in plan.values()]


def loads(plan: Plan) -> list[int]:
    """Return how many partitions each member has."""
    return [len(partitions) for partitions in plan.values()]


def with_owned(candidates: Iterable[Candidate], plan: Plan, generation: int = 1) -> list[Candidate]:
    """Return members that have what a plan gave them."""
    return [
        replace(each, owned=plan.get(each.member_id, ()), owned_generation=generation if each.member_id in plan else -1)
        for each in candidates
    ]


# --- range ------------------------------------------------------------------------------------------------------------


def test_four_partitions_and_three_members_give_two_one_one() -> None:
    assert numbers(Range().assign(members(3), {"orders": 4})) == [[0, 1], [2], [3]]


def test_with_two_streams_each_they_give_two_two_none() -> None:
    plan = Range().assign(members(3, streams=2), {"orders": 4})

    assert numbers(plan) == [[0, 1], [2, 3], []]
    assert [[len(stream) for stream in split(part, 2)] for part in plan.values()] == [[1, 1], [1, 1], [0, 0]]


def test_more_members_than_partitions_leaves_some_idle() -> None:
    assert loads(Range().assign(members(5), {"orders": 3})) == [1, 1, 1, 0, 0]


def test_each_topic_begins_anew_with_the_first_member() -> None:
    assert loads(Range().assign(members(2, "a", "b", "c"), {"a": 1, "b": 1, "c": 3})) == [4, 1]


def test_members_stand_in_the_order_of_their_names_static_ones_first() -> None:
    group = [
        Candidate(member_id="a", topics=frozenset({"orders"})),
        Candidate(member_id="z", topics=frozenset({"orders"}), instance_id="two"),
        Candidate(member_id="y", topics=frozenset({"orders"}), instance_id="three"),
    ]
    plan = Range().assign(group, {"orders": 3})

    assert {name: numbers[0].partition for name, numbers in plan.items()} == {"y": 0, "z": 1, "a": 2}


@steady
@given(count=st.integers(0, 40), group=st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_a_member_knows_its_streams_partitions_without_being_told(count: int, group: list[int]) -> None:
    """What it splits by itself is what each of its streams was counted for."""
    candidates = [
        Candidate(member_id=f"m-{number}", topics=frozenset({"orders"}), streams=streams)
        for number, streams in enumerate(group)
    ]
    lone = [
        Candidate(member_id=f"m-{number}-{stream}", topics=frozenset({"orders"}))
        for number, streams in enumerate(group)
        for stream in range(streams)
    ]
    plan = Range().assign(candidates, {"orders": count})
    by_stream = [part for each in candidates for part in split(plan[each.member_id], each.streams)]

    assert by_stream == list(Range().assign(lone, {"orders": count}).values())


# --- round robin ------------------------------------------------------------------------------------------------------


def test_partitions_are_dealt_out_in_turn_over_all_topics() -> None:
    plan = RoundRobin().assign(members(2, "a", "b"), {"a": 3, "b": 3})

    assert [[str(each) for each in part] for part in plan.values()] == [["a/0", "a/2", "b/1"], ["a/1", "b/0", "b/2"]]


def test_a_member_with_streams_has_as_many_turns() -> None:
    group = [*members(1, streams=2), Candidate(member_id="m-9", topics=frozenset({"orders"}))]

    assert numbers(RoundRobin().assign(group, {"orders": 6})) == [[0, 1, 3, 4], [2, 5]]


# --- as others do -----------------------------------------------------------------------------------------------------


class Cluster:
    """What aiokafka's assignors ask for."""

    def __init__(self, counts: PartitionCounts) -> None:
        self._counts = counts

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic."""
        return set(range(self._counts[topic])) if topic in self._counts else None


TOPICS = ("a", "b", "c", "d")
SOME_TOPICS = st.frozensets(st.sampled_from(TOPICS), min_size=1)
GROUPS = st.lists(SOME_TOPICS, min_size=1, max_size=6).map(
    lambda topics: [Candidate(member_id=f"m-{number}", topics=each) for number, each in enumerate(topics)]
)
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7))


@pytest.mark.parametrize(
    ("ours", "theirs"), [(Range(), RangePartitionAssignor), (RoundRobin(), RoundRobinPartitionAssignor)]
)
@steady
@given(group=GROUPS, counts=COUNTS)
def test_range_and_round_robin_give_what_another_library_gives(
    ours: Assignor, theirs: type[RangePartitionAssignor], group: list[Candidate], counts: PartitionCounts
) -> None:
    counts = {topic: count for topic, count in counts.items() if count}
    asked = {each.member_id: ConsumerProtocolMemberMetadata(0, sorted(each.topics), b"") for each in group}
    given_by_them = theirs.assign(Cluster(counts), asked)
    plan = ours.assign(group, counts)

    for member_id, assignment in given_by_them.items():
        assert sorted(assignment.partitions()) == list(plan[member_id])


# --- for all ----------------------------------------------------------------------------------------------------------


@st.composite
def groups_that_had_something(draw: st.DrawFn) -> list[Candidate]:
    """Return members that claim what they had, truly or not."""
    claims = st.lists(st.builds(TopicPartition, st.sampled_from((*TOPICS, "gone")), st.integers(0, 8)), max_size=8)
    return [
        replace(
            each, owned=tuple(draw(claims)), owned_generation=draw(st.integers(-1, 3)), streams=draw(st.integers(1, 3))
        )
        for each in draw(GROUPS)
    ]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda each: each.name)
@steady
@given(group=groups_that_had_something(), counts=COUNTS)
def test_every_partition_is_owned_exactly_once_by_somebody_who_reads_it(
    assignor: Assignor, group: list[Candidate], counts: PartitionCounts
) -> None:
    plan = assignor.assign(group, counts)
    wanted = {topic for each in group for topic in each.topics}

    assert Counter(itertools.chain(*plan.values())) == Counter(
        TopicPartition(topic, number) for topic in wanted for number in range(counts.get(topic, 0))
    )
    assert all(partition.topic in each.topics for each in group for partition in plan[each.member_id])
    assert plan.keys() == {each.member_id for each in group}
    assert plan == assignor.assign(reversed(group), counts)


@pytest.mark.parametrize("assignor", [RoundRobin(), Sticky()], ids=lambda each: each.name)
@steady
@given(count=st.integers(1, 8), counts=COUNTS)
def test_members_that_read_the_same_differ_by_one_at_most(
    assignor: Assignor, count: int, counts: PartitionCounts
) -> None:
    plan = assignor.assign(members(count, *TOPICS), counts)

    assert max(loads(plan)) - min(loads(plan)) <= 1


# --- sticky -----------------------------------------------------------------------------------------------------------


def moved(group: list[Candidate], plan: Plan) -> list[TopicPartition]:
    """Return the partitions that members had and have no more."""
    return [each for member in group for each in member.owned if each not in plan[member.member_id]]


@steady
@given(
    held=st.lists(st.integers(0, 9), min_size=1, max_size=7),
    free=st.integers(0, 9),
)
def test_no_plan_that_is_as_even_moves_fewer_partitions(held: list[int], free: int) -> None:
    group, total = [], 0
    for number, count in enumerate(held):
        owned = tuple(TopicPartition("orders", total + each) for each in range(count))
        group.append(Candidate(member_id=f"m-{number}", topics=frozenset({"orders"}), owned=owned))
        total += count
    total += free
    plan = Sticky().assign(group, {"orders": total})
    least, longer = divmod(total, len(held))
    shares = [least + (rank < longer) for rank in range(len(held))]
    needed = sum(max(count - share, 0) for count, share in zip(sorted(held, reverse=True), shares, strict=True))

    assert sorted(loads(plan), reverse=True) == shares
    assert len(moved(group, plan)) == needed


@steady
@given(count=st.integers(2, 7), counts=COUNTS, gone=st.integers(0, 6))
def test_when_a_member_leaves_the_others_keep_all_they_had(count: int, counts: PartitionCounts, gone: int) -> None:
    group = members(count, *TOPICS)
    before = Sticky().assign(group, counts)
    left = with_owned([each for number, each in enumerate(group) if number != gone % count], before)

    assert moved(left, Sticky().assign(left, counts)) == []


@steady
@given(count=st.integers(1, 7), counts=COUNTS)
def test_when_a_member_joins_it_is_given_its_share_and_nobody_else_gains(count: int, counts: PartitionCounts) -> None:
    group = members(count + 1, *TOPICS)
    before = Sticky().assign(group[:-1], counts)
    after = Sticky().assign(with_owned(group, before), counts)

    assert all(set(after[each.member_id]) <= set(before[each.member_id]) for each in group[:-1])
    assert max(loads(after)) - min(loads(after)) <= 1


@steady
@given(group=groups_that_had_something(), counts=COUNTS)
def test_a_plan_that_was_made_is_kept_when_nothing_changes(group: list[Candidate], counts: PartitionCounts) -> None:
    plan = Sticky().assign(group, counts)

    assert Sticky().assign(with_owned(group, plan), counts) == plan


@steady
@given(
    group=st.lists(SOME_TOPICS, min_size=1, max_size=3),
    counts=st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 2)),
    claimed=st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 1), st.integers(0, 2)), max_size=6),
)
def test_no_plan_is_more_even_whoever_reads_what(
    group: list[frozenset[str]], counts: PartitionCounts, claimed: list[tuple[str, int, int]]
) -> None:
    """Every possible plan is tried."""
    candidates = [
        Candidate(
            member_id=f"m-{number}",
            topics=topics,
            owned=tuple(TopicPartition(topic, each) for topic, each, owner in claimed if owner == number),
        )
        for number, topics in enumerate(group)
    ]
    wanted = sorted(set().union(*group))
    choices = [
        [number for number, topics in enumerate(group) if topic in topics]
        for topic in wanted
        for _ in range(counts.get(topic, 0))
    ]
    best = min(sum(load * load for load in Counter(owners).values()) for owners in itertools.product(*choices))

    assert sum(load * load for load in loads(Sticky().assign(candidates, counts))) == best


def test_of_two_who_claim_a_partition_the_newer_generation_keeps_it() -> None:
    first = TopicPartition("orders", 0)
    old, new = members(2)
    group = [replace(old, owned=(first,), owned_generation=3), replace(new, owned=(first,), owned_generation=4)]

    assert Sticky().assign(group, {"orders": 2})["m-1"] == (first,)


def test_a_large_group_is_assigned_in_no_time() -> None:
    """A leader has its group waiting: 500 members, 10,000 partitions, and every member reads three of 20 topics."""
    names = [f"topic-{number:02}" for number in range(20)]
    group = [
        Candidate(member_id=f"m-{number:03}", topics=frozenset(names[(number * 7 + each) % 20] for each in range(3)))
        for number in range(500)
    ]
    counts = dict.fromkeys(names, 500)
    plan = Sticky().assign(group, counts)
    again = with_owned(group[1:], plan)
    after = Sticky().assign(again, counts)

    assert (min(loads(plan)), max(loads(plan))) == (20, 20)
    assert (min(loads(after)), max(loads(after))) == (20, 21)
    assert len(moved(again, after)) <= 20
