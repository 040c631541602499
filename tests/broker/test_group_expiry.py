"""Expiry by Kafka's rules for groups: never what members read, and of an empty group from the moment it became so."""

from offsetd.coordinator.limits import Limits
from offsetd.record import Kind, Reason
from protocol.errors import Code
from tests.broker.consumers import ORDERS, Consumer, listed, state
from tests.broker.scene import Scene

RETENTION_MS = 24 * 3600 * 1000
OLD = ("old", 0)


def scene_of(contents: tuple[bytes, ...] = ()) -> Scene:
    limits = Limits(slots=4, initial_rebalance_delay_ms=0, retention_ms=lambda _: RETENTION_MS)
    scene = Scene(contents, limits=limits)
    # So many that what a test expires is no tenth of all.
    for number in range(60):
        scene.commit(f"fresh-{number}", {ORDERS: number})
    scene.watch_expiry()
    return scene


def pass_time(scene: Scene, ms: int, *members: Consumer) -> None:
    """Let time pass in which these members stay alive, and other groups commit."""
    end_ms = scene.clock.wall_ms() + ms
    while scene.clock.wall_ms() < end_ms:
        scene.clock.advance(min(20 * 60_000, end_ms - scene.clock.wall_ms()))
        for member in members:
            assert member.heartbeat() == 0
    for number in range(60):
        scene.commit(f"fresh-{number}", {ORDERS: scene.clock.wall_ms()})


def reader(scene: Scene, group: str = "g", *topics: str) -> Consumer:
    """Return a member that reads topics and is heard seldom."""
    member = Consumer(scene, group, topics=topics)
    member.session_ms = 1_800_000
    return member.settle_alone()


def group_ids(scene: Scene) -> set[str]:
    return {name for name in listed(scene) if not name.startswith("fresh")}


def test_what_members_read_never_expires_and_what_they_do_not_read_does() -> None:
    scene = scene_of()
    member = reader(scene)
    assert member.commit(1) == member.commit(1, "old") == 0
    pass_time(scene, RETENTION_MS - 1, member)
    early = scene.sweep()
    pass_time(scene, 1, member)
    late = scene.sweep()

    assert (early, late) == (0, 1)
    assert scene.shown("g") == {ORDERS: 1}
    assert state(scene) == "Stable"


def test_nothing_expires_while_a_group_is_not_at_rest() -> None:
    scene = scene_of()
    member = reader(scene)
    member.rebalance_ms = 2**31 - 1
    assert member.commit(1, "old") == 0
    member.join()
    swept = []
    pass_time(scene, RETENTION_MS, member)
    swept.append((state(scene), scene.sweep()))
    Consumer(scene).send_join()
    swept.append((state(scene), scene.sweep()))

    assert swept == [("CompletingRebalance", 0), ("PreparingRebalance", 0)]
    assert scene.shown("g") == {OLD: 1}


def test_nothing_expires_while_it_cannot_be_told_what_members_read() -> None:
    scene = scene_of()
    riddle = Consumer(scene, "riddle")
    riddle.protocols, riddle.session_ms = [("range", b"rubbish")], 1_800_000
    riddle.settle_alone()
    worker = Consumer(scene, "worker")
    worker.kind, worker.session_ms = "connect", 1_800_000
    worker.settle_alone()
    assert riddle.commit(1) == worker.commit(1) == 0
    pass_time(scene, 2 * RETENTION_MS, riddle, worker)

    assert scene.sweep() == 0
    assert scene.shown("riddle") == scene.shown("worker") == {ORDERS: 1}


def test_the_offsets_of_an_empty_group_go_together_a_retention_after_its_last_member() -> None:
    scene = scene_of()
    member = reader(scene)
    assert member.commit(1) == member.commit(1, "old") == 0
    pass_time(scene, 3 * RETENTION_MS, member)
    # Kafka looks at each topic that is not read, so only what is read is still there.
    scene.sweep()
    member.leave()
    scene.log.settle()
    pass_time(scene, RETENTION_MS - 1)
    early = scene.sweep()
    kept = scene.shown("g")
    pass_time(scene, 1)
    for _ in scene.expiries.sweep():
        pass
    (entry,) = scene.log.entries()
    scene.log.settle()

    assert (early, kept) == (0, {ORDERS: 1})
    assert (entry[0], entry[3], entry[6]) == (Kind.GROUP_TOMBSTONE, "g", Reason.EXPIRED)
    assert group_ids(scene) == set()
    assert (scene.observed.expired_offsets, scene.observed.expired_groups) == (2, 1)


