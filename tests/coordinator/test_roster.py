"""Who belongs to a group, who leads it, and what its members agree on."""

import pytest

from offsetd.coordinator.member import Member
from offsetd.coordinator.roster import Roster
from protocol.errors import Code
from tests.coordinator.test_subscription import metadata


def member(
    name: str, *protocols: str, instance: str | None = None, patience_ms: int = 1000, said: bytes = b""
) -> Member:
    return Member(
        member_id=name,
        instance_id=instance,
        client_id="client",
        client_host="/host",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=patience_ms,
        protocols=tuple((protocol, said) for protocol in protocols or ("range",)),
    )


def roster_of(*members: Member) -> Roster:
    roster = Roster()
    for each in members:
        roster.add(each)
    return roster


def test_the_first_member_leads_and_after_it_the_one_that_is_there_longest() -> None:
    first, second, third = member("a"), member("b"), member("c")
    roster = roster_of(first, second, third)
    leaders = [roster.leader]
    for each in (third, first, second):
        roster.remove(each)
        leaders.append(roster.leader)

    assert leaders == ["a", "a", "b", None]


def test_somebody_leads_whose_join_is_held_and_if_none_is_the_leader_stays() -> None:
    first, second, third = member("a"), member("b"), member("c")
    roster = roster_of(first, second, third)

    assert not roster.elect()
    assert roster.leader == "a"
    roster.hold(third, "a join")
    assert roster.elect()
    assert roster.leader == "c"
    roster.hold(first, "a join")
    roster.elect()
    assert roster.leader == "c"


def test_a_phase_is_over_when_all_members_and_given_ids_have_come() -> None:
    first, second = member("a"), member("b")
    roster = roster_of(first, second)
    seen = [roster.all_joined()]
    roster.hold(first, 1)
    older = roster.hold(first, 2)
    seen.append(roster.all_joined())
    roster.hold(second, 3)
    seen.append(roster.all_joined())
    roster.pending["c"] = 5
    seen.append(roster.all_joined())
    third = member("c")
    roster.add(third)
    seen.append(roster.all_joined())
    roster.hold(third, 4)
    seen.append(roster.all_joined())

    assert older == 1
    assert seen == [False, False, True, False, False, True]
    assert [roster.let_go(each) for each in (first, second, third, first)] == [2, 3, 4, None]
    assert roster.waiting == 0


def test_a_static_member_is_known_by_its_instance_and_keeps_its_place_under_another_id() -> None:
    blue, other = member("blue-1", instance="blue"), member("x")
    roster = roster_of(blue, other)
    roster.unsynced = {"blue-1"}
    roster.rename(blue, "blue-2")

    assert list(roster.members) == ["blue-2", "x"]
    assert (roster.leader, roster.unsynced, blue.member_id) == ("blue-2", {"blue-2"}, "blue-2")
    assert roster.static("blue") is blue
    assert roster.static("red") is None
    roster.remove(blue)
    assert roster.static("blue") is None


@pytest.mark.parametrize(
    ("member_id", "instance", "code"),
    [
        ("x", None, Code.NONE),
        ("blue-1", "blue", Code.NONE),
        ("blue-1", None, Code.NONE),
        ("nobody", None, Code.UNKNOWN_MEMBER_ID),
        ("", None, Code.UNKNOWN_MEMBER_ID),
        ("blue-1", "red", Code.UNKNOWN_MEMBER_ID),
        ("x", "blue", Code.FENCED_INSTANCE_ID),
        ("nobody", "blue", Code.FENCED_INSTANCE_ID),
        ("", "blue", Code.FENCED_INSTANCE_ID),
    ],
)
def test_the_instance_is_looked_at_before_the_id(member_id: str, instance: str | None, code: Code) -> None:
    roster = roster_of(member("blue-1", instance="blue"), member("x"))

    assert roster.refuse(member_id, instance) is code


def test_only_what_all_members_support_can_be_chosen_and_most_votes_win() -> None:
    roster = roster_of(member("a", "x", "y"), member("b", "z", "y", "x"), member("c", "y", "x", "w"))

    assert roster.candidates() == {"x", "y"}
    assert roster.choose() == "y"


@pytest.mark.parametrize(
    ("one", "other", "chosen"),
    [
        ("range", "roundrobin", "range"),
        ("roundrobin", "range", "range"),
        ("sticky", "cooperative-sticky", "sticky"),
        ("cooperative-sticky", "sticky", "sticky"),
    ],
)
def test_a_tie_is_decided_by_the_order_of_javas_hash_table(one: str, other: str, chosen: str) -> None:
    assert roster_of(member("a", one, other), member("b", other, one)).choose() == chosen


def test_what_nobody_supports_any_more_is_forgotten() -> None:
    first, second = member("a", "x", "y"), member("b", "x")
    roster = roster_of(first, second)
    roster.change_protocols(first, (("x", b""), ("z", b"")))
    after_change = dict(roster._supporters)
    roster.remove(second)
    roster.remove(first)

    assert after_change == {"x": 2, "z": 1}
    assert roster._supporters == {}


def test_the_most_patient_member_counts_and_nobody_has_less_than_none() -> None:
    assert roster_of(member("a", patience_ms=5), member("b", patience_ms=7)).rebalance_timeout_ms() == 7
    assert roster_of(member("a", patience_ms=-1)).rebalance_timeout_ms() == 0
    assert Roster().rebalance_timeout_ms() == 0


def test_a_group_reads_what_its_members_read_if_that_can_be_told_of_all_of_them() -> None:
    known = roster_of(member("a", said=metadata("t")), member("b", said=metadata("u", "t")))
    riddle = roster_of(member("a", said=metadata("t")), member("b", said=b"riddle"))

    assert known.subscribed("range") == frozenset(("t", "u"))
    assert riddle.subscribed("range") is None
    assert Roster().subscribed(None) == frozenset()
    assert known.subscribed("never heard of") is None


def test_rows_for_the_log_hold_what_was_said_for_the_chosen_protocol_and_the_parts() -> None:
    one = member("a", instance="blue")
    one.protocols = (("x", b"for x"), ("y", b"for y"))
    rows = roster_of(one, member("b", "y")).rows("y", {"a": b"part", "stranger": b"no"})

    assert [(row.member_id, row.instance_id, row.metadata, row.assignment) for row in rows] == [
        ("a", "blue", b"for y", b"part"),
        ("b", None, b"", b""),
    ]
