"""Answers of very many rows: made in slices, of one moment, equal to those made at once, and nobody waits for them."""

from collections.abc import Callable, Generator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.broker.longreads import LongReads
from offsetd.broker.turns import Turns
from offsetd.coordinator.fetch import answer_fetch, is_longer
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.slices import SLICE_ROWS, fetch_in_slices
from offsetd.group import Group
from protocol.api import OFFSET_FETCH, encode_response
from protocol.errors import Code
from protocol.list_offsets import ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic
from protocol.metadata import MetadataRequest, MetadataRequestTopic
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from tests.broker.scene import FETCH_VERSIONS, Scene

ORDERS = ("orders", 0)
MANY = 3 * SLICE_ROWS


def filled(partitions: int = MANY, *, topics: int = 1, limits: Limits | None = None) -> Scene:
    """A scene with one large group and one small."""
    scene = Scene(limits=limits)
    for topic in range(topics):
        rows = {(f"topic-{topic}", number): number for number in range(partitions // topics)}
        scene.commit("large", rows, metadata="m" if topic % 2 else "")
    scene.commit("small", {ORDERS: 1})
    return scene


@pytest.mark.parametrize("topics", [1, 7, MANY // 2])
@pytest.mark.parametrize("version", range(2, 10))
def test_a_large_answer_is_the_same_as_if_made_at_once(version: int, topics: int) -> None:
    scene = filled(topics=topics)
    client = scene.client()
    client.fetch("large", None, version)
    before = list(client.replies)
    slices = scene.run()

    request = OffsetFetchRequest(
        group_id="large", topics=None, groups=(OffsetFetchRequestGroup(group_id="large", topics=None),)
    )
    fresh = answer_fetch(request, version=version, lookup=scene.broker.slots.lookup)
    assert before == []
    assert slices >= 3
    assert client.replies == [encode_response(OFFSET_FETCH, version, 0, fresh)]


_topics = st.lists(
    st.builds(
        OffsetFetchRequestTopic,
        name=st.sampled_from(("topic-0", "topic-1", "nowhere", "")),
        partition_indexes=st.lists(st.integers(-1, 40), max_size=30).map(tuple),
    ),
    max_size=4,
).map(tuple)
_groups = st.builds(
    OffsetFetchRequestGroup,
    group_id=st.sampled_from(("large", "small", "none", "", "b\u00fcro")),
    topics=st.none() | _topics,
)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(groups=st.lists(_groups, min_size=1, max_size=4).map(tuple), version=st.sampled_from(FETCH_VERSIONS))
def test_slices_write_what_the_encoder_writes(groups: tuple[OffsetFetchRequestGroup, ...], version: int) -> None:
    scene = _PLAIN

    def lookup(group_id: str) -> tuple[Code, Group | None]:
        return (Code.COORDINATOR_LOAD_IN_PROGRESS, None) if group_id == "none" else scene.broker.slots.lookup(group_id)

    request = OffsetFetchRequest(group_id=groups[0].group_id, topics=groups[0].topics, groups=groups)
    fresh = answer_fetch(request, version=version, lookup=lookup)
    slices = fetch_in_slices(
        request,
        version=version,
        correlation_id=9,
        lookup=lookup,
        bytes_max=1 << 30,
    )

    assert _run(slices) == encode_response(OFFSET_FETCH, version, 9, fresh)


_PLAIN = filled(60, topics=2)


def _run(slices: Generator[None, None, bytes | None]) -> bytes | None:
    while True:
        try:
            next(slices)
        except StopIteration as end:
            reply: bytes | None = end.value
            return reply


def test_a_commit_between_two_slices_is_shown_whole_or_not_at_all() -> None:
    scene = filled()
    client = scene.client()
    before = {("topic-0", number): number for number in range(MANY)}
    number = client.fetch("large", None)
    scene.clock.turn()
    scene.clock.turn()

    scene.commit("large", {("topic-0", partition): -5 for partition in range(MANY)})
    scene.run()
    again = client.fetch("large", None)
    scene.run()

    assert client.offsets(number) == before
    assert set(client.offsets(again).values()) == {-5}


def test_a_group_that_goes_between_two_slices_is_still_shown_as_it_was() -> None:
    scene = filled()
    client = scene.client()
    number = client.fetch("large", None)
    scene.clock.turn()
    scene.clock.turn()

    scene.drop("large")
    scene.run()

    assert len(client.offsets(number)) == MANY
    assert scene.shown("large") == {}


def test_others_are_answered_between_the_slices_and_those_behind_it_after_it() -> None:
    scene = filled()
    slow, quick = scene.client(), scene.client()
    slow.fetch("large", None)
    slow.fetch("small", [ORDERS])
    scene.clock.turn()

    quick.fetch("small", [ORDERS])

    assert quick.offsets(0) == {ORDERS: 1}
    assert slow.replies == []
    scene.run()
    assert slow.order() == [0, 1]


def test_large_answers_are_made_one_after_the_other() -> None:
    """Each holds a copy of its group, so only one at a time may."""
    scene = filled()
    clients = [scene.client() for _ in range(3)]
    for client in clients:
        client.fetch("large", None, 7)
        client.fetch("large", None, 7)

    answered = []
    while scene.clock.turn():
        answered.append([len(client.replies) for client in clients])

    assert sorted(answered) == answered
    assert answered[-1] == [2, 2, 2]
    assert len({client.replies[0] for client in clients}) == 1


def test_a_large_answer_is_kept_if_it_is_not_too_large() -> None:
    scene = filled(2 * SLICE_ROWS)
    client = scene.client()
    client.fetch("large", None)
    scene.run()

    client.fetch("large", None)

    assert scene.observed.fetch_cache_hits == 1
    assert len(client.offsets(1)) == 2 * SLICE_ROWS


def test_a_large_answer_that_a_commit_overtook_is_not_kept() -> None:
    scene = filled(2 * SLICE_ROWS)
    client = scene.client()
    client.fetch("large", None)
    scene.clock.turn()
    scene.commit("large", {("topic-0", 0): 77})
    scene.run()

    number = client.fetch("large", None)
    scene.run()

    assert scene.observed.fetch_cache_hits == 0
    assert client.offsets(number)["topic-0", 0] == 77


def test_a_client_that_goes_takes_its_long_read_with_it() -> None:
    scene = filled()
    gone, stays = scene.client(), scene.client()
    gone.fetch("large", None)
    stays.fetch("large", None)
    scene.clock.turn()

    gone.turns.drop()
    scene.run()

    assert gone.replies == []
    assert len(stays.offsets(0)) == MANY


def test_an_answer_of_too_many_bytes_is_refused_before_it_is_made() -> None:
    scene = filled(limits=Limits(slots=4, response_bytes_max=30_000))
    client = scene.client()
    everything = client.fetch("large", None)
    slices = scene.run()
    some = client.fetch("large", [("topic-0", number) for number in range(SLICE_ROWS)])
    scene.run()

    (group,) = client.answer(everything).groups
    assert (group.error_code, group.topics) == (Code.UNKNOWN_SERVER_ERROR, ())
    assert slices <= 3
    assert len(client.offsets(some)) == SLICE_ROWS


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_if_even_the_refusal_would_be_too_large_the_connection_ends(version: int) -> None:
    """A client that reads codes on partitions only would take a shorter one for "no offset"."""
    scene = filled(limits=Limits(slots=4, response_bytes_max=30_000))
    client = scene.client()

    client.fetch("large", [("topic-0", number) for number in range(MANY)], version)
    scene.run()

    assert client.replies == []
    assert [type(fault).__name__ for fault in client.faults] == ["ReplyTooLarge"]


def test_a_fault_in_a_slice_costs_its_own_connection_and_no_other() -> None:
    sent: list[bytes] = []
    faults: list[Exception] = []
    due: list[Callable[[], None]] = []
    turns = Turns(sent.append, lambda: None, faults.append)
    other = Turns(sent.append, lambda: None, faults.append)
    long = LongReads(lambda _, callback: due.append(callback))

    def bad() -> Generator[None, None, bytes]:
        yield
        yield
        raise ZeroDivisionError

    def good() -> Generator[None, None, bytes]:
        yield
        yield
        return b"good"

    turns.read(lambda turn: long.read(turns, turn, bad()))
    other.read(lambda turn: long.read(other, turn, good()))
    while due:
        due.pop(0)()

    assert [type(fault) for fault in faults] == [ZeroDivisionError]
    assert sent == [b"good"]


def test_a_read_that_ends_with_its_first_slice_is_answered_at_once() -> None:
    sent: list[bytes] = []
    turns = Turns(sent.append, lambda: None)
    long = LongReads(_never)

    def quick() -> Generator[None, None, bytes]:
        return b"quick"
        yield

    turns.read(lambda turn: long.read(turns, turn, quick()))

    assert sent == [b"quick"]


def _never(seconds: float, callback: Callable[[], None]) -> None:
    raise AssertionError("nothing is due later")


def test_a_long_read_waits_while_the_peer_takes_no_replies() -> None:
    scene = filled()
    client = scene.client()
    client.fetch("large", None)
    scene.clock.turn()
    client.turns.block()
    scene.run()
    blocked = list(client.replies)

    client.turns.unblock()

    assert blocked == []
    assert len(client.offsets(0)) == MANY


def test_the_work_is_known_before_it_is_done() -> None:
    scene = filled()
    lookup = scene.broker.slots.lookup
    asked = OffsetFetchRequestTopic(name="t", partition_indexes=(1, 2, 3))
    groups = (
        OffsetFetchRequestGroup(group_id="large", topics=None),
        OffsetFetchRequestGroup(group_id="none", topics=None),
        OffsetFetchRequestGroup(group_id="none", topics=(asked, asked)),
    )

    def rows(*asked: OffsetFetchRequestGroup) -> int:
        request = OffsetFetchRequest(groups=asked)
        return next(count for count in range(2 * MANY) if not is_longer(request, count, version=9, lookup=lookup))

    assert [rows(group) for group in groups] == [1 + MANY, 1, 1 + 2 * 4]
    assert rows(*groups) == MANY + 11


def test_very_many_groups_are_not_all_looked_up_before_the_answer_is_begun() -> None:
    looked: list[str] = []

    def lookup(group_id: str) -> tuple[Code, Group | None]:
        looked.append(group_id)
        return Code.NONE, None

    groups = tuple(OffsetFetchRequestGroup(group_id=str(number), topics=None) for number in range(5 * SLICE_ROWS))

    assert is_longer(OffsetFetchRequest(groups=groups), SLICE_ROWS, version=9, lookup=lookup)
    assert len(looked) == SLICE_ROWS + 1


def test_many_groups_in_one_request_are_answered_in_slices_each_as_of_one_moment() -> None:
    scene = Scene()
    asked = tuple(f"g-{number}" for number in range(300))
    for group in asked:
        scene.commit(group, {("orders", number): 1 for number in range(10)})
    client = scene.client()
    groups = tuple(OffsetFetchRequestGroup(group_id=name, topics=None) for name in (*asked, "n" * 1025))

    number = client.send(OffsetFetchRequest(groups=groups), 9)
    while scene.clock.turn():
        for group in asked[:: len(scene.log.written) % 7 + 1]:
            scene.client().commit(group, {("orders", place): len(scene.log.written) for place in range(10)})
        scene.log.settle()

    found = client.answer(number).groups
    assert [one.group_id for one in found] == [*asked, "n" * 1025]
    assert {one.error_code for one in found} == {0}
    # Every group shows one commit, whichever.
    assert [len({row.committed_offset for topic in one.topics for row in topic.partitions}) for one in found] == [
        *[1] * 300,
        0,
    ]


def test_ends_that_nobody_asked_for_yet_are_found_in_slices() -> None:
    scene = Scene()
    for number in range(2000):
        scene.commit(f"g-{number}", {ORDERS: number})
    slow, quick = scene.client(), scene.client()
    partition = ListOffsetsRequestPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=(ListOffsetsRequestTopic(name="orders", partitions=(partition,)),))

    first = slow.send(request, 5)
    early = list(slow.replies)
    earliest = ListOffsetsRequestTopic(name="orders", partitions=(partition._replace(timestamp=-2),))
    begin = quick.send(ListOffsetsRequest(topics=(earliest,)), 5)
    at_once = quick.answer(begin).topics[0].partitions[0].offset
    slices = scene.run()
    scene.commit("g-0", {ORDERS: 5000})
    second = quick.send(request, 5)

    assert (early, at_once) == ([], 0)
    assert slices >= 3
    assert slow.answer(first).topics[0].partitions[0].offset == 1999
    assert quick.answer(second).topics[0].partitions[0].offset == 5000, "and now at once"


def test_very_many_topics_are_described_in_slices() -> None:
    scene = Scene()
    scene.commit("g", {(f"topic-{number:04}", 0): 1 for number in range(2 * SLICE_ROWS)})
    slow, quick = scene.client(), scene.client()

    every = slow.send(MetadataRequest(topics=None), 9)
    early = list(slow.replies)
    one = quick.send(MetadataRequest(topics=(MetadataRequestTopic(name="topic-0001"),)), 9)
    scene.run()

    assert early == []
    assert [topic.name for topic in quick.answer(one).topics] == ["topic-0001"]
    assert [topic.name for topic in slow.answer(every).topics] == [
        f"topic-{number:04}" for number in range(2 * SLICE_ROWS)
    ]
