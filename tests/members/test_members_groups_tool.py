"""kafka-consumer-groups against the daemon: groups are listed, described, reset and deleted as in Kafka."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.clients.process import Place
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon, running
from tests.fakes.wire import connected
from tests.members.conftest import SETTINGS, StartMember
from tests.members.described import described
from tests.members.groups_tool import Printed, groups_tool
from tests.members.process import CONFLUENT, KAFKA_PYTHON
from tests.members.sharing import until_shared
from tests.members.toolchains import WANTED

pytestmark = pytest.mark.integration

if not WANTED:
    pytest.skip("OFFSETD_PEERS is not set: `make peers` runs kafka-consumer-groups", allow_module_level=True)

#: The ends, which resets keep within: an operator has stated them.
ENDS = {"orders": 100, "payments": 10}
PLACES = frozenset({("orders", 0), ("orders", 1), ("orders", 2), ("payments", 0), ("payments", 1)})
HELD = {("orders", 0): 5, ("orders", 1): 7}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with two topics whose ends are known."""
    settings = {**SETTINGS, "topics.known": f"orders:3:{ENDS['orders']},payments:2:{ENDS['payments']}"}
    with running(tmp_path_factory.mktemp("daemon"), settings) as found:
        yield found


def commit(daemon: Daemon, group: str, offsets: Mapping[Place, int] = HELD) -> str:
    """Make a group without members, and return its name."""

    async def send() -> None:
        async with connected(daemon.port) as client:
            await client.commit(group, offsets)

    asyncio.run(send())
    return group


def offsets(daemon: Daemon, group: str) -> dict[Place, int]:
    """Return what a group holds."""
    return {place: offset for place, (offset, _) in stored(daemon, group).items()}


def of(group: str, printed: Printed, *heads: str) -> list[tuple[str, ...]]:
    """Return some columns of the lines of one group."""
    return sorted(tuple(row[head] for head in heads) for row in printed.rows() if row["GROUP"] == group)


# --- list -----------------------------------------------------------------------------------------------------------


def test_groups_are_listed_by_state_and_type(daemon: Daemon, start_member: StartMember) -> None:
    simple = commit(daemon, "list-simple")
    live, left = start_member(CONFLUENT, "list-live"), start_member(KAFKA_PYTHON, "list-left")
    until_shared(daemon, [live], PLACES)
    until_shared(daemon, [left], PLACES)
    left.leave()

    names = groups_tool(daemon, "--list").text.split()
    states = groups_tool(daemon, "--list", "--state")
    stable = groups_tool(daemon, "--list", "--state", "stable")
    types = groups_tool(daemon, "--list", "--type")
    both = groups_tool(daemon, "--list", "--type", "classic", "--state", "empty")
    consumer = groups_tool(daemon, "--list", "--type", "consumer")

    assert {simple, "list-live", "list-left"} <= set(names)
    assert {row["GROUP"]: row["STATE"] for row in states.rows() if row["GROUP"].startswith("list-")} == {
        simple: "Empty",
        "list-live": "Stable",
        "list-left": "Empty",
    }
    assert ("list-live",) in stable.table("GROUP")
    assert {state for (state,) in stable.table("STATE")} == {"Stable"}
    assert {kind for (kind,) in types.table("TYPE")} == {"Classic"}
    assert {("list-left", "Classic", "Empty"), (simple, "Classic", "Empty")} <= set(
        both.table("GROUP", "TYPE", "STATE")
    )
    assert consumer.rows() == []


# --- describe -------------------------------------------------------------------------------------------------------


def test_a_live_group_is_described_in_every_form(daemon: Daemon, start_member: StartMember) -> None:
    members = [
        start_member(CONFLUENT, "described", instance="one"),
        start_member(KAFKA_PYTHON, "described", instance="two"),
    ]
    owned = until_shared(daemon, members, PLACES)
    holder = next(member for member in members if ("orders", 0) in owned[member.options.client_id])
    holder.commit({("orders", 0): 5})
    seen = described(daemon, "described")
    owner = {place: seen.member(client_id) for client_id, places in owned.items() for place in places}

    plain = groups_tool(daemon, "--describe", "--group", "described")
    verbose = groups_tool(daemon, "--describe", "--group", "described", "--offsets", "--verbose")
    who = groups_tool(daemon, "--describe", "--group", "described", "--members", "--verbose")
    state = groups_tool(daemon, "--describe", "--group", "described", "--state")

    rows = sorted(
        (
            topic,
            str(partition),
            "5" if (topic, partition) == ("orders", 0) else "-",
            str(ENDS[topic]),
            "95" if (topic, partition) == ("orders", 0) else "-",
            member.member_id,
            "/127.0.0.1",
            member.client_id,
        )
        for (topic, partition), member in owner.items()
    )
    heads = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
    assert plain.table(*heads) == rows
    assert verbose.table(*heads) == rows
    assert who.table("CONSUMER-ID", "GROUP-INSTANCE-ID", "CLIENT-ID", "#PARTITIONS", "CURRENT-ASSIGNMENT") == sorted(
        (
            member.member_id,
            member.instance or "-",
            member.client_id,
            str(len(member.owned)),
            ";".join(
                f"{topic}:{','.join(str(number) for name, number in sorted(member.owned) if name == topic)}"
                for topic in sorted({name for name, _ in member.owned})
            ),
        )
        for member in seen.members
    )
    assert state.table("GROUP", "COORDINATOR", "NODE", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS") == [
        ("described", daemon.address, "(1)", "range", "Stable", "2")
    ]


