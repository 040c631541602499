"""The fast path is the slow path: a broker that remembers shapes and one that forgets them cannot be told apart."""

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from offsetd.coordinator.limits import Limits
from offsetd.coordinator.shape import MISSES_PER_SHAPE, SHAPES_BYTES_MAX, Shape, Shapes
from offsetd.coordinator.topics import KnownTopic
from offsetd.group import Group
from offsetd.record import Kind, TopicOffsets, Who
from protocol.api import OFFSET_COMMIT, encode_request
from protocol.metadata import MetadataRequest, MetadataRequestTopic
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.wire import ProtocolError
from tests.broker.scene import COMMIT_VERSIONS, FakeClient, Scene

HOSTS = ("/10.0.0.1", "/10.0.0.2")
DAY_MS = 24 * 3600 * 1000


class Forgetful(dict[bytes, Shape]):
    """Finds no shape, ever."""

    def get(self, key: Any, default: Any = None) -> Any:
        return default


# --- strategies -----------------------------------------------------------------------------------------------------

_offsets = st.one_of(st.integers(0, 3), st.sampled_from((-1, -2, (1 << 63) - 1, -(1 << 63))))
_partitions = st.builds(
    OffsetCommitRequestPartition,
    partition_index=st.one_of(st.integers(0, 4), st.sampled_from((-1, 70_000))),
    committed_offset=_offsets,
    committed_leader_epoch=st.sampled_from((-1, -1, -1, 0, 7, -2)),
    commit_timestamp=st.sampled_from((-1, -1, -1, -1, 5)),
    committed_metadata=st.sampled_from(("", "", None, "m", "\U0001f40c", "long" * 5)),
)


@st.composite
def _neighbours(draw: st.DrawFn) -> tuple[OffsetCommitRequestPartition, ...]:
    """What nearly every commit is: partitions side by side, with nothing special."""
    start, count = draw(st.integers(0, 3)), draw(st.integers(1, 5))
    return tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=draw(_offsets))
        for number in range(start, start + count)
    )


_topics = st.builds(
    OffsetCommitRequestTopic,
    name=st.sampled_from(("orders", "orders", "o", "a b")),
    partitions=st.one_of(_neighbours(), _neighbours(), st.lists(_partitions, max_size=3).map(tuple)),
)
_requests = st.builds(
    OffsetCommitRequest,
    group_id=st.sampled_from(("g", "g", "", "b\u00fcro", "n" * 130)),
    generation_id_or_member_epoch=st.sampled_from((-1, -1, -1, -2, 3)),
    member_id=st.sampled_from(("", "", "m-1")),
    group_instance_id=st.sampled_from((None, None, "i-1")),
    retention_time_ms=st.sampled_from((-1, -1, -1, 1000)),
    topics=st.lists(_topics, min_size=1, max_size=3).map(tuple),
)


@st.composite
def _frames(draw: st.DrawFn) -> list[bytes]:
    """Some commits, and after each others of its shape or nearly so: other offsets, one other byte, a byte less."""
    frames: list[bytes] = []
    for _ in range(draw(st.integers(1, 3))):
        version = draw(st.sampled_from(COMMIT_VERSIONS))
        client_id = draw(st.sampled_from(("c", "c", None, "", "\u00fc")))
        request = draw(_requests)
        frames.append(encode_request(OFFSET_COMMIT, version, draw(st.integers(0, 9)), client_id, request)[4:])
        for _ in range(draw(st.integers(1, 4))):
            frame = bytearray(frames[-1])
            change = draw(st.sampled_from(("again", "offsets", "offsets", "offsets", "byte", "shorter", "longer")))
            if change == "offsets":
                moved = tuple(
                    topic._replace(
                        partitions=tuple(row._replace(committed_offset=draw(_offsets)) for row in topic.partitions)
                    )
                    for topic in request.topics
                )
                request = request._replace(topics=moved)
                number = draw(st.integers(-9, 9))
                frame = bytearray(encode_request(OFFSET_COMMIT, version, number, client_id, request)[4:])
            elif change == "byte":
                # The first four bytes say API and version, which a shape cannot see change.
                frame[draw(st.integers(3, len(frame) - 1))] ^= draw(st.sampled_from((1, 2, 128)))
            elif change == "shorter":
                del frame[-draw(st.integers(1, 3)) :]
            elif change == "longer":
                frame += bytes(draw(st.integers(1, 3)))
            frames.append(bytes(frame))
    return frames


_acts = st.sampled_from(("settle", "settle", "settle one", "hold", "refuse", "minute", "sweep"))


# --- two brokers ----------------------------------------------------------------------------------------------------


def connect(scene: Scene, *, forgetful: bool) -> dict[str, FakeClient]:
    clients = {host: scene.client(host) for host in HOSTS}
    if forgetful:
        for client in clients.values():
            client.shapes = Forgetful()
    return clients


def send(client: FakeClient, frame: bytes) -> type[Exception] | None:
    try:
        client.send_frame(frame)
    except ProtocolError as error:
        return type(error)
    return None


