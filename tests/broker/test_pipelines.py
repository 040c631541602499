"""Many requests on one connection, good and bad ones: each costs nobody but its own connection anything."""

import pytest

from protocol.api import FETCH, METADATA, OFFSET_FETCH, Request, encode_request
from protocol.fetch import FetchRequest, FetchRequestPartition, FetchRequestTopic
from protocol.list_offsets import ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic
from protocol.metadata import MetadataRequest, MetadataRequestTopic
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from protocol.produce import ProduceRequest
from protocol.wire import StringTooLong, Truncated
from tests.broker.scene import FakeClient, Scene
from tests.fakes.wire import fetch_request

ORDERS = ("orders", 0)


def poll(wait_ms: int, *, min_bytes: int = 1, topic: str = "orders") -> FetchRequest:
    partition = FetchRequestPartition(partition=0, fetch_offset=0)
    topics = (FetchRequestTopic(topic=topic, partitions=(partition,)),)
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=min_bytes, topics=topics)


def latest(client: FakeClient) -> int:
    partition = ListOffsetsRequestPartition(partition_index=0, timestamp=-1)
    topics = (ListOffsetsRequestTopic(name="orders", partitions=(partition,)),)
    return client.send(ListOffsetsRequest(topics=topics), 5)


def test_a_frame_that_cannot_be_read_costs_its_own_connection_and_no_other() -> None:
    """Its turn comes in the middle of a batch that holds the commits of others."""
    scene = Scene()
    bad, good = scene.client(), scene.client()
    bad.commit("g", {ORDERS: 1})
    frame = encode_request(OFFSET_FETCH, 5, 7, "client", fetch_request("g", [ORDERS], 5))[4:]

    bad.send_frame(frame[:-3])
    good.commit("h", {ORDERS: 2})
    scene.log.settle()

    assert [type(fault) for fault in bad.faults] == [Truncated]
    assert good.codes(0) == {ORDERS: 0}
    assert scene.shown("h") == {ORDERS: 2}
    assert scene.shown("g") == {ORDERS: 1}


NAME = "n" * 30_000
UNWRITABLE = [
    (OffsetFetchRequest("g", (OffsetFetchRequestTopic(name=NAME, partition_indexes=(0,)),)), OFFSET_FETCH, 5),
    (MetadataRequest(topics=(MetadataRequestTopic(name=NAME),)), METADATA, 1),
    (poll(0, topic=NAME), FETCH, 4),
]


@pytest.mark.parametrize(("request_", "api", "version"), UNWRITABLE)
def test_an_answer_that_cannot_be_written_costs_its_own_connection_and_no_other(
    request_: Request, api: int, version: int
) -> None:
    """Every bad byte of a name grows to three when it is echoed, and may then be too long for the wire."""
    scene = Scene()
    bad, good = scene.client(), scene.client()
    bad.commit("g", {ORDERS: 1})
    frame = encode_request(api, version, 1, "", request_)[4:]
    bad.send_frame(frame.replace(NAME.encode(), b"\xff" * len(NAME)))
    bad.fetch("g", [ORDERS])
    good.commit("h", {ORDERS: 2})

    scene.log.settle()

    assert scene.shown("g") == {ORDERS: 1}
    assert good.codes(0) == {ORDERS: 0}
    assert len(bad.replies) == 1
    assert [type(fault) for fault in bad.faults] == [StringTooLong]


def test_every_kind_of_read_is_answered_in_its_turn_and_sees_the_commits_before_it() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 5})
    ends = latest(client)
    names = client.send(MetadataRequest(topics=None), 5)
    polled = client.send(poll(0), 4)

    before = list(client.replies)
    scene.log.settle()

    assert before == []
    assert client.order() == [0, 1, 2, 3]
    assert client.answer(ends).topics[0].partitions[0].offset == 5
    assert [topic.name for topic in client.answer(names).topics] == ["orders"]
    assert client.answer(polled).responses[0].partitions[0].high_watermark == 5


def test_a_poll_is_answered_after_its_wait_and_holds_up_what_is_behind_it() -> None:
    scene = Scene()
    scene.commit("g", {ORDERS: 5})
    client = scene.client()
    polled = client.send(poll(500), 4)
    client.fetch("g", [ORDERS])

    scene.clock.advance(499)
    early = client.order()
    scene.commit("g", {ORDERS: 6})
    scene.clock.advance(1)

    assert early == []
    assert client.order() == [0, 1]
    assert client.answer(polled).responses[0].partitions[0].high_watermark == 6


def test_a_poll_behind_a_commit_begins_to_wait_when_its_turn_comes() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 5})
    client.send(poll(500), 4)
    scene.clock.advance(600)
    scene.log.settle()

    scene.clock.advance(499)
    early = client.order()
    scene.clock.advance(1)

    assert early == [0]
    assert client.order() == [0, 1]


@pytest.mark.parametrize(("wait_ms", "min_bytes", "answered_ms"), [(-5, 1, 0), (500, 0, 0), (3_000_000, 1, 30_000)])
def test_a_polls_wait_has_bounds(wait_ms: int, min_bytes: int, answered_ms: int) -> None:
    scene = Scene()
    scene.commit("g", {ORDERS: 5})
    client = scene.client()
    client.send(poll(wait_ms, min_bytes=min_bytes), 4)

    if answered_ms:
        scene.clock.advance(answered_ms - 1)
        assert client.order() == []
        scene.clock.advance(1)

    assert client.order() == [0]


def test_a_poll_of_a_lost_connection_is_let_go() -> None:
    scene = Scene()
    client = scene.client()
    client.send(poll(500), 4)

    client.turns.queue.clear()
    scene.clock.advance(1000)

    assert client.replies == []


def test_a_producer_that_wants_no_answer_gets_none() -> None:
    """It would take one for the answer to its next request."""
    scene = Scene()
    client = scene.client()

    client.send(ProduceRequest(acks=0), 9)
    client.send(ProduceRequest(acks=1), 9)

    assert client.order() == [1]
