"""Generations and the log: what is written, what a refusal brings about, and what a restart finds."""

from structlog.testing import capture_logs

from offsetd.coordinator.limits import Limits
from offsetd.record import ENTRY_BYTES_MAX, Kind, read_generation
from protocol.errors import Code
from tests.broker.consumers import ORDERS, Consumer, describe, listed, pair, state
from tests.broker.scene import Scene

LIMITS = Limits(slots=4, initial_rebalance_delay_ms=0)
SESSION_MS = 10_000


def scene_of(contents: tuple[bytes, ...] = (), *, limits: Limits = LIMITS) -> Scene:
    return Scene(contents, limits=limits)


def restarted(scene: Scene) -> Scene:
    """Return a broker that finds what this one has written."""
    return scene_of(tuple(scene.log.written))


def moved(member: Consumer, scene: Scene) -> Consumer:
    """Connect a member to another broker."""
    member.scene, member.client = scene, scene.client()
    return member


def test_a_complete_generation_is_one_entry_and_parts_are_given_out_when_it_is_settled() -> None:
    scene = scene_of()
    first, second = Consumer(scene), Consumer(scene)
    first.join()
    first.sync({})
    waiting = second.send_join()
    first.join()
    second.joined(waiting)
    asked = second.send_sync()
    brought = first.send_sync({first.member_id: b"1", second.member_id: b"2", "stranger": b"3"})
    before = (list(second.client.replies), state(scene))
    (entry,) = scene.log.entries()
    scene.log.settle()
    generation = read_generation(entry[6])

    assert (len(before[0]), before[1]) == (1, "CompletingRebalance")
    assert (entry[0], entry[3]) == (Kind.GROUP, "g")
    assert (generation.protocol_type, generation.generation, generation.protocol) == ("consumer", 2, "range")
    assert generation.leader == first.member_id
    assert [(row.member_id, row.assignment) for row in generation.members] == [
        (first.member_id, b"1"),
        (second.member_id, b"2"),
    ]
    assert (first.synced(brought), second.synced(asked)) == ((0, b"1"), (0, b"2"))
    assert state(scene) == "Stable"


def test_members_go_on_after_a_restart_with_fresh_sessions_and_without_a_rebalance() -> None:
    before = scene_of()
    first, second = pair(before)
    first.commit(7)
    before.clock.advance(SESSION_MS - 1)
    scene = restarted(before)
    moved(first, scene)
    moved(second, scene)
    scene.clock.advance(SESSION_MS - 1)

    assert (first.heartbeat(), second.heartbeat()) == (0, 0)
    assert first.commit(8) == 0
    assert second.sync() == (0, b"two")
    assert second.join().generation_id == 2
    assert state(scene) == "Stable"
    assert scene.shown("g") == {ORDERS: 8}
    assert scene.log.entries() == []


def test_a_member_that_is_not_heard_after_a_restart_is_missed_when_its_session_is_over() -> None:
    before = scene_of()
    first, second = pair(before)
    scene = restarted(before)
    moved(first, scene)
    moved(second, scene)
    scene.clock.advance(SESSION_MS - 1)
    assert first.heartbeat() == 0
    scene.clock.advance(1)

    assert second.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert first.heartbeat() == Code.REBALANCE_IN_PROGRESS


def test_a_group_that_was_empty_goes_on_with_its_generations_after_a_restart() -> None:
    before = scene_of()
    member = Consumer(before).settle_alone()
    member.leave()
    before.log.settle()
    scene = restarted(before)

    assert scene.broker.groups.memberships == {}
    assert listed(scene) == {"g": ("Empty", "consumer")}
    assert Consumer(scene).join().generation_id == 3


def test_a_restart_in_the_middle_brings_back_the_last_complete_generation() -> None:
    before = scene_of()
    first, second = pair(before)
    newcomer = Consumer(before)
    newcomer.send_join()
    first.send_join()
    second.send_join()
    scene = restarted(before)
    moved(first, scene)

    assert [len(group.members) for group in describe(scene, "g")] == [2]
    assert first.heartbeat() == 0
    assert moved(newcomer, scene).heartbeat() == Code.UNKNOWN_MEMBER_ID


def test_a_full_disk_refuses_a_generation_and_the_group_recovers() -> None:
    scene = scene_of()
    first, second = pair(scene)
    joining = first.send_join()
    second.join()
    first.joined(joining)
    asked = second.send_sync()
    brought = first.send_sync({first.member_id: b"1", second.member_id: b"2"})
    scene.log.refuse()

    assert first.synced(brought)[0] == second.synced(asked)[0] == Code.COORDINATOR_NOT_AVAILABLE
    assert first.heartbeat() == second.heartbeat() == Code.REBALANCE_IN_PROGRESS
    joining = first.send_join()
    assert second.join().error_code == first.joined(joining).error_code == 0
    assert first.sync({first.member_id: b"1", second.member_id: b"2"}) == (0, b"1")
    assert second.sync() == (0, b"2")
    assert state(scene) == "Stable"