def test_a_group_whose_members_left_is_described(daemon: Daemon, start_member: StartMember) -> None:
    member = start_member(KAFKA_PYTHON, "deserted")
    until_shared(daemon, [member], PLACES)
    member.commit(HELD)
    member.leave()

    rows = groups_tool(daemon, "--describe", "--group", "deserted")
    who = groups_tool(daemon, "--describe", "--group", "deserted", "--members")
    state = groups_tool(daemon, "--describe", "--group", "deserted", "--state")

    assert rows.table("TOPIC", "PARTITION", "CURRENT-OFFSET", "LAG", "CONSUMER-ID") == [
        ("orders", "0", "5", "95", "-"),
        ("orders", "1", "7", "93", "-"),
    ]
    assert "Consumer group 'deserted' has no active members." in rows.text
    assert who.rows() == []
    assert state.table("STATE", "#MEMBERS", "ASSIGNMENT-STRATEGY") == [("Empty", "0", "-")]


def test_all_groups_are_described(daemon: Daemon, start_member: StartMember) -> None:
    simple = commit(daemon, "all-simple")
    member = start_member(CONFLUENT, "all-live")
    until_shared(daemon, [member], PLACES)

    rows = groups_tool(daemon, "--describe", "--all-groups")
    who = groups_tool(daemon, "--describe", "--all-groups", "--members")
    state = groups_tool(daemon, "--describe", "--all-groups", "--state")

    assert of(simple, rows, "TOPIC", "PARTITION", "CURRENT-OFFSET") == [("orders", "0", "5"), ("orders", "1", "7")]
    assert len(of("all-live", rows, "TOPIC", "PARTITION")) == len(PLACES)
    assert of("all-live", who, "CLIENT-ID", "#PARTITIONS") == [(member.options.client_id, str(len(PLACES)))]
    assert of(simple, who, "CLIENT-ID") == []
    assert of("all-live", state, "STATE", "#MEMBERS") == [("Stable", "1")]
    assert of(simple, state, "STATE", "#MEMBERS") == [("Empty", "0")]


def test_a_group_that_is_not_there_is_not_described(daemon: Daemon) -> None:
    assert "Group nobody not found." in groups_tool(daemon, "--describe", "--group", "nobody").text


# --- reset ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        ("--to-earliest", (0, 0)),
        ("--to-latest", (100, 100)),
        ("--to-offset 50", (50, 50)),
        ("--to-offset 500", (100, 100)),  # the tool keeps within the ends
        ("--shift-by 3", (8, 10)),
        ("--shift-by -6", (0, 1)),
        ("--to-current", (5, 7)),
        ("--by-duration PT1H", (100, 100)),  # no message is that young, so the end it is
    ],
)
def test_a_reset_is_shown_first_and_then_done(daemon: Daemon, strategy: str, wanted: tuple[int, int]) -> None:
    group = commit(daemon, f"reset{strategy.replace(' ', '')}")
    reset = ["--reset-offsets", "--group", group, "--topic", "orders:0,1", *strategy.split()]

    shown = groups_tool(daemon, *reset, "--dry-run")
    before = offsets(daemon, group)
    done = groups_tool(daemon, *reset, "--execute")

    rows = [(group, "orders", str(number), str(offset)) for number, offset in enumerate(wanted)]
    heads = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
    assert shown.table(*heads) == done.table(*heads) == rows
    assert before == HELD
    assert offsets(daemon, group) == {("orders", number): offset for number, offset in enumerate(wanted)}


def test_partitions_that_were_never_committed_can_be_reset(daemon: Daemon) -> None:
    """Also of a group that nobody knew."""
    printed = groups_tool(
        daemon, "--reset-offsets", "--group", "unborn", "--topic", "payments", "--to-latest", "--execute"
    )

    assert printed.table("TOPIC", "PARTITION", "NEW-OFFSET") == [("payments", "0", "10"), ("payments", "1", "10")]
    assert offsets(daemon, "unborn") == {("payments", 0): 10, ("payments", 1): 10}


