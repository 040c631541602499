"""DeleteGroups and OffsetDelete at the broker: what is on its way counts, and what the log refuses has not happened."""

from offsetd.coordinator.limits import Limits
from offsetd.record import Kind, Reason
from protocol.errors import Code
from tests.broker.consumers import (
    ORDERS,
    Consumer,
    delete_offsets,
    listed,
    pair,
    send_delete,
    send_delete_offsets,
    state,
)
from tests.broker.scene import Scene

LIMITS = Limits(slots=4, initial_rebalance_delay_ms=0)
PAYMENTS = ("payments", 0)


def scene_of(*groups: str) -> Scene:
    scene = Scene(limits=LIMITS)
    for group in groups:
        scene.commit(group, {ORDERS: 1, PAYMENTS: 2})
    return scene


def emptied(scene: Scene, group: str = "g") -> None:
    """Leave a group that had members, with offsets."""
    member = Consumer(scene, group).settle_alone()
    assert member.commit(5) == 0
    assert member.leave() == 0
    scene.log.settle()


# --- groups -----------------------------------------------------------------------------------------------------------


def test_a_group_is_deleted_with_all_that_it_holds_when_that_is_settled() -> None:
    scene = scene_of("g")
    deletion = send_delete(scene, "g")
    before = (deletion.is_answered(), scene.shown("g"))
    (entry,) = scene.log.entries()
    scene.log.settle()

    assert before == (False, {ORDERS: 1, PAYMENTS: 2})
    assert (entry[0], entry[3], entry[6]) == (Kind.GROUP_TOMBSTONE, "g", Reason.DELETED)
    assert deletion.codes() == {"g": 0}
    assert scene.shown("g") == {}
    assert listed(scene) == {}


def test_a_group_that_is_being_deleted_is_gone_for_the_next_deletion() -> None:
    scene = scene_of("g")
    first = send_delete(scene, "g")
    second = send_delete(scene, "g")
    early = (first.is_answered(), second.codes())
    scene.log.settle()

    assert early == (False, {"g": Code.GROUP_ID_NOT_FOUND})
    assert first.codes() == {"g": 0}
    assert send_delete(scene, "g").codes() == {"g": Code.GROUP_ID_NOT_FOUND}


def test_a_group_whose_first_commit_is_on_its_way_can_be_deleted() -> None:
    scene = scene_of()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    deletion = send_delete(scene, "g")
    scene.log.settle()

    assert client.codes(0) == {ORDERS: 0}
    assert deletion.codes() == {"g": 0}
    assert scene.shown("g") == {}


def test_a_commit_behind_a_deletion_makes_the_group_anew() -> None:
    scene = scene_of("g")
    deletion = send_delete(scene, "g")
    client = scene.client()
    client.commit("g", {ORDERS: 9})
    again = send_delete(scene, "g")
    client.commit("g", {ORDERS: 10})
    scene.log.settle()

    assert deletion.codes() == again.codes() == {"g": 0}
    assert scene.shown("g") == {ORDERS: 10}


def test_each_group_is_answered_for_itself_and_once() -> None:
    scene = scene_of("simple")
    emptied(scene, "empty")
    pair(scene, "stable")
    deletion = send_delete(scene, "simple", "stable", "nobody", "empty", "simple", "n" * 5000, "")
    early = deletion.is_answered()
    scene.log.settle()

    assert not early
    assert deletion.codes() == {
        "simple": 0,
        "stable": Code.NON_EMPTY_GROUP,
        "nobody": Code.GROUP_ID_NOT_FOUND,
        "empty": 0,
        "n" * 5000: Code.GROUP_ID_NOT_FOUND,
        "": Code.GROUP_ID_NOT_FOUND,
    }
    assert set(listed(scene)) == {"stable"}


def test_a_deletion_of_nothing_is_answered_at_once() -> None:
    assert send_delete(scene_of()).codes() == {}


def test_a_group_may_not_be_deleted_in_any_state_with_members() -> None:
    scene = scene_of()
    member = Consumer(scene)
    member.join()
    codes = [(state(scene), send_delete(scene, "g").codes()["g"])]
    member.sync({})
    codes.append((state(scene), send_delete(scene, "g").codes()["g"]))
    Consumer(scene).send_join()
    codes.append((state(scene), send_delete(scene, "g").codes()["g"]))

    assert codes == [
        ("CompletingRebalance", Code.NON_EMPTY_GROUP),
        ("Stable", Code.NON_EMPTY_GROUP),
        ("PreparingRebalance", Code.NON_EMPTY_GROUP),
    ]


def test_generations_begin_anew_in_a_group_that_was_deleted_also_while_that_is_on_its_way() -> None:
    scene = scene_of()
    emptied(scene)
    deletion = send_delete(scene, "g")
    early = Consumer(scene).join()
    scene.log.settle()

    assert deletion.codes() == {"g": 0}
    assert early.generation_id == 1
    assert state(scene) == "CompletingRebalance"


def test_an_id_that_was_given_out_is_gone_with_its_group() -> None:
    scene = scene_of()
    newcomer = Consumer(scene)
    assert newcomer.join(9).error_code == Code.MEMBER_ID_REQUIRED
    deletion = send_delete(scene, "g")
    scene.log.settle()

    assert deletion.codes() == {"g": 0}
    assert newcomer.join(9).error_code == Code.UNKNOWN_MEMBER_ID


