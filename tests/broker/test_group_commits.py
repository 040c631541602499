"""Commits of members: signs of life, and accepted in no other generation than their own, whichever path they take."""

import pytest

from offsetd.coordinator.limits import Limits
from protocol.errors import Code
from tests.broker.consumers import ORDERS, Consumer, pair, state
from tests.broker.scene import Scene

SESSION_MS = 10_000


def scene_of() -> Scene:
    return Scene(limits=Limits(slots=4, initial_rebalance_delay_ms=0))


@pytest.mark.parametrize("known", [False, True], ids=["decoded", "by its shape"])
def test_a_commit_is_a_sign_of_life(known: bool) -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    if known:
        assert member.commit(1) == 0
    scene.clock.advance(SESSION_MS - 1)
    hits = scene.observed.shape_hits
    assert member.commit(2) == 0
    scene.clock.advance(SESSION_MS - 1)

    assert scene.observed.shape_hits - hits == known
    assert member.heartbeat() == 0
    scene.clock.advance(SESSION_MS)
    assert member.heartbeat() == Code.UNKNOWN_MEMBER_ID


def test_a_commit_that_changes_nothing_is_a_sign_of_life_too() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    assert member.commit(1) == 0
    for _ in range(5):
        scene.clock.advance(SESSION_MS - 1)
        assert member.commit(1) == 0

    assert scene.observed.unchanged_commits == 5
    assert member.heartbeat() == 0


def test_a_refused_commit_is_no_sign_of_life() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    scene.clock.advance(SESSION_MS - 1)

    assert member.commit(1, generation_id_or_member_epoch=0) == Code.ILLEGAL_GENERATION
    scene.clock.advance(1)
    assert member.heartbeat() == Code.UNKNOWN_MEMBER_ID


def test_the_commits_of_one_member_keep_no_other_alive() -> None:
    scene = scene_of()
    first, second = pair(scene)
    for offset in range(10):
        scene.clock.advance(SESSION_MS // 10)
        assert first.commit(offset) == 0

    assert second.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert first.heartbeat() == Code.REBALANCE_IN_PROGRESS


def test_a_shape_of_one_generation_is_not_accepted_in_the_next() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    old = member.generation
    assert member.commit(1) == member.commit(2) == 0
    assert scene.observed.shape_hits == 1
    assert member.join().error_code == 0
    assert member.sync({member.member_id: b"all"})[0] == 0

    assert member.commit(3, generation_id_or_member_epoch=old) == Code.ILLEGAL_GENERATION
    assert member.commit(4) == 0
    assert scene.shown("g") == {ORDERS: 4}


def test_a_shape_is_judged_by_the_state_of_the_group() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    assert member.commit(1) == member.commit(2) == 0
    newcomer = Consumer(scene)
    newcomer.send_join()

    assert state(scene) == "PreparingRebalance"
    assert member.commit(3) == member.commit(4) == 0
    old = member.generation
    assert member.join().error_code == 0
    assert state(scene) == "CompletingRebalance"
    assert member.commit(5, generation_id_or_member_epoch=old) == Code.ILLEGAL_GENERATION
    assert member.commit(5) == Code.REBALANCE_IN_PROGRESS
    assert scene.shown("g") == {ORDERS: 4}


def test_a_shape_of_a_member_that_has_gone_is_refused() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    assert member.commit(1) == member.commit(2) == 0
    assert member.leave() == 0

    assert member.commit(3) == Code.UNKNOWN_MEMBER_ID
    scene.log.settle()
    assert scene.broker.groups.memberships == {}
    assert member.commit(3) == Code.UNKNOWN_MEMBER_ID


def test_a_shape_of_a_member_whose_session_is_over_is_refused() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    assert member.commit(1) == member.commit(2) == 0
    scene.clock.advance(SESSION_MS)

    assert member.commit(3) == Code.UNKNOWN_MEMBER_ID


def test_a_shape_of_a_static_member_is_fenced_when_its_twin_has_come() -> None:
    scene = scene_of()
    member = Consumer(scene, instance="blue").settle_alone()
    assert member.commit(1) == member.commit(2) == 0
    twin = Consumer(scene, instance="blue")
    waiting = twin.send_join(9)
    fenced = member.commit(3)
    scene.log.settle()

    assert fenced == Code.FENCED_INSTANCE_ID
    assert twin.joined(waiting).error_code == 0
    assert member.commit(3) == Code.FENCED_INSTANCE_ID
    assert twin.commit(4) == 0


def test_a_shape_from_outside_is_accepted_only_while_nobody_is_there() -> None:
    scene = scene_of()
    outside = scene.client()

    def commit(offset: int) -> int:
        number = outside.commit("g", {ORDERS: offset}, 8)
        scene.log.settle()
        (code,) = outside.codes(number).values()
        return code

    assert commit(1) == commit(2) == 0
    hits = scene.observed.shape_hits
    member = Consumer(scene).settle_alone()
    assert commit(3) == commit(4) == Code.UNKNOWN_MEMBER_ID
    assert member.leave() == 0
    assert commit(5) == 0
    scene.log.settle()

    assert commit(6) == commit(7) == 0
    assert scene.observed.shape_hits > hits
    assert scene.shown("g") == {ORDERS: 7}


def test_a_shape_from_outside_is_refused_while_the_first_members_gather() -> None:
    scene = Scene(limits=Limits(slots=4))
    outside = scene.client()
    numbers = [outside.commit("g", {ORDERS: 1}, 8)]
    scene.log.settle()
    gathering = Consumer(scene)
    gathering.send_join()
    numbers.append(outside.commit("g", {ORDERS: 2}, 8))
    scene.clock.advance(3_000)
    numbers.append(outside.commit("g", {ORDERS: 3}, 8))

    assert [outside.codes(number)[ORDERS] for number in numbers] == [0, 25, 25]


def test_a_commit_that_is_on_its_way_when_a_rebalance_begins_counts() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    number = member.send_commit(7)
    Consumer(scene).send_join()
    joining = member.send_join()
    scene.log.settle()

    assert member.joined(joining).generation_id == 2
    assert member.client.codes(number) == {ORDERS: 0}
    assert scene.shown("g") == {ORDERS: 7}


@pytest.mark.parametrize("version", range(10))
def test_members_commit_in_every_version_that_knows_them(version: int) -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()

    # Version 0 has no place for a generation: it comes from outside.
    assert member.commit(1, version=version) == (Code.UNKNOWN_MEMBER_ID if version == 0 else 0)
    assert member.commit(2, version=version, member_id="m") == Code.UNKNOWN_MEMBER_ID