def test_what_was_exported_is_reset_from_a_file(daemon: Daemon, tmp_path: Path) -> None:
    group = commit(daemon, "exported", {**HELD, ("payments", 1): 3})
    plan = tmp_path / "plan.csv"

    export = ["--all-topics", "--to-current", "--export", "--dry-run"]
    printed = groups_tool(daemon, "--reset-offsets", "--group", group, *export)
    commit(daemon, group, {("orders", 0): 90, ("orders", 1): 91, ("payments", 1): 9})
    plan.write_text(printed.text)
    from_file = ["--reset-offsets", "--group", group, "--from-file", str(plan)]
    shown = groups_tool(daemon, *from_file, "--dry-run")
    before = offsets(daemon, group)
    groups_tool(daemon, *from_file, "--execute")

    assert sorted(printed.text.split()) == ["orders,0,5", "orders,1,7", "payments,1,3"]
    assert shown.table("TOPIC", "PARTITION", "NEW-OFFSET") == [
        ("orders", "0", "5"),
        ("orders", "1", "7"),
        ("payments", "1", "3"),
    ]
    assert before == {("orders", 0): 90, ("orders", 1): 91, ("payments", 1): 9}
    assert offsets(daemon, group) == {**HELD, ("payments", 1): 3}


def test_several_groups_are_exported_and_reset_from_one_file(daemon: Daemon, tmp_path: Path) -> None:
    first, second = commit(daemon, "one-of-two"), commit(daemon, "two-of-two", {("payments", 0): 2})
    groups = ["--group", first, "--group", second]
    plan = tmp_path / "plan.csv"

    export = ["--all-topics", "--to-earliest", "--export", "--dry-run"]
    printed = groups_tool(daemon, "--reset-offsets", *groups, *export)
    plan.write_text(printed.text)
    groups_tool(daemon, "--reset-offsets", *groups, "--from-file", str(plan), "--execute")

    assert sorted(printed.text.split()) == ["one-of-two,orders,0,0", "one-of-two,orders,1,0", "two-of-two,payments,0,0"]
    assert offsets(daemon, first) == {("orders", 0): 0, ("orders", 1): 0}
    assert offsets(daemon, second) == {("payments", 0): 0}


def test_a_live_group_is_not_reset(daemon: Daemon, start_member: StartMember) -> None:
    member = start_member(CONFLUENT, "busy")
    until_shared(daemon, [member], PLACES)
    member.commit(HELD)

    printed = groups_tool(
        daemon, "--reset-offsets", "--group", "busy", "--topic", "orders", "--to-earliest", "--execute"
    )

    assert "can only be reset if the group 'busy' is inactive, but the current state is Stable" in printed.text
    assert offsets(daemon, "busy") == HELD


# --- delete ---------------------------------------------------------------------------------------------------------


def test_offsets_are_deleted_but_not_of_topics_that_members_read(daemon: Daemon, start_member: StartMember) -> None:
    member = start_member(CONFLUENT, "pruned", topics=("orders",))
    until_shared(daemon, [member], {place for place in PLACES if place[0] == "orders"})
    member.commit({**HELD, ("payments", 0): 1})

    read = groups_tool(daemon, "--delete-offsets", "--group", "pruned", "--topic", "orders:0")
    unread = groups_tool(daemon, "--delete-offsets", "--group", "pruned", "--topic", "payments:0")
    held = offsets(daemon, "pruned")
    member.leave()
    left = groups_tool(daemon, "--delete-offsets", "--group", "pruned", "--topic", "orders:0")

    assert "GroupSubscribedToTopicException" in read.text
    assert unread.table("TOPIC", "PARTITION", "STATUS") == [("payments", "0", "Successful")]
    assert held == HELD
    assert left.table("TOPIC", "PARTITION", "STATUS") == [("orders", "0", "Successful")]
    assert offsets(daemon, "pruned") == {("orders", 1): 7}


def test_groups_are_deleted_unless_they_have_members(daemon: Daemon, start_member: StartMember) -> None:
    idle = commit(daemon, "deleted")
    member = start_member(CONFLUENT, "undeleted")
    until_shared(daemon, [member], PLACES)
    member.commit(HELD)

    printed = groups_tool(daemon, "--delete", "--group", idle, "--group", "undeleted", "--group", "nobody")
    names = groups_tool(daemon, "--list").text.split()

    assert "Group 'undeleted' could not be deleted due to" in printed.text
    assert "GroupNotEmptyException" in printed.text
    assert "Group 'nobody' could not be deleted due to" in printed.text
    assert "GroupIdNotFoundException" in printed.text
    assert "deleted successfully: 'deleted'" in printed.text
    assert ("deleted" in names, "undeleted" in names) == (False, True)
    assert (offsets(daemon, idle), offsets(daemon, "undeleted")) == ({}, HELD)