def test_a_deletion_that_the_log_refuses_leaves_the_group_as_it_was() -> None:
    scene = scene_of()
    emptied(scene)
    newcomer = Consumer(scene)
    assert newcomer.join(9).error_code == Code.MEMBER_ID_REQUIRED
    deletion = send_delete(scene, "g")
    scene.log.refuse()

    assert deletion.codes() == {"g": Code.COORDINATOR_NOT_AVAILABLE}
    assert scene.shown("g") == {ORDERS: 5}
    assert newcomer.join(9).generation_id == 3


def test_a_group_whose_emptiness_and_deletion_are_refused_has_no_members_for_all_that() -> None:
    scene = scene_of()
    member = Consumer(scene).settle_alone()
    member.leave()
    scene.log.refuse()
    send_delete(scene, "g")
    scene.log.refuse()
    scene.clock.advance(1000)
    scene.log.settle()

    assert state(scene) == "Empty"
    assert Consumer(scene).join().generation_id == 3


def test_who_joined_while_a_deletion_was_on_its_way_stays_when_it_is_refused() -> None:
    scene = scene_of()
    emptied(scene)
    send_delete(scene, "g")
    member = Consumer(scene)
    member.join()
    scene.log.refuse()

    assert member.sync({member.member_id: b"x"}) == (0, b"x")
    assert state(scene) == "Stable"
    assert scene.shown("g") == {ORDERS: 5}


def test_a_deletion_waits_for_its_turn() -> None:
    scene = scene_of("g")
    client = scene.client()
    first = client.commit("elsewhere", {ORDERS: 1})
    from_same = send_delete(scene, "g")
    fetched = client.fetch("g", [ORDERS])
    scene.log.settle()

    assert client.order() == [first, fetched]
    assert from_same.codes() == {"g": 0}


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_are_deleted_by_one_entry_and_unknown_ones_by_none() -> None:
    scene = scene_of("g")
    written = len(scene.log.written)

    assert delete_offsets(scene, "g", {"orders": (0,), "payments": (0,)}) == (0, {ORDERS: 0, PAYMENTS: 0})
    assert len(scene.log.written) == written + 1
    assert scene.shown("g") == {}


def test_what_there_is_not_needs_no_entry() -> None:
    scene = scene_of("g", "h")
    scene.commit("h", {("orders", 3): 1})
    written = len(scene.log.written)

    assert delete_offsets(scene, "g", {"orders": (3,)}) == (0, {("orders", 3): 0})
    assert delete_offsets(scene, "g", {"nowhere": (0,)}) == (0, {("nowhere", 0): Code.UNKNOWN_TOPIC_OR_PARTITION})
    assert len(scene.log.written) == written


def test_an_offset_that_is_on_its_way_is_deleted_too() -> None:
    scene = scene_of("g", "h")
    client = scene.client()
    client.commit("g", {("orders", 0): 8})
    code, codes = delete_offsets(scene, "g", {"orders": (0,)})

    assert (code, codes) == (0, {ORDERS: 0})
    assert scene.shown("g") == {PAYMENTS: 2}


def test_very_many_offsets_are_deleted_in_entries_of_bounded_size() -> None:
    scene = scene_of()
    rows = {("orders", number): number for number in range(25_000)}
    scene.commit("g", rows)
    written = len(scene.log.written)
    code, codes = delete_offsets(scene, "g", {"orders": tuple(range(25_000))})

    assert code == 0
    assert set(codes.values()) == {0}
    assert len(scene.log.written) == written + 3
    assert scene.shown("g") == {}


def test_a_deletion_of_offsets_that_the_log_refuses_is_said_to_have_failed() -> None:
    scene = scene_of("g")
    client, number = send_delete_offsets(scene, "g", {"orders": (0,)})
    scene.log.refuse()

    assert client.answer(number).error_code == Code.COORDINATOR_NOT_AVAILABLE
    assert client.answer(number).topics == ()
    assert scene.shown("g") == {ORDERS: 1, PAYMENTS: 2}


def test_topics_that_members_read_are_protected_by_partition_and_others_are_not() -> None:
    scene = scene_of("g")
    member = Consumer(scene).settle_alone()

    assert delete_offsets(scene, "g", {"orders": (0,), "payments": (0,)}) == (
        0,
        {ORDERS: Code.GROUP_SUBSCRIBED_TO_TOPIC, PAYMENTS: 0},
    )
    member.leave()
    assert delete_offsets(scene, "g", {"orders": (0,)}) == (0, {ORDERS: 0})


def test_groups_of_another_kind_are_not_touched_while_they_have_members() -> None:
    scene = scene_of("g")
    worker = Consumer(scene)
    worker.kind, worker.protocols = "connect", [("eager", b"\0")]
    worker.settle_alone()

    assert delete_offsets(scene, "g", {"orders": (0,)}) == (Code.NON_EMPTY_GROUP, {})
    worker.leave()
    assert delete_offsets(scene, "g", {"orders": (0,)}) == (0, {ORDERS: 0})


def test_a_group_that_is_not_there_has_no_offsets_to_delete() -> None:
    scene = scene_of("g")
    send_delete(scene, "g")

    assert delete_offsets(scene, "nobody", {"orders": (0,)}) == (Code.GROUP_ID_NOT_FOUND, {})
    assert delete_offsets(scene, "n" * 5000, {"orders": (0,)}) == (Code.GROUP_ID_NOT_FOUND, {})
    assert delete_offsets(scene, "", {"orders": (0,)}) == (Code.INVALID_GROUP_ID, {})
    assert delete_offsets(scene, "g", {"orders": (0,)}) == (Code.GROUP_ID_NOT_FOUND, {})