def test_a_generation_that_no_entry_can_hold_is_refused_and_the_group_goes_on() -> None:
    scene = scene_of()
    first, second = pair(scene)
    other = Consumer(scene, "other").settle_alone()
    joining = first.send_join()
    second.join()
    first.joined(joining)
    asked = second.send_sync()
    with capture_logs() as logs:
        brought = first.send_sync({first.member_id: bytes(ENTRY_BYTES_MAX), second.member_id: b"2"})

    assert first.synced(brought)[0] == second.synced(asked)[0] == Code.UNKNOWN_SERVER_ERROR
    assert [line["event"] for line in logs] == ["generation_too_large"]
    assert scene.log.entries() == []
    assert other.heartbeat() == 0
    joining = first.send_join()
    assert second.join().error_code == first.joined(joining).error_code == 0
    assert first.sync({first.member_id: bytes(ENTRY_BYTES_MAX // 2)})[0] == 0


def test_members_that_left_while_the_disk_was_full_do_not_come_back() -> None:
    scene = scene_of()
    first, second = pair(scene)
    first.leave()
    second.leave()
    scene.log.refuse()
    empty = state(scene)
    newcomer = Consumer(scene)
    joined = newcomer.join()

    assert empty == "Empty"
    assert joined.generation_id == 4
    assert [row.member_id for row in joined.members] == [newcomer.member_id]


def test_that_a_group_is_empty_is_written_as_soon_as_the_disk_has_room_again() -> None:
    scene = scene_of()
    Consumer(scene).settle_alone().leave()
    scene.log.refuse()
    for _ in range(3):
        scene.clock.advance(1000)
        scene.log.refuse()
    scene.clock.advance(999)
    early = scene.log.entries()
    scene.clock.advance(1)
    written = scene.log.settle()

    assert early == []
    assert written == 1
    assert scene.broker.groups.memberships == {}
    assert restarted(scene).broker.groups.memberships == {}


def test_a_static_member_that_comes_back_is_known_to_the_log_before_it_is_answered() -> None:
    before = scene_of()
    member = Consumer(before, instance="blue").settle_alone()
    old = member.member_id
    twin = Consumer(before, instance="blue")
    waiting = twin.send_join(9)
    early = list(twin.client.replies)
    before.log.settle()
    answer = twin.joined(waiting)
    scene = restarted(before)

    assert early == []
    assert (answer.error_code, answer.skip_assignment, answer.leader) == (0, True, twin.member_id)
    assert moved(twin, scene).heartbeat() == 0
    assert moved(member, scene).heartbeat() == Code.FENCED_INSTANCE_ID
    assert member.member_id == old != twin.member_id


def test_nothing_is_kept_of_groups_that_are_gone() -> None:
    scene = scene_of()
    groups = scene.broker.groups
    for number in range(5):
        member = Consumer(scene, f"g{number}").settle_alone()
        member.leave()
        scene.log.settle()
        asker = Consumer(scene, f"asked{number}")
        asker.join(9)
        giver = Consumer(scene, f"given back{number}")
        giver.join(9)
        giver.leave()
        refused = Consumer(scene, f"refused{number}")
        refused.protocols = []
        refused.join()
    left = set(groups.memberships)
    scene.clock.advance(SESSION_MS)
    scene.run()
    scene.clock.advance(60_000)
    scene.run()

    assert left == {f"asked{number}" for number in range(5)}
    assert not any((groups.memberships, groups._looked_for, groups._due, groups._marked))
    assert listed(scene) == {f"g{number}": ("Empty", "consumer") for number in range(5)}


def test_an_empty_group_is_let_go_though_commits_are_on_their_way() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    member.leave()
    outside = scene.client()
    outside.commit("g", {ORDERS: 1})
    scene.log.settle(1)

    assert scene.broker.groups.memberships == {}
    scene.log.settle()
    assert scene.shown("g") == {ORDERS: 1}


def test_timers_of_many_groups_do_not_get_in_each_others_way() -> None:
    scene = scene_of()
    members = []
    for number in range(20):
        member = Consumer(scene, f"g{number}")
        member.session_ms = 6_000 + 100 * (number * 7 % 20)
        members.append(member.settle_alone())
    gone = []
    for _ in range(20):
        gone.append(sum(state(scene, member.group) == "Empty" for member in members))
        scene.clock.advance(100)
    scene.clock.advance(4_000)
    counts = []
    for _ in range(20):
        counts.append(sum(state(scene, member.group) == "Empty" for member in members))
        scene.clock.advance(100)

    assert gone == [0] * 20
    assert counts == list(range(1, 21))
