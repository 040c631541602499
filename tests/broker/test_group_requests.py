"""Members' requests from frame to reply: what is refused before a group is asked, every version, and turns."""

import pytest
from structlog.testing import capture_logs

from offsetd.coordinator.limits import Limits
from protocol.api import APIS, CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from protocol.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.errors import Code
from protocol.list_groups import ListGroupsRequest
from tests.broker.consumers import Consumer, delete_offsets, describe, listed, pair, send_delete, state
from tests.broker.scene import Scene

ANSWERED_AT_ONCE = Limits(slots=4, initial_rebalance_delay_ms=0)
LONG = "n" * 1025


def scene_of(*, loaded: bool = True) -> Scene:
    return Scene(limits=ANSWERED_AT_ONCE, loaded=loaded)


def versions(api: int) -> range:
    return range(APIS[api].min_version, APIS[api].max_version + 1)


# --- before a group is asked ------------------------------------------------------------------------------------------


def test_while_a_slot_loads_heartbeats_are_well_and_all_else_is_put_off() -> None:
    scene = scene_of(loaded=False)
    member = Consumer(scene)
    member.member_id, member.generation = "m", 3
    deletion = send_delete(scene, "g")

    assert member.heartbeat() == Code.NONE
    assert member.join().error_code == Code.COORDINATOR_LOAD_IN_PROGRESS
    assert member.sync() == (Code.COORDINATOR_LOAD_IN_PROGRESS, b"")
    assert member.leave(version=2) == Code.COORDINATOR_LOAD_IN_PROGRESS
    assert [group.error_code for group in describe(scene, "g")] == [Code.COORDINATOR_LOAD_IN_PROGRESS]
    assert deletion.codes() == {"g": Code.COORDINATOR_LOAD_IN_PROGRESS}
    assert delete_offsets(scene, "g", {"orders": (0,)}) == (Code.COORDINATOR_LOAD_IN_PROGRESS, {})


def test_what_is_wrong_with_a_request_is_said_while_its_slot_loads() -> None:
    scene = scene_of(loaded=False)
    nameless, hasty = Consumer(scene, ""), Consumer(scene)
    hasty.session_ms = 5999

    assert nameless.join().error_code == Code.INVALID_GROUP_ID
    assert nameless.heartbeat() == Code.INVALID_GROUP_ID
    assert hasty.join().error_code == Code.INVALID_SESSION_TIMEOUT
    assert delete_offsets(scene, "", {"orders": (0,)}) == (Code.INVALID_GROUP_ID, {})


@pytest.mark.parametrize("group", ["", LONG])
def test_members_need_a_group_with_a_name_that_a_group_can_have(group: str) -> None:
    scene = scene_of()
    member = Consumer(scene, group)

    assert member.join().error_code == Code.INVALID_GROUP_ID
    assert member.sync()[0] == Code.INVALID_GROUP_ID
    assert member.heartbeat() == Code.INVALID_GROUP_ID
    assert member.leave(version=2) == Code.INVALID_GROUP_ID
    assert scene.broker.groups.memberships == {}


@pytest.mark.parametrize(("session_ms", "code"), [(5999, 26), (6000, 0), (1_800_000, 0), (1_800_001, 26), (-1, 26)])
def test_a_session_has_its_bounds(session_ms: int, code: int) -> None:
    member = Consumer(scene_of())
    member.session_ms = session_ms

    assert member.join().error_code == code


@pytest.mark.parametrize(
    "other",
    [
        {"protocol_type": LONG},
        {"group_instance_id": LONG},
        {"group_instance_id": "ä" * 513},
    ],
)
def test_names_that_older_answers_could_not_show_are_refused(other: dict[str, str]) -> None:
    scene = scene_of()
    member = Consumer(scene)

    assert member.join(9, **other).error_code == Code.INVALID_REQUEST
    assert scene.broker.groups.memberships == {}


def test_protocols_are_bounded_by_name_size_and_number() -> None:
    scene = scene_of()
    mebibyte = bytes((1 << 20) - 64)
    codes: list[int] = []
    for protocols in (
        [(LONG, b"")],
        [("range", mebibyte + b"x")],
        [("range", b""), ("other", mebibyte)],
        [(str(number), b"") for number in range(20_000)],
        [("range", mebibyte)],
    ):
        member = Consumer(scene, f"g{len(codes)}")
        member.protocols = protocols
        codes.append(member.join(3).error_code)

    assert codes == [Code.INVALID_REQUEST] * 4 + [Code.NONE]


