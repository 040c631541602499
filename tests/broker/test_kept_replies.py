"""A kept reply is sent only while it is what a fresh one would be."""

from struct import pack
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from offsetd.broker.kept import Kept
from offsetd.coordinator.fetch import answer_fetch
from offsetd.coordinator.limits import Limits
from offsetd.record import Reason, Who, encode_tombstone, encode_touch
from protocol.api import OFFSET_FETCH, encode_request, encode_response
from protocol.errors import Code
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from tests.broker.scene import FETCH_VERSIONS, FakeClient, Scene

DAY_MS = 24 * 3600 * 1000
ORDERS = ("orders", 0)
GROUPS = ("g", "h", "")
WHO = Who("admin", "/10.0.0.9", "")

_groups = st.sampled_from(GROUPS)
_topics = st.sampled_from(("orders", "o"))
_numbers = st.lists(st.integers(0, 4), min_size=1, max_size=4)
_asked = st.one_of(
    st.none(),
    st.lists(st.builds(OffsetFetchRequestTopic, name=_topics, partition_indexes=_numbers.map(tuple)), max_size=2).map(
        tuple
    ),
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), _groups, _asked, st.sampled_from(FETCH_VERSIONS), st.just(1)),
        st.tuples(st.just("fetch"), _groups, st.none(), st.sampled_from((7, 9)), st.integers(1, 2)),
        st.tuples(st.just("commit"), _groups, _topics, _numbers, st.integers(0, 3)),
        st.tuples(st.just("tombstone"), _groups, _topics, _numbers),
        st.tuples(st.just("group tombstone"), _groups),
        st.tuples(st.just("touch"), _groups, _topics, _numbers),
        st.tuples(st.just("settle")),
        st.tuples(st.just("settle")),
        st.tuples(st.just("sweep")),
    ),
    min_size=5,
    max_size=30,
)


def fetch(scene: Scene, client: FakeClient, group: str, asked: Any, version: int, times: int) -> None:
    if asked is None and version < 2:
        asked = ()
    one = OffsetFetchRequestGroup(group_id=group, topics=asked)
    request = OffsetFetchRequest(group_id=group, topics=asked, groups=(one,) * times)
    fresh = answer_fetch(request, version=version, lookup=scene.broker.slots.lookup)
    for number in (5, -6):
        client.send_frame(encode_request(OFFSET_FETCH, version, number, "client", request)[4:])
        assert client.replies.pop() == encode_response(OFFSET_FETCH, version, number, fresh)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(steps=_steps)
def test_every_reply_is_what_a_fresh_one_would_be(steps: list[Any]) -> None:
    scene = Scene(limits=Limits(slots=2, retention_ms=lambda _: DAY_MS))
    scene.watch_expiry()
    reader, writer = scene.client(), scene.client()
    for group in GROUPS[1:]:
        scene.commit(group, {ORDERS: 0, ("o", 3): 1})

    for what, *rest in steps:
        if what == "fetch":
            fetch(scene, reader, *rest)
        elif what == "settle":
            scene.log.settle()
        elif what == "sweep":
            scene.clock.advance(DAY_MS)
            scene.sweep()
        elif what == "commit":
            group, topic, numbers, offset = rest
            writer.commit(group, {(topic, number): offset for number in numbers})
        else:
            group = rest[0]
            slot, now_ms = scene.broker.slots.of(group), scene.clock.wall_ms()
            named = [(rest[1], pack(f">{len(rest[2])}i", *rest[2]))] if len(rest) > 1 else []
            if what == "tombstone":
                scene.write(encode_tombstone(slot, group, now_ms, WHO, Reason.DELETED, named))
            elif what == "touch":
                scene.write(encode_touch(slot, group, now_ms, WHO, named))
            else:
                scene.drop(group)

    event(f"kept replies used: {min(scene.observed.fetch_cache_hits, 5)}")


def test_a_kept_reply_carries_the_correlation_id_of_its_own_request() -> None:
    scene = Scene()
    scene.commit("g", {ORDERS: 1})
    client = scene.client()

    for number in (1, -1, 2**31 - 1):
        client.send_frame(_frame(number))

    assert [reply[4:8] for reply in client.replies] == [pack(">i", number) for number in (1, -1, 2**31 - 1)]
    assert scene.observed.fetch_cache_hits == 2


def _frame(number: int, client_id: str = "client") -> bytes:
    asked = OffsetFetchRequestTopic(name="orders", partition_indexes=(0,))
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=(asked,)),))
    return encode_request(OFFSET_FETCH, 9, number, client_id, request)[4:]


def test_what_an_unknown_group_was_told_is_not_kept() -> None:
    """There is no version to hold it against."""
    scene = Scene()
    client = scene.client()
    client.send_frame(_frame(1))

    scene.commit("g", {ORDERS: 1})
    client.send_frame(_frame(1))

    assert client.replies[0] != client.replies[1]
    assert scene.observed.fetch_cache_hits == 0


def test_kept_replies_are_bounded_also_where_they_grow() -> None:
    """Many small replies may be kept, and the group behind them may grow."""
    scene = Scene()
    scene.broker.fetches.kept = Kept(bytes_max=100_000, reply_bytes_max=50_000)
    scene.commit("g", {ORDERS: 1})
    client = scene.client()
    for number in range(100):
        client.fetch_all("g", f"client-{number}")
    small = scene.broker.fetches.kept.held_bytes
    scene.commit("g", {("orders", number): 1 for number in range(500)})

    sizes = []
    for number in range(100):
        client.fetch_all("g", f"client-{number}")
        sizes.append(scene.broker.fetches.kept.held_bytes)

    assert 0 < small <= 100_000
    assert max(sizes) <= 100_000
    assert min(sizes) > 10_000, "a reply that is kept counts with what it takes"


def test_a_reply_larger_than_the_limit_is_refused_and_not_sent() -> None:
    scene = Scene(limits=Limits(slots=2, response_bytes_max=10_000))
    scene.commit("g", {("orders", number): 1 for number in range(1000)})
    client = scene.client()

    everything = client.fetch("g", None)
    scene.run()
    some = client.fetch("g", [("orders", number) for number in range(300)])

    (group,) = client.answer(everything).groups
    assert (group.error_code, group.topics) == (Code.UNKNOWN_SERVER_ERROR, ())
    assert len(client.offsets(some)) == 300