def act(scene: Scene, what: str) -> None:
    if what == "settle":
        scene.log.settle()
    elif what == "settle one":
        scene.log.settle(1)
    elif what == "refuse":
        scene.log.refuse()
    elif what == "minute":
        scene.clock.advance(60_001)
    elif what == "sweep":
        for _ in scene.expiries.sweep():
            pass


def held(group: Group) -> tuple[Any, ...]:
    return group.topics, group.sparse, group.metadata, group.expiries, group.who, group.live, group.version


def state(scene: Scene) -> list[Any]:
    return [
        (
            table.live,
            table.sequence,
            table.version,
            table.newest_ms,
            {name: held(one) for name, one in table.groups.items()},
        )
        for table in scene.broker.slots.tables
    ]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.data(), frames=_frames())
def test_a_broker_with_shapes_does_what_one_without_does(data: st.DataObject, frames: list[bytes]) -> None:
    limits = Limits(slots=4, retention_ms=lambda _: DAY_MS)
    quick, plain = Scene(limits=limits), Scene(limits=limits)
    quick.watch_expiry()
    plain.watch_expiry()
    ours, theirs = connect(quick, forgetful=False), connect(plain, forgetful=True)

    for frame in frames:
        host = data.draw(st.sampled_from((HOSTS[0], *HOSTS)))
        assert send(ours[host], frame) is send(theirs[host], frame)
        what = data.draw(_acts)
        act(quick, what)
        act(plain, what)
        assert [entry for entry, _ in quick.log.held] == [entry for entry, _ in plain.log.held]

    quick.log.settle()
    plain.log.settle()
    assert quick.log.written == plain.log.written
    assert [client.replies for client in ours.values()] == [client.replies for client in theirs.values()]
    assert state(quick) == state(plain)
    assert plain.observed.shape_hits == 0
    event(f"shape hits: {min(quick.observed.shape_hits, 3)}")


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    request=_requests, version=st.sampled_from(COMMIT_VERSIONS), offsets=st.lists(_offsets, min_size=15, max_size=15)
)
def test_what_replay_makes_of_the_log_is_what_was_shown(
    request: OffsetCommitRequest, version: int, offsets: list[int]
) -> None:
    """Live commits apply what their shape prepared; a restart applies the entry's bytes."""
    scene = Scene()
    client = scene.client()
    for start in range(3):
        values = iter(offsets[start:] + offsets[:start])
        moved = tuple(
            topic._replace(partitions=tuple(row._replace(committed_offset=next(values)) for row in topic.partitions))
            for topic in request.topics
        )
        client.send(request._replace(topics=moved), version)
        scene.log.settle()

    again = Scene(scene.log.written)

    assert state(again) == state(scene)


# --- one by one -----------------------------------------------------------------------------------------------------


def commit(offset: int, *, topics: tuple[str, ...] = ("orders",), partitions: range = range(3)) -> OffsetCommitRequest:
    rows = tuple(OffsetCommitRequestPartition(partition_index=number, committed_offset=offset) for number in partitions)
    named = tuple(OffsetCommitRequestTopic(name=name, partitions=rows) for name in topics)
    return OffsetCommitRequest(group_id="g", topics=named)


@pytest.mark.parametrize("topics", [("orders",), ("orders", "other", "third")])
@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_the_second_commit_of_a_shape_is_quick(version: int, topics: tuple[str, ...]) -> None:
    scene = Scene()
    client = scene.client()
    for offset in (1, 2, 3):
        client.send(commit(offset, topics=topics), version)
        scene.log.settle()

    assert scene.observed.shape_hits == 2
    assert scene.observed.commit_requests == 3
    assert scene.observed.commit_partitions == 9 * len(topics)
    assert scene.shown("g") == {(name, number): 3 for name in topics for number in range(3)}
    assert [set(client.codes(number).values()) for number in range(3)] == [{0}] * 3


def test_hosts_and_client_ids_are_written_as_they_are() -> None:
    scene = Scene()
    one, other = scene.client("/10.0.0.1"), scene.client("/10.0.0.2")
    one.send(commit(1), 9, client_id="a")
    one.send(commit(2), 9, client_id="a")
    one.send(commit(3), 9, client_id="b")
    other.send(commit(4), 9, client_id="a")

    assert [Who(*entry[5]) for entry in scene.log.entries()] == [
        Who("a", "/10.0.0.1", ""),
        Who("a", "/10.0.0.1", ""),
        Who("b", "/10.0.0.1", ""),
        Who("a", "/10.0.0.2", ""),
    ]


def test_members_of_a_group_that_look_alike_do_not_push_each_other_out() -> None:
    """Consumers of one program share host, client id and group, and differ in their partitions alone."""
    scene = Scene()
    members = [(scene.client(), commit(1, partitions=range(start, start + 3))) for start in range(0, 30, 3)]
    for offset in range(4):
        for client, request in members:
            rows = tuple(row._replace(committed_offset=offset) for row in request.topics[0].partitions)
            client.send(request._replace(topics=(request.topics[0]._replace(partitions=rows),)), 9)
            scene.log.settle()

    assert scene.observed.shape_hits == 30


