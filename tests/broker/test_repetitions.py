"""Old consumers send their full vector at every tick: what changes nothing writes nothing, but only then."""

from typing import Any

import pytest

from offsetd.record import Kind
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.broker.scene import COMMIT_VERSIONS, Scene

MINUTE_MS = 60_000
ORDERS = ("orders", 0)
#: Partitions side by side, scattered, and so far apart that they live in a side table.
PLACES = ([0], [0, 1, 2], [0, 2, 5], [3, 1], [0, 2_000_000])


def request(
    partitions: list[int], offset: int = 7, *, epoch: int = -1, metadata: str | None = "", retention_ms: int = -1
) -> OffsetCommitRequest:
    rows = tuple(
        OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            committed_metadata=metadata,
        )
        for number in partitions
    )
    topics = (OffsetCommitRequestTopic(name="orders", partitions=rows),)
    return OffsetCommitRequest(group_id="g", retention_time_ms=retention_ms, topics=topics)


def kinds(scene: Scene) -> list[int]:
    return [entry[0] for entry in scene.log.entries()]


@pytest.mark.parametrize("partitions", PLACES)
@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_repeated_commit_is_acknowledged_and_writes_nothing(version: int, partitions: list[int]) -> None:
    scene = Scene()
    client = scene.client()
    client.send(request(partitions), version)
    scene.log.settle()

    scene.clock.advance(MINUTE_MS)
    again = client.send(request(partitions), version)

    assert client.codes(again) == {("orders", number): 0 for number in partitions}
    assert scene.log.held == []
    assert scene.observed.unchanged_commits == 1


@pytest.mark.parametrize("partitions", PLACES)
def test_a_repetition_over_a_minute_later_writes_one_touch(partitions: list[int]) -> None:
    scene = Scene()
    client = scene.client()
    client.send(request(partitions), 9)
    scene.log.settle()

    scene.clock.advance(MINUTE_MS + 1)
    client.send(request(partitions), 9)
    waiting, touched = client.order(), kinds(scene)
    scene.log.settle()
    scene.clock.advance(MINUTE_MS)
    client.send(request(partitions), 9)

    assert (waiting, touched) == ([0], [Kind.TOUCH])
    assert client.order() == [0, 1, 2]
    assert scene.log.held == []
    group = scene.broker.slots.lookup("g")[1]
    assert group is not None
    rows = [group.get("orders", number) for number in partitions]
    assert {row and row.time_ms for row in rows} == {scene.clock.wall_ms() - MINUTE_MS}


def test_the_oldest_of_the_repeated_partitions_decides() -> None:
    scene = Scene()
    scene.commit("g", {ORDERS: 7})
    scene.clock.advance(MINUTE_MS)
    scene.commit("g", {("orders", 1): 7, ("other", 0): 7})
    scene.clock.advance(1)
    client = scene.client()

    client.commit("g", {("orders", 1): 7, ("other", 0): 7})
    young = kinds(scene)
    client.commit("g", {ORDERS: 7, ("orders", 1): 7, ("other", 0): 7})

    assert young == []
    assert kinds(scene) == [Kind.TOUCH]


def test_a_repetition_behind_anything_on_its_way_is_an_ordinary_commit() -> None:
    """What is on its way may change the offset, so that this commit must follow it in the log."""
    scene = Scene()
    scene.commit("g", {ORDERS: 7})
    client = scene.client()
    client.commit("g", {ORDERS: 8})

    client.commit("g", {ORDERS: 7})
    client.commit("h", {ORDERS: 7})
    written = kinds(scene)
    scene.log.settle()

    assert written == [Kind.COMMIT, Kind.COMMIT, Kind.COMMIT]
    assert scene.shown("g") == {ORDERS: 7}