def test_a_commit_from_outside_into_an_empty_group_does_not_make_it_live_longer() -> None:
    scene = scene_of()
    member = reader(scene)
    assert member.commit(1) == 0
    member.leave()
    scene.log.settle()
    pass_time(scene, RETENTION_MS - 1)
    scene.commit("g", {ORDERS: 2})
    pass_time(scene, 1)

    assert scene.sweep() == 1
    assert scene.shown("g") == {}


def test_a_member_that_comes_and_goes_begins_the_time_anew() -> None:
    scene = scene_of()
    member = reader(scene)
    assert member.commit(1) == 0
    member.leave()
    scene.log.settle()
    pass_time(scene, RETENTION_MS - 1)
    Consumer(scene).settle_alone().leave()
    scene.log.settle()
    pass_time(scene, RETENTION_MS - 1)
    early = scene.sweep()
    pass_time(scene, 1)

    assert early == 0
    assert scene.sweep() == 1


def test_an_empty_group_without_offsets_goes_with_the_next_sweep() -> None:
    scene = scene_of()
    Consumer(scene).settle_alone().leave()
    scene.log.settle()

    assert group_ids(scene) == {"g"}
    assert scene.sweep() == 1
    assert group_ids(scene) == set()


def test_a_group_that_somebody_is_about_to_join_stays() -> None:
    scene = scene_of()
    Consumer(scene).settle_alone().leave()
    scene.log.settle()
    newcomer = Consumer(scene)
    assert newcomer.join(9).error_code == Code.MEMBER_ID_REQUIRED

    assert scene.sweep() == 0
    assert newcomer.join(9).generation_id == 3


def test_a_group_that_members_have_joined_stays_without_offsets() -> None:
    scene = scene_of()
    member = reader(scene)
    pass_time(scene, 2 * RETENTION_MS, member)

    assert scene.sweep() == 0
    assert member.heartbeat() == 0


def test_offsets_survive_when_the_log_could_not_take_that_the_group_became_empty() -> None:
    """Else they would be as old as the last generation with members, which may be months ago."""
    scene = scene_of()
    member = reader(scene)
    assert member.commit(1) == 0
    pass_time(scene, 3 * RETENTION_MS, member)
    member.leave()
    scene.log.refuse()

    assert scene.sweep() == 0
    scene.clock.advance(1000)
    scene.log.settle()
    pass_time(scene, RETENTION_MS - 1)
    assert scene.sweep() == 0
    assert scene.shown("g") == {ORDERS: 1}
    pass_time(scene, 1)
    assert scene.sweep() == 1


def test_when_a_group_became_empty_is_known_after_a_restart() -> None:
    before = scene_of()
    member = reader(before)
    assert member.commit(1) == 0
    pass_time(before, RETENTION_MS, member)
    member.leave()
    before.log.settle()
    scene = Scene(
        tuple(before.log.written),
        limits=Limits(slots=4, retention_ms=lambda _: RETENTION_MS),
        wall_ms=before.clock.wall_ms(),
    )
    scene.watch_expiry()
    pass_time(scene, RETENTION_MS - 1)
    early = scene.sweep()
    pass_time(scene, 1)

    assert early == 0
    assert scene.sweep() == 1
    assert scene.shown("g") == {}


def test_a_removal_by_expiry_that_the_log_refuses_is_made_good_by_the_next_sweep() -> None:
    scene = scene_of()
    member = reader(scene)
    assert member.commit(1) == 0
    member.leave()
    scene.log.settle()
    pass_time(scene, RETENTION_MS)
    for _ in scene.expiries.sweep():
        pass
    scene.log.refuse()
    kept = scene.shown("g")

    assert kept == {ORDERS: 1}
    assert scene.sweep() == 1
    assert group_ids(scene) == set()


def test_who_joins_while_its_group_is_being_removed_is_in_a_new_one() -> None:
    scene = scene_of()
    member = reader(scene)
    assert member.commit(1) == 0
    member.leave()
    scene.log.settle()
    pass_time(scene, RETENTION_MS)
    for _ in scene.expiries.sweep():
        pass
    newcomer = Consumer(scene)
    joined = newcomer.join()
    scene.log.settle()

    assert joined.generation_id == 1
    assert newcomer.sync({newcomer.member_id: b"x"}) == (0, b"x")
    assert scene.shown("g") == {}