def test_a_shape_is_not_used_before_a_clock_that_msgpack_writes_shorter() -> None:
    """A machine without a battery boots in 1970, where a time takes fewer bytes."""
    scene = Scene(wall_ms=1000)
    client = scene.client()
    client.send(commit(1), 9)
    client.send(commit(2), 9)
    scene.log.settle()

    assert scene.observed.shape_hits == 0
    assert [entry[4] for entry in Scene(scene.log.written).log.entries()] == []
    assert scene.shown("g") == {("orders", number): 2 for number in range(3)}


def test_a_strict_broker_refuses_by_shape_what_it_refuses_otherwise() -> None:
    """A topic that was known when the shape was learned may be unknown by now."""
    scene = Scene(
        limits=Limits(slots=4, strict=True, topics_asked_max=1, topic_partitions=3, retention_ms=lambda _: DAY_MS),
        known={"stated": KnownTopic(partitions=3)},
    )
    scene.watch_expiry()
    client = scene.client()
    client.send(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),)), 5)
    first = client.send(commit(1), 9)
    stated = client.send(commit(1, topics=("stated",)), 9)
    scene.log.settle()
    scene.clock.advance(DAY_MS)
    scene.sweep()
    scene.sweep()
    client.send(MetadataRequest(topics=(MetadataRequestTopic(name="next"),)), 5)

    again = client.send(commit(1), 9)
    still = client.send(commit(1, topics=("stated",)), 9)
    scene.log.settle()

    assert [set(client.codes(number).values()) for number in (first, stated, again, still)] == [{0}, {0}, {3}, {0}]


def test_entries_of_other_kinds_never_come_from_a_shape() -> None:
    scene = Scene()
    client = scene.client()
    client.send(commit(1), 9)
    scene.log.settle()
    scene.clock.advance(60_001)
    client.send(commit(1), 9)

    assert [entry[0] for entry in scene.log.entries()] == [Kind.TOUCH]
    assert scene.observed.shape_hits == 1


def frame_of(partition: int, size: int = 60_000) -> bytes:
    """A frame of no API, with its first partition where `shape_of` says."""
    return bytes(100) + partition.to_bytes(4, "big") + bytes(size - 104)


def shape_of() -> tuple[Shapes, Shape]:
    topics = (TopicOffsets("t", bytes(4), bytes(8)),)
    request = OffsetCommitRequest(group_id="g")
    who = Who("", "", "")
    made = Shape(frame_of(0), (104,), version=9, request=request, slot=0, who=who, topics=topics, reply=bytes(12))
    return Shapes(), made


def test_a_full_table_keeps_what_it_has_so_that_some_groups_stay_quick() -> None:
    shapes, shape = shape_of()
    mine, others = shapes.of("/a"), shapes.of("/b")
    room = SHAPES_BYTES_MAX // shape.held_bytes

    for number in range(2 * room):
        shapes.remember("/a", frame_of(number), shape)
    shapes.remember("/b", frame_of(0), shape)

    assert (shapes.count, len(mine), len(others)) == (room, room + 1, 0)
    assert shapes.held_bytes <= SHAPES_BYTES_MAX
    assert not shapes.learns()


def test_a_full_table_that_finds_too_few_is_emptied_and_connections_keep_their_dicts() -> None:
    """A connection that held another dict than the one that is filled would never be quick again."""
    shapes, shape = shape_of()
    mine = shapes.of("/a")
    room = SHAPES_BYTES_MAX // shape.held_bytes
    for number in range(room + 1):
        shapes.remember("/a", frame_of(number), shape)

    answers = [shapes.learns() for _ in range(MISSES_PER_SHAPE * room)]
    emptied = len(mine)
    shapes.remember("/a", frame_of(0), shape)

    assert (answers[:-1], answers[-1]) == ([False] * (MISSES_PER_SHAPE * room - 1), True)
    assert emptied == 0
    assert shapes.of("/a") is mine
    assert len(mine) == 2
    assert shapes.held_bytes == shape.held_bytes


def test_a_shape_that_replaces_another_takes_its_room() -> None:
    shapes, shape = shape_of()
    mine = shapes.of("/a")

    for _ in range(10_000):
        shapes.remember("/a", frame_of(1), shape)

    assert len(mine) == 2
    assert shapes.held_bytes == shape.held_bytes


def test_a_host_that_left_takes_its_shapes_with_it() -> None:
    shapes, shape = shape_of()
    gone = shapes.of("/gone")
    shapes.remember("/gone", frame_of(1), shape)
    before = (shapes.count, shapes.held_bytes)

    del gone

    assert before == (1, shape.held_bytes)
    assert (shapes.count, shapes.held_bytes) == (0, 0)


def test_hosts_that_leave_do_not_cost_those_that_stay_their_shapes() -> None:
    shapes, shape = shape_of()
    mine = shapes.of("/stays")
    shapes.remember("/stays", frame_of(1), shape)

    for number in range(2 * SHAPES_BYTES_MAX // shape.size):
        host = shapes.of(f"/{number}")
        shapes.remember(f"/{number}", frame_of(1), shape)
        del host

    assert len(mine) == 2
