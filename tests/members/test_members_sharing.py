"""Members of one library: they come and go, and every partition has one owner."""

import pytest

from tests.clients.stored import stored
from tests.fakes.daemon import Daemon
from tests.members.conftest import StartMember
from tests.members.described import described, remove_member
from tests.members.sharing import PLACES, until_shared
from tests.members.toolchains import COMMITTING, LIBRARIES

pytestmark = pytest.mark.integration

#: For members that are to be missed.
SHORT_SESSION_MS = 2000


@pytest.mark.parametrize("library", LIBRARIES)
def test_partitions_go_to_who_comes_and_come_back_from_who_leaves(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    group = f"come-and-go-{library}"
    first = start_member(library, group)
    alone = until_shared(daemon, [first])

    second = start_member(library, group)
    shared = until_shared(daemon, [first, second])
    second.leave()
    again = until_shared(daemon, [first])
    first.leave()

    assert alone == again == {first.options.client_id: PLACES}
    # Range: of six partitions three each, of three two and one.
    assert sorted(map(len, shared.values())) == [4, 5]
    assert described(daemon, group).state == "Empty"


@pytest.mark.parametrize("library", COMMITTING)
def test_a_member_goes_on_where_the_one_before_it_stopped(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    group = f"go-on-{library}"
    offsets = {place: 10 + number for number, place in enumerate(sorted(PLACES))}
    first = start_member(library, group)
    until_shared(daemon, [first])

    first.commit(offsets)
    first.leave()
    second = start_member(library, group)
    until_shared(daemon, [second])

    assert second.committed(PLACES) == offsets
    assert {place: offset for place, (offset, _) in stored(daemon, group).items()} == offsets


@pytest.mark.parametrize("library", COMMITTING)
def test_both_commit_what_they_own(library: str, daemon: Daemon, start_member: StartMember) -> None:
    group = f"both-commit-{library}"
    members = [start_member(library, group) for _ in range(2)]
    owned = until_shared(daemon, members)

    for number, member in enumerate(members, 1):
        member.commit(dict.fromkeys(owned[member.options.client_id], number))

    assert {place: offset for place, (offset, _) in stored(daemon, group).items()} == {
        place: number for number, member in enumerate(members, 1) for place in owned[member.options.client_id]
    }


@pytest.mark.parametrize("library", COMMITTING)
def test_who_crashes_is_missed_after_its_session(library: str, daemon: Daemon, start_member: StartMember) -> None:
    group = f"crash-{library}"
    lasting, crashing = start_member(library, group), start_member(library, group, session_ms=SHORT_SESSION_MS)
    owned = until_shared(daemon, [lasting, crashing])[crashing.options.client_id]
    crashing.commit(dict.fromkeys(owned, 7))

    crashing.crash()
    until_shared(daemon, [lasting])

    assert lasting.committed(owned) == dict.fromkeys(owned, 7)


@pytest.mark.parametrize("library", LIBRARIES)
def test_who_sleeps_through_its_session_comes_back_as_a_new_member(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    group = f"sleep-{library}"
    awake, sleepy = start_member(library, group), start_member(library, group, session_ms=SHORT_SESSION_MS)
    until_shared(daemon, [awake, sleepy])
    before = described(daemon, group).member(sleepy.options.client_id).member_id

    sleepy.sleep()
    until_shared(daemon, [awake])
    sleepy.wake()
    until_shared(daemon, [awake, sleepy])

    assert described(daemon, group).member(sleepy.options.client_id).member_id != before


@pytest.mark.parametrize("library", COMMITTING)
def test_who_is_removed_comes_back_as_a_new_member(library: str, daemon: Daemon, start_member: StartMember) -> None:
    """As an administrator may do with a member that is stuck."""
    group = f"removed-{library}"
    member = start_member(library, group)
    until_shared(daemon, [member])
    member.commit({("orders", 0): 1})
    before = described(daemon, group).member(member.options.client_id).member_id

    remove_member(daemon, group, member_id=before)
    until_shared(daemon, [member])
    member.commit({("orders", 0): 2})

    assert described(daemon, group).member(member.options.client_id).member_id != before
    assert stored(daemon, group)["orders", 0][0] == 2