def test_what_members_of_all_groups_say_is_bounded_and_who_says_little_is_let_in() -> None:
    """Otherwise a stranger could fill the memory, a mebibyte with each group that it makes up."""
    scene = Scene(limits=Limits(slots=4, initial_rebalance_delay_ms=0, excess_bytes_max=100_000))
    first, second, third, fourth = members = [Consumer(scene, name) for name in "abcd"]
    for member in members:
        member.protocols = [("range", bytes(44_000))]
    with capture_logs() as logs:
        codes = [member.join().error_code for member in (first, second, third, first)]
        modest = Consumer(scene, "e").join().error_code
        first.leave()
        codes += [third.join().error_code, fourth.join().error_code]

    assert codes == [0, 0, Code.COORDINATOR_NOT_AVAILABLE, 0, 0, Code.COORDINATOR_NOT_AVAILABLE]
    assert modest == 0
    assert {line["event"] for line in logs} == {"join_refused"}


def test_what_members_said_is_counted_anew_after_a_restart() -> None:
    limits = Limits(slots=4, initial_rebalance_delay_ms=0, excess_bytes_max=50_000)
    before = Scene(limits=limits)
    large = Consumer(before, "a")
    large.protocols = [("range", bytes(44_000))]
    large.settle_alone()
    scene = Scene(tuple(before.log.written), limits=limits)
    other = Consumer(scene, "b")
    other.protocols = large.protocols
    codes = [other.join().error_code]
    scene.clock.advance(10_000)
    codes.append(other.join().error_code)

    assert codes == [Code.COORDINATOR_NOT_AVAILABLE, 0]


def test_a_client_with_a_very_long_name_breaks_no_answer_in_any_version() -> None:
    """A member id holds the client's name, and some versions write its length in two bytes."""
    scene = scene_of()
    member, other = Consumer(scene), Consumer(scene)
    member.join(3)
    waiting = other.send_join(3, client_id="n" * 32_767)
    together = member.join(0)

    assert other.joined(waiting).error_code == together.error_code == 0
    assert len(together.members) == 2
    assert all(len(row.member_id) < 300 for row in together.members)
    assert [len(describe(scene, "g", version=version)[0].members) for version in range(7)] == [2] * 7
    assert member.client.faults == other.client.faults == []


def test_a_sync_that_has_to_name_the_protocol_and_does_not_is_refused_before_anything_else() -> None:
    member = Consumer(scene_of())
    member.member_id, member.generation = "m", 3

    assert member.sync(version=5, protocol_type=None)[0] == Code.INCONSISTENT_GROUP_PROTOCOL
    assert member.sync(version=5, protocol_name=None)[0] == Code.INCONSISTENT_GROUP_PROTOCOL
    assert member.sync(version=5)[0] == Code.UNKNOWN_MEMBER_ID


# --- every version ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(JOIN_GROUP))
def test_a_member_joins_in_every_version(version: int) -> None:
    scene = scene_of()
    member = Consumer(scene)
    first = member.join(version)
    if version >= 4:
        assert (first.error_code, first.generation_id, first.members) == (Code.MEMBER_ID_REQUIRED, -1, ())
        first = member.join(version)

    assert (first.error_code, first.generation_id, first.protocol_name) == (0, 1, "range")
    assert first.leader == first.member_id == member.member_id
    assert [row.member_id for row in first.members] == [member.member_id]
    assert first.protocol_type == ("consumer" if version >= 7 else None)
    assert not first.skip_assignment
    assert member.sync({member.member_id: b"x"}) == (0, b"x")


@pytest.mark.parametrize("version", versions(JOIN_GROUP))
def test_a_refused_join_shows_what_was_sent_and_no_protocol(version: int) -> None:
    member = Consumer(scene_of())
    member.member_id = "m"
    refused = member.join(version)

    assert (refused.error_code, refused.member_id, refused.generation_id) == (Code.UNKNOWN_MEMBER_ID, "m", -1)
    assert (refused.leader, refused.members) == ("", ())
    assert refused.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", versions(SYNC_GROUP))
def test_a_member_gets_its_part_in_every_version(version: int) -> None:
    member = Consumer(scene_of())
    member.join()

    assert member.sync({member.member_id: b"part", "stranger": b"no"}, version) == (0, b"part")
    assert member.sync({member.member_id: b"other"}, version) == (0, b"part")
    assert member.sync(version=version, generation_id=7) == (Code.ILLEGAL_GENERATION, b"")


@pytest.mark.parametrize("version", versions(HEARTBEAT))
def test_a_heartbeat_is_answered_in_every_version(version: int) -> None:
    scene = scene_of()
    first, second = pair(scene)

    assert first.heartbeat(version) == 0
    assert first.heartbeat(version, generation_id=1) == Code.ILLEGAL_GENERATION
    assert first.heartbeat(version, member_id="m") == Code.UNKNOWN_MEMBER_ID
    assert second.leave() == 0
    assert first.heartbeat(version) == Code.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("version", versions(LEAVE_GROUP))
