"""What a fetch may show, and when: nothing before it is settled, all of it after."""

import pytest

from tests.broker.scene import COMMIT_VERSIONS, FETCH_VERSIONS, Scene

ORDERS = ("orders", 0)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_commit_is_shown_when_it_is_settled_and_not_before(version: int) -> None:
    scene = Scene()
    writer, reader = scene.client(), scene.client()
    writer.commit("g", {ORDERS: 42})

    early = reader.fetch("g", [ORDERS], version)
    scene.log.settle()
    late = reader.fetch("g", [ORDERS], version)

    assert reader.offsets(early) == {ORDERS: -1}
    assert reader.offsets(late) == {ORDERS: 42}
    assert writer.codes(0) == {ORDERS: 0}


def test_a_kept_reply_does_not_hide_what_was_settled_since() -> None:
    """The first two fetches make and use a kept reply; the commit between must void it."""
    scene = Scene()
    scene.commit("g", {ORDERS: 1})
    reader = scene.client()
    before = [reader.fetch("g", [ORDERS]) for _ in range(3)]
    writer = scene.client()
    writer.commit("g", {ORDERS: 2})

    held = reader.fetch("g", [ORDERS])
    scene.log.settle()
    after = reader.fetch("g", [ORDERS])

    assert [reader.offsets(number) for number in before] == [{ORDERS: 1}] * 3
    assert reader.offsets(held) == {ORDERS: 1}
    assert reader.offsets(after) == {ORDERS: 2}
    assert scene.observed.fetch_cache_hits == 3


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_no_reply_leaves_before_its_commit_is_settled(version: int) -> None:
    scene = Scene()
    client = scene.client()

    number = client.commit("g", {ORDERS: 42}, version)
    before = list(client.replies)
    scene.log.settle()

    assert before == []
    assert client.codes(number) == {ORDERS: 0}


def test_a_fetch_behind_a_commit_on_one_connection_sees_it() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    first = client.fetch("g", [ORDERS])
    client.commit("g", {ORDERS: 2})
    second = client.fetch("g", [ORDERS])

    waiting = list(client.replies)
    scene.log.settle()

    assert waiting == []
    assert client.offsets(first) == {ORDERS: 1}
    assert client.offsets(second) == {ORDERS: 2}
    assert client.order() == [0, 1, 2, 3]


def test_a_fetch_behind_a_commit_waits_for_no_later_one() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    client.fetch("g", [ORDERS])
    client.commit("g", {ORDERS: 2})

    scene.log.settle(1)

    assert client.order() == [0, 1]
    assert client.offsets(1) == {ORDERS: 1}


def test_all_partitions_of_a_request_become_visible_together() -> None:
    scene = Scene()
    offsets = {(topic, partition): 7 for topic in ("a", "b", "c") for partition in (0, 1, 5000)}
    client = scene.client()
    client.commit("g", offsets)

    before = scene.shown("g")
    entries = len(scene.log.held)
    scene.log.settle()

    assert before == {}
    assert entries == 1
    assert scene.shown("g") == offsets


def test_commits_may_overlap_and_the_last_in_the_log_stands() -> None:
    scene = Scene()
    one, other = scene.client(), scene.client("/10.0.0.2")
    one.commit("g", {ORDERS: 1, ("orders", 1): 1})
    other.commit("g", {ORDERS: 2})
    one.commit("g", {ORDERS: 3})
    other.commit("g", {ORDERS: 2})

    states = []
    for _ in range(4):
        scene.log.settle(1)
        states.append(scene.shown("g")[ORDERS])

    assert states == [1, 2, 3, 2]
    assert scene.shown("g") == {ORDERS: 2, ("orders", 1): 1}
    assert (one.order(), other.order()) == ([0, 1], [0, 1])


def test_replies_leave_in_the_order_of_the_requests() -> None:
    """A later commit of the same connection may be refused at once; its reply still waits for its turn."""
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    client.commit("g", {("not a topic", 0): 1})
    client.fetch("other", [ORDERS])
    client.commit("g", {ORDERS: 2})

    before = client.order()
    scene.log.settle(1)
    middle = client.order()
    scene.log.settle()

    assert before == []
    assert middle == [0, 1, 2]
    assert client.order() == [0, 1, 2, 3]


def test_other_connections_do_not_wait() -> None:
    scene = Scene()
    slow, quick = scene.client(), scene.client()
    slow.commit("g", {ORDERS: 1})

    quick.fetch("h", [ORDERS])

    assert quick.offsets(0) == {ORDERS: -1}
    assert slow.replies == []


def test_what_a_lost_connection_committed_is_applied_all_the_same() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 5})
    client.fetch("g", [ORDERS])

    client.turns.queue.clear()
    scene.log.settle()

    assert scene.shown("g") == {ORDERS: 5}
    assert client.replies == []


def test_a_group_that_went_and_came_back_is_shown_as_it_is() -> None:
    """A kept reply names a group's version, and a group of the same name made anew has versions of its own."""
    scene = Scene()
    scene.watch_expiry()
    reader = scene.client()
    shown = []
    for offset in (1, 2, 3):
        scene.commit("g", {ORDERS: offset}, version=3, retention_ms=1000)
        shown.append(reader.offsets(reader.fetch("g", [ORDERS])))
        shown.append(reader.offsets(reader.fetch("g", [ORDERS])))
        scene.clock.advance(1000)
        assert scene.sweep() == 1
        shown.append(reader.offsets(reader.fetch("g", [ORDERS])))

    assert shown == [
        *({ORDERS: 1}, {ORDERS: 1}, {ORDERS: -1}),
        *({ORDERS: 2}, {ORDERS: 2}, {ORDERS: -1}),
        *({ORDERS: 3}, {ORDERS: 3}, {ORDERS: -1}),
    ]
    assert scene.observed.fetch_cache_hits == 3