def test_what_was_refused_is_no_longer_on_its_way() -> None:
    scene = Scene()
    scene.commit("g", {ORDERS: 7})
    client = scene.client()
    client.commit("g", {ORDERS: 8})
    scene.log.refuse()

    again = client.commit("g", {ORDERS: 7})

    assert client.codes(again) == {ORDERS: 0}
    assert scene.log.held == []


@pytest.mark.parametrize("partitions", PLACES)
@pytest.mark.parametrize(
    ("version", "other"),
    [
        (9, {"offset": 8}),
        (9, {"offset": 6}),
        (9, {"metadata": "m"}),
        (9, {"epoch": 3}),
        (4, {"retention_ms": 1000}),
    ],
)
def test_a_commit_of_other_values_writes(version: int, partitions: list[int], other: dict[str, Any]) -> None:
    scene = Scene()
    client = scene.client()
    client.send(request(partitions), version)
    scene.log.settle()

    client.send(request(partitions, **other), version)
    written = kinds(scene)
    scene.log.settle()
    client.send(request(partitions), version)

    assert written == [Kind.COMMIT]
    assert kinds(scene) == [Kind.COMMIT], "and so does the way back"


@pytest.mark.parametrize("partitions", PLACES)
def test_metadata_and_epoch_that_repeat_write_nothing(partitions: list[int]) -> None:
    scene = Scene()
    client = scene.client()
    client.send(request(partitions, metadata="m", epoch=3), 9)
    scene.log.settle()

    client.send(request(partitions, metadata="m", epoch=3), 9)

    assert scene.log.held == []
    assert client.order() == [0, 1]


@pytest.mark.parametrize("partitions", PLACES)
def test_more_partitions_than_are_stored_are_no_repetition(partitions: list[int]) -> None:
    scene = Scene()
    client = scene.client()
    client.send(request(partitions), 9)
    scene.log.settle()

    client.send(request([*partitions, 9]), 9)

    assert kinds(scene) == [Kind.COMMIT]


def test_fewer_partitions_than_are_stored_are_one() -> None:
    scene = Scene()
    client = scene.client()
    client.send(request([0, 1, 2, 5]), 9)
    scene.log.settle()

    client.send(request([1, 2]), 9)
    client.send(request([5, 0]), 9)

    assert scene.log.held == []
    assert client.order() == [0, 1, 2]


def test_a_removed_offset_is_not_repeated_by_the_bytes_it_left_behind() -> None:
    scene = Scene()
    scene.watch_expiry()
    client = scene.client()
    client.send(request([0, 2], retention_ms=1000), 4)
    client.send(request([1]), 4)
    scene.log.settle()
    scene.clock.advance(1000)
    scene.sweep()
    scene.sweep()

    client.send(request([0, 1, 2]), 9)
    dense = kinds(scene)
    scene.log.refuse()
    client.send(request([0, 2]), 9)

    assert scene.shown("g") == {("orders", 1): 7}
    assert (dense, kinds(scene)) == ([Kind.COMMIT], [Kind.COMMIT])


def test_a_time_of_the_clients_own_is_always_written() -> None:
    scene = Scene()
    client = scene.client()
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, commit_timestamp=5)
    own = OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="orders", partitions=(row,)),))
    client.send(own, 1)
    scene.log.settle()

    client.send(own, 1)

    assert kinds(scene) == [Kind.COMMIT]


def test_a_partition_named_twice_is_a_repetition_only_if_both_say_what_is_stored() -> None:
    scene = Scene()
    client = scene.client()
    same = request([3, 3])
    rows = same.topics[0].partitions
    differing = same._replace(
        topics=(OffsetCommitRequestTopic(name="orders", partitions=(rows[0]._replace(committed_offset=1), rows[1])),)
    )
    client.send(same, 9)
    scene.log.settle()

    client.send(same, 9)
    repeated = kinds(scene)
    client.send(differing, 9)
    scene.log.settle()

    assert repeated == []
    assert len(scene.log.written) == 2
    assert scene.shown("g") == {("orders", 3): 7}