def test_a_member_leaves_in_every_version(version: int) -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()

    assert member.leave(version) == 0
    assert member.leave(version) == Code.UNKNOWN_MEMBER_ID
    scene.log.settle()
    assert state(scene) == "Empty"
    assert member.leave(version) == Code.UNKNOWN_MEMBER_ID


def test_version_0_has_one_patience_for_sessions_and_rebalances() -> None:
    scene = scene_of()
    old = Consumer(scene)
    old.session_ms, old.rebalance_ms = 20_000, 60_000
    old.join(0)
    old.sync({})
    newcomer = Consumer(scene)
    newcomer.rebalance_ms = 1
    waiting = newcomer.send_join()
    old.heartbeat()
    scene.clock.advance(19_999)
    early = list(newcomer.client.replies)
    scene.clock.advance(1)

    assert early == []
    assert newcomer.joined(waiting).error_code == 0


# --- turns ------------------------------------------------------------------------------------------------------------


def test_what_comes_behind_a_held_join_on_its_connection_is_done_and_answered_after_it() -> None:
    scene = scene_of()
    first = Consumer(scene).settle_alone()
    second = Consumer(scene)
    waiting = second.send_join()
    behind = second.client.commit("elsewhere", {("orders", 0): 7})
    scene.log.settle()
    before = list(second.client.replies)
    first.join()

    assert before == []
    assert scene.shown("elsewhere") == {("orders", 0): 7}
    assert second.client.order() == [waiting, behind]


def test_a_held_join_answers_while_another_request_of_its_connection_is_before_it() -> None:
    scene = scene_of()
    first = Consumer(scene).settle_alone()
    second = Consumer(scene)
    before = second.client.commit("elsewhere", {("orders", 0): 7})
    waiting = second.send_join()
    first.join()
    early = list(second.client.replies)
    scene.log.settle()

    assert early == []
    assert second.client.order() == [before, waiting]
    assert second.joined(waiting).generation_id == 2


def test_two_members_on_one_connection_do_not_wait_for_one_another() -> None:
    scene = scene_of()
    first, second = Consumer(scene).settle_alone(), Consumer(scene)
    second.client = first.client
    waiting = second.send_join()
    again = first.send_join()

    assert second.joined(waiting).generation_id == 2
    assert first.joined(again).generation_id == 2


def test_a_member_whose_connection_is_gone_while_its_join_is_held_is_counted_in() -> None:
    scene = scene_of()
    first = Consumer(scene).settle_alone()
    lost = Consumer(scene)
    lost.send_join()
    lost.client.turns.drop()
    joined = first.join()

    assert len(joined.members) == 2
    assert lost.client.replies == []
    scene.clock.advance(10_000)
    assert first.heartbeat() == Code.UNKNOWN_MEMBER_ID
    assert state(scene) == "Empty"


def test_the_older_of_two_held_requests_is_answered() -> None:
    scene = scene_of()
    Consumer(scene).settle_alone()
    second = Consumer(scene)
    second.member_id = second.join(4).member_id
    older, newer = second.send_join(4), second.send_join(4)

    assert second.client.order() == [0, older]
    assert second.joined(older).error_code == Code.REBALANCE_IN_PROGRESS
    assert newer not in second.client.order()


def test_every_held_request_is_answered_when_the_broker_stops() -> None:
    scene = scene_of()
    first, second = pair(scene)
    joining = first.send_join()
    again = second.join()
    syncing = second.send_sync()
    Consumer(scene, "other").settle_alone()
    newcomer = Consumer(scene, "other")
    waiting = newcomer.send_join()

    scene.broker.groups.stop()

    assert (first.joined(joining).error_code, again.error_code) == (0, 0)
    assert second.synced(syncing)[0] == Code.COORDINATOR_NOT_AVAILABLE
    assert newcomer.joined(waiting).error_code == Code.COORDINATOR_NOT_AVAILABLE
    assert not any(member.client.turns.queue for member in (first, second, newcomer))


def test_groups_are_listed_when_all_slots_are_loaded_and_not_before() -> None:
    scene = scene_of(loaded=False)
    client = scene.client()
    number = client.send(ListGroupsRequest(), 5)

    assert client.answer(number).error_code == Code.COORDINATOR_LOAD_IN_PROGRESS
    scene.load()
    assert listed(scene) == {}


# --- the newer protocol -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("version", versions(CONSUMER_GROUP_HEARTBEAT))
def test_the_newer_protocol_is_refused_in_a_way_that_every_client_takes_for_final(version: int, loaded: bool) -> None:
    """And leaves nothing behind."""
    scene = scene_of(loaded=loaded)
    client = scene.client()

    answer = client.answer(client.send(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"), version))

    assert (answer.error_code, answer.assignment) == (Code.UNSUPPORTED_VERSION, None)
    assert "group.protocol=classic" in answer.error_message
    scene.load()
    assert listed(scene) == {}
