"""The sweep: what it writes, what it leaves alone, and what makes it hesitate."""

from collections.abc import Iterable

import pytest

from offsetd.coordinator.expiry import TRUST_AFTER_MS
from offsetd.coordinator.limits import Limits
from offsetd.record import Kind, Reason
from tests.broker.scene import Scene

DAY_MS = 24 * 3600 * 1000
WEEK_MS = 7 * DAY_MS
ORDERS = ("orders", 0)


def scene_of(groups: Iterable[str] = (), *, retention_ms: int | None = WEEK_MS) -> Scene:
    """A scene with these groups, one offset each, and its expiry clock running."""
    scene = Scene(limits=Limits(slots=4, retention_ms=lambda _: retention_ms))
    for group in groups:
        scene.commit(group, {ORDERS: 1})
    scene.watch_expiry()
    return scene


def keep_alive(scene: Scene, groups: int) -> None:
    """Have so many groups with a fresh offset, so that one old one is a small share."""
    for number in range(groups):
        scene.commit(f"fresh-{number}", {ORDERS: scene.clock.wall_ms()})


def test_an_old_offset_is_removed_by_a_tombstone_that_says_why_and_when_it_is_settled() -> None:
    scene = scene_of(["old"])
    scene.clock.advance(WEEK_MS)
    keep_alive(scene, 20)

    for _ in scene.expiries.sweep():
        pass
    (entry,) = scene.log.entries()
    before = scene.shown("old")
    scene.log.settle()

    assert (entry[0], entry[3], entry[6], entry[7]) == (Kind.TOMBSTONE, "old", Reason.EXPIRED, (("orders", bytes(4)),))
    assert before == {ORDERS: 1}
    assert scene.shown("old") == {}
    assert "old" not in scene.broker.slots.tables[scene.broker.slots.of("old")].groups
    assert (scene.observed.expired_offsets, scene.observed.expired_groups) == (1, 1)


def test_an_offset_a_moment_younger_stays() -> None:
    scene = scene_of(["old"])
    scene.clock.advance(WEEK_MS - 1)
    keep_alive(scene, 20)

    assert scene.sweep() == 0
    assert scene.shown("old") == {ORDERS: 1}


def test_a_group_keeps_what_is_not_expired() -> None:
    scene = scene_of()
    keep_alive(scene, 40)
    scene.commit("g", {ORDERS: 1, ("orders", 1): 1, ("orders", 70_000): 1, ("other", 0): 1})
    scene.clock.advance(WEEK_MS - 1)
    scene.commit("g", {("orders", 1): 1})
    keep_alive(scene, 40)
    scene.clock.advance(1)

    written = scene.sweep()

    assert written == 2
    assert scene.shown("g") == {("orders", 1): 1}
    assert (scene.observed.expired_offsets, scene.observed.expired_groups) == (3, 0)


def test_retention_none_keeps_for_ever_but_for_what_asked_to_go() -> None:
    scene = scene_of(["kept"], retention_ms=None)
    scene.commit("short", {ORDERS: 1}, version=4, retention_ms=1000)
    keep_alive(scene, 20)
    scene.clock.advance(1000 * WEEK_MS)

    scene.sweep()

    assert scene.shown("kept") == {ORDERS: 1}
    assert scene.shown("short") == {}


def test_a_touch_keeps_an_offset_from_growing_old() -> None:
    scene = scene_of(["g"])
    keep_alive(scene, 20)
    scene.clock.advance(WEEK_MS - 1)
    scene.commit("g", {ORDERS: 1})
    keep_alive(scene, 20)
    scene.clock.advance(WEEK_MS - 1)
    keep_alive(scene, 20)

    assert scene.sweep() == 0
    assert scene.shown("g") == {ORDERS: 1}


def test_over_a_tenth_at_once_waits_for_a_second_sweep() -> None:
    old = [f"old-{number}" for number in range(11)]
    scene = scene_of(old)
    scene.clock.advance(WEEK_MS)
    keep_alive(scene, 89)

    first = scene.sweep()
    shown = [scene.shown(group) for group in old]
    second = scene.sweep()

    assert (first, second) == (0, 11)
    assert shown == [{ORDERS: 1}] * 11
    assert [scene.shown(group) for group in old] == [{}] * 11


def test_a_tenth_and_no_more_goes_at_once() -> None:
    old = [f"old-{number}" for number in range(10)]
    scene = scene_of(old)
    scene.clock.advance(WEEK_MS)
    keep_alive(scene, 90)

    assert scene.sweep() == 10


def test_hesitation_is_forgotten_when_a_sweep_finds_little() -> None:
    """Otherwise a second large sweep much later would go through at once."""
    scene = scene_of([f"old-{number}" for number in range(11)])
    scene.clock.advance(WEEK_MS)
    keep_alive(scene, 20)
    first = scene.sweep()
    for number in range(11):
        scene.commit(f"old-{number}", {ORDERS: 2})
    little = scene.sweep()
    scene.clock.advance(WEEK_MS)

    assert (first, little) == (0, 0)
    assert scene.sweep() == 0
    assert scene.sweep() == 31


