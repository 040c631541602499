"""Administrators in client libraries: groups that have members, and groups that have none any more."""

import pytest

from tests.clients.process import ClientRefused
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon
from tests.members.conftest import StartMember
from tests.members.described import described
from tests.members.process import AIOKAFKA, CONFLUENT, MemberProcess
from tests.members.sharing import PLACES, until_shared
from tests.members.toolchains import KAFKAJS, WANTED

pytestmark = pytest.mark.integration

OFFSETS = {("orders", 0): 50, ("orders", 1): 60}


@pytest.mark.parametrize("library", [CONFLUENT, *([KAFKAJS] if WANTED else [])])
def test_an_administrator_sees_resets_and_deletes_groups(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    """The administrator is a member elsewhere; what is done to a group with members is refused."""
    group = f"administered-{library}"
    admin, member = start_member(library, f"administrator-{library}"), start_member(AIOKAFKA, group)
    assert isinstance(admin, MemberProcess)
    until_shared(daemon, [admin])
    until_shared(daemon, [member])
    member.commit(OFFSETS)

    listed, live = admin.call("groups"), admin.call("describe", group)
    with pytest.raises(ClientRefused):
        admin.call("reset", group, [["orders", 0, 20]])
    with pytest.raises(ClientRefused, match=r"NON_EMPTY_GROUP|not empty"):
        admin.call("delete", group)
    untouched = stored(daemon, group)
    member.leave()
    left = admin.call("describe", group)
    admin.call("reset", group, [["orders", 0, 20]])
    reset = stored(daemon, group)
    admin.call("delete", group)

    assert {group, f"administrator-{library}"} <= set(listed)
    assert live["state"] == "stable"
    assert {name: {tuple(row) for row in rows} for name, rows in live["owned"].items()} == {
        member.options.client_id: PLACES
    }
    assert {place: offset for place, (offset, _) in untouched.items()} == OFFSETS
    assert left == {"state": "empty", "owned": {}}
    assert {place: offset for place, (offset, _) in reset.items()} == {**OFFSETS, ("orders", 0): 20}
    assert (described(daemon, group).state, stored(daemon, group)) == ("Dead", {})
