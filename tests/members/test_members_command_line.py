"""kafka-python's command line: groups with members are listed, described, reset and deleted."""

import pytest

from tests.clients.kafka_admin import kafka_admin, run_kafka_admin
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon
from tests.members.conftest import StartMember
from tests.members.described import described
from tests.members.process import AIOKAFKA, CONFLUENT
from tests.members.sharing import until, until_shared

pytestmark = pytest.mark.integration


def test_groups_are_listed_and_described(daemon: Daemon, start_member: StartMember) -> None:
    live, left = start_member(CONFLUENT, "shown-live", instance="one"), start_member(AIOKAFKA, "shown-left")
    until_shared(daemon, [live])
    until_shared(daemon, [left])
    left.leave()

    listed = kafka_admin(daemon, "groups", "list")
    stable = kafka_admin(daemon, "groups", "list", "--state", "Stable")
    shown = kafka_admin(daemon, "groups", "describe", "-g", "shown-live", "-g", "shown-left")

    assert {row["group_id"]: row["group_state"] for row in listed if row["group_id"].startswith("shown-")} == {
        "shown-live": "Stable",
        "shown-left": "Empty",
    }
    assert {row["group_state"] for row in stable} == {"Stable"}
    assert {group: found["group_state"] for group, found in shown.items()} == {
        "shown-live": "Stable",
        "shown-left": "Empty",
    }
    (member,) = shown["shown-live"]["members"]
    (seen,) = described(daemon, "shown-live").members
    assert (member["member_id"], member["group_instance_id"]) == (seen.member_id, "one")
    assert (member["client_id"], member["client_host"]) == (live.options.client_id, "/127.0.0.1")
    assert {
        (row["topic"], number)
        for row in member["member_assignment"]["assigned_partitions"]
        for number in row["partitions"]
    } == seen.owned


def test_a_group_is_reset_when_its_members_have_left(daemon: Daemon, start_member: StartMember) -> None:
    member = start_member(AIOKAFKA, "reset")
    until_shared(daemon, [member])
    member.commit({("orders", 0): 50, ("orders", 1): 60})
    first, second = (["groups", "reset-offsets", "-g", "reset", "-p", f"orders:{number}"] for number in range(2))

    code, words = run_kafka_admin(daemon, *first, "--to-offset", "20")
    untouched = stored(daemon, "reset")
    member.leave()
    kafka_admin(daemon, *first, "--to-offset", "20")
    kafka_admin(daemon, *second, "-s", "earliest")

    assert code != 0
    assert "Group reset is Stable, expecting Empty or Dead" in words
    assert {place: offset for place, (offset, _) in untouched.items()} == {("orders", 0): 50, ("orders", 1): 60}
    assert {place: offset for place, (offset, _) in stored(daemon, "reset").items()} == {
        ("orders", 0): 20,
        ("orders", 1): 0,
    }


def test_members_offsets_and_groups_are_removed(daemon: Daemon, start_member: StartMember) -> None:
    member = start_member(CONFLUENT, "removed", instance="one")
    until_shared(daemon, [member])
    member.commit({("orders", 0): 50, ("orders", 1): 60})

    busy = kafka_admin(daemon, "groups", "delete", "-g", "removed")
    read = kafka_admin(daemon, "groups", "delete-offsets", "-g", "removed", "-p", "orders:0")
    member.crash()
    kafka_admin(daemon, "groups", "remove-members", "-g", "removed", "-i", "one")
    until("the group to be empty", lambda: described(daemon, "removed"), lambda group: group.state == "Empty")
    unread = kafka_admin(daemon, "groups", "delete-offsets", "-g", "removed", "-p", "orders:0")
    held = stored(daemon, "removed")
    idle = kafka_admin(daemon, "groups", "delete", "-g", "removed")

    assert busy == {"removed": "NonEmptyGroupError"}
    assert read == {"orders:0": "GroupSubscribedToTopicError"}
    assert unread == {"orders:0": "NoError"}
    assert {place: offset for place, (offset, _) in held.items()} == {("orders", 1): 60}
    assert idle == {"removed": "OK"}
    assert stored(daemon, "removed") == {}