def test_a_group_with_anything_on_its_way_is_passed_over() -> None:
    scene = scene_of(["old", "busy"])
    scene.clock.advance(WEEK_MS)
    keep_alive(scene, 40)
    client = scene.client()
    client.commit("busy", {ORDERS: 2})

    for _ in scene.expiries.sweep():
        pass

    assert [entry[3] for entry in scene.log.entries()] == ["busy", "old"]
    scene.log.settle()
    assert scene.shown("busy") == {ORDERS: 2}
    assert scene.shown("old") == {}


def test_a_commit_behind_a_tombstone_makes_the_group_anew() -> None:
    scene = scene_of(["old"])
    scene.clock.advance(WEEK_MS)
    keep_alive(scene, 20)
    client = scene.client()
    for _ in scene.expiries.sweep():
        pass
    client.commit("old", {ORDERS: 1})

    scene.log.settle()

    assert [client.codes(0), scene.shown("old")] == [{ORDERS: 0}, {ORDERS: 1}]


def test_a_commit_between_two_slices_of_a_sweep_is_not_swept_away() -> None:
    """A group that went and came back while the sweep was elsewhere has nothing old any more."""
    groups = [f"g-{number}" for number in range(200)]
    scene = scene_of()
    keep_alive(scene, 2500)
    for group in groups:
        scene.commit(group, {ORDERS: 1}, version=4, retention_ms=1000)
    scene.clock.advance(1000)

    written: set[str] = set()
    for turn, _ in enumerate(scene.expiries.sweep()):
        written.update(entry[3] for entry in scene.log.entries())
        scene.log.settle()
        for group in groups[turn::7]:
            if group not in written:
                scene.commit(group, {ORDERS: 2})
                written.add(group)

    kept = {group for group in groups if scene.shown(group)}
    assert kept
    assert all(scene.shown(group) == {ORDERS: 2} for group in kept)
    assert scene.observed.expired_offsets == len(groups) - len(kept)


def test_a_sweep_gives_the_loop_a_turn_after_about_a_thousand_offsets() -> None:
    scene = scene_of()
    rows = {("orders", number): 1 for number in range(100)}
    for number in range(200):
        scene.commit(f"g-{number}", rows)

    slices = sum(1 for _ in scene.expiries.sweep())

    assert slices >= 20


def test_tombstones_refused_by_a_full_disk_expire_nothing_and_come_again() -> None:
    scene = scene_of(["old"])
    scene.clock.advance(WEEK_MS)
    keep_alive(scene, 20)
    for _ in scene.expiries.sweep():
        pass

    scene.log.refuse()
    counted = (scene.observed.expired_offsets, scene.observed.expired_groups)
    shown = scene.shown("old")

    assert (counted, shown) == ((0, 0), {ORDERS: 1})
    assert scene.sweep() == 1
    assert scene.shown("old") == {}


def test_a_topic_of_very_many_partitions_is_removed_in_several_entries() -> None:
    scene = scene_of()
    for start in range(0, 24_000, 6_000):
        scene.commit("g", {("orders", number): 1 for number in range(start, start + 6_000)})
    scene.clock.advance(WEEK_MS)

    scene.sweep()
    written = scene.sweep()

    assert written == 3
    assert scene.shown("g") == {}
    assert (scene.observed.expired_offsets, scene.observed.expired_groups) == (24_000, 1)


@pytest.mark.parametrize("after_ms", [DAY_MS // 2, 3 * DAY_MS])
@pytest.mark.parametrize("jump_ms", [1000 * DAY_MS, -1000 * DAY_MS])
def test_a_clock_that_jumps_expires_nothing(jump_ms: int, after_ms: int) -> None:
    """Neither before it has been steady for long enough to be believed, nor after."""
    scene = scene_of([f"g-{number}" for number in range(5)])
    for _ in range(6):
        scene.clock.advance(after_ms // 6)
        scene.sweep()
    scene.clock.jump(jump_ms)

    written = [scene.sweep() for _ in range(5)]

    assert written == [0] * 5
    assert scene.shown("g-1") == {ORDERS: 1}


def test_a_clock_that_was_wrong_at_the_start_expires_nothing_when_it_is_set_right() -> None:
    """A machine that boots in 1970 and is told the time later: its offsets are as old as the log says."""
    scene = Scene(limits=Limits(slots=4, retention_ms=lambda _: WEEK_MS))
    scene.commit("g", {ORDERS: 1})
    scene.clock.jump(-1000 * DAY_MS)
    scene.watch_expiry()
    first = [scene.sweep(), scene.sweep()]
    scene.clock.advance(60_000)
    scene.clock.jump(1000 * DAY_MS)

    assert first == [0, 0]
    assert [scene.sweep(), scene.sweep()] == [0, 0]
    assert scene.shown("g") == {ORDERS: 1}


def test_after_a_long_stop_expiry_waits_until_the_clock_has_been_steady_for_a_day() -> None:
    scene = Scene(limits=Limits(slots=4, retention_ms=lambda _: WEEK_MS))
    scene.commit("g", {ORDERS: 1})
    scene.clock.advance(30 * DAY_MS)
    scene.watch_expiry()

    early = [scene.sweep(), scene.sweep()]
    scene.clock.advance(TRUST_AFTER_MS)
    late = [scene.sweep(), scene.sweep()]

    assert (early, late) == ([0, 0], [1, 0])


def test_nothing_is_swept_while_a_slot_loads() -> None:
    scene = Scene(loaded=False)

    with pytest.raises(AssertionError, match="every slot is loaded"):
        scene.watch_expiry()
