"""How the offsets of a group grow old, by its members: Kafka's table, row by row."""

from struct import pack

import pytest

from offsetd.coordinator.expiry import ageing_of, expired
from offsetd.coordinator.member import Joining
from offsetd.coordinator.membership import Membership, State
from offsetd.record import Generation, GenerationMember, TopicOffsets, Who, generation_entry
from offsetd.table import SlotTable, TopicIndex, apply, apply_commit
from tests.coordinator.test_subscription import metadata

NOW = 1_800_000_000_000
RETENTION = 1000
WHO = Who("", "", "")
COMMITTED_AT = NOW - 500


def table(generation: Generation | None, *, completed_at: int = NOW, expiry_ms: int | None = None) -> SlotTable:
    """A group `g` with offsets of two topics, and what the log holds of its members."""
    made = SlotTable(0, TopicIndex())
    for name in ("t", "u"):
        expiries = None if expiry_ms is None else pack(">q", expiry_ms)
        topic = TopicOffsets(name, pack(">i", 0), pack(">q", 5), expiries=expiries)
        apply_commit(made, "g", COMMITTED_AT, WHO, (topic,))
    if generation is not None:
        apply(made, generation_entry(0, "g", completed_at, WHO, generation))
    return made


def generation(*, kind: str = "consumer", said: bytes | None = None) -> Generation:
    """A generation of one member that said something, or of none."""
    rows = () if said is None else (GenerationMember("m", None, "", "", 60_000, 10_000, said, b""),)
    return Generation(kind, 3, "range" if rows else None, "m" if rows else None, rows)


def restored(stored: Generation) -> Membership:
    return Membership.restore(stored, initial_delay_ms=0, members_max=10, now_ms=0)


def gone(made: SlotTable, membership: Membership | None, age: int) -> tuple[list[str], bool]:
    """Return the topics that expire when offsets committed at NOW - 500 have an age, and whether the group goes."""
    memberships = {} if membership is None else {"g": membership}
    (found,) = expired(made, now_ms=COMMITTED_AT + age, retention_ms=lambda _: RETENTION, memberships=memberships)
    return [name for name, _ in found.topics], found.whole


@pytest.mark.parametrize(("age", "topics"), [(RETENTION - 1, []), (RETENTION, ["t", "u"])])
def test_offsets_of_a_simple_group_grow_old_from_their_commits(age: int, topics: list[str]) -> None:
    assert gone(table(None), None, age) == (topics, False)


@pytest.mark.parametrize(("age", "goes"), [(RETENTION, False), (RETENTION + 499, False), (RETENTION + 500, True)])
def test_offsets_of_an_emptied_group_grow_old_from_the_moment_it_was_empty(age: int, goes: bool) -> None:
    made = table(generation(), completed_at=NOW)

    assert gone(made, None, age) == (["t", "u"] if goes else [], goes)
    assert gone(made, restored(generation()), age) == (["t", "u"] if goes else [], goes)


def test_an_empty_group_that_somebody_is_about_to_join_does_not_go_with_its_offsets() -> None:
    membership = restored(generation())
    membership.roster.pending["m"] = 1

    assert gone(table(generation(), completed_at=NOW), membership, RETENTION + 500) == (["t", "u"], False)


def test_of_a_stable_group_of_consumers_expires_what_none_of_them_reads() -> None:
    stored = generation(said=metadata("t"))

    assert gone(table(stored), restored(stored), RETENTION - 1) == ([], False)
    assert gone(table(stored), restored(stored), RETENTION) == (["u"], False)


@pytest.mark.parametrize("stored", [generation(said=b"riddle"), generation(kind="connect", said=metadata("t"))])
def test_nothing_expires_of_members_whose_reading_is_not_known(stored: Generation) -> None:
    assert gone(table(stored), restored(stored), 1000 * RETENTION) == ([], False)


@pytest.mark.parametrize("state", [State.PREPARING, State.COMPLETING])
def test_nothing_expires_while_members_gather(state: State) -> None:
    membership = Membership(initial_delay_ms=0 if state is State.COMPLETING else 3000, members_max=10)
    said = (("range", metadata("t")),)
    joining = Joining("", None, "", "", 10_000, 60_000, "consumer", said)
    membership.join(joining, object(), now_ms=0, new_id=lambda: "1")

    assert membership.state is state
    assert gone(table(None), membership, 1000 * RETENTION) == ([], False)


def test_nothing_expires_of_members_that_are_gone_but_not_for_the_log() -> None:
    stored = generation(said=metadata("t"))
    emptied = restored(generation())

    assert ageing_of(table(stored).groups["g"], emptied) is None
    assert gone(table(stored), emptied, 1000 * RETENTION) == ([], False)


@pytest.mark.parametrize(("late", "topics"), [(-1, []), (0, ["u"])])
def test_an_expiry_of_its_own_overrides_the_clock_but_not_what_members_read(late: int, topics: list[str]) -> None:
    stored = generation(said=metadata("t"))
    own = table(stored, expiry_ms=COMMITTED_AT + 50)

    assert gone(own, restored(stored), 50 + late) == (topics, False)
