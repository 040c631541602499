"""Members of different libraries in one group: whoever leads assigns for all, and every partition has one owner."""

from itertools import permutations

import pytest

from tests.clients.stored import stored
from tests.fakes.daemon import Daemon
from tests.members.conftest import StartMember
from tests.members.described import described
from tests.members.sharing import until_shared
from tests.members.toolchains import COMMITTING, LIBRARIES, present

pytestmark = pytest.mark.integration


def test_all_libraries_share_one_group(daemon: Daemon, start_member: StartMember) -> None:
    """They come one by one and leave in the same order, so the leader is of another library again and again."""
    members = []
    for library in present():
        members.append(start_member(library, "mixed"))
        until_shared(daemon, members)
    while len(members) > 1:
        members.pop(0).leave()
        until_shared(daemon, members)

    assert described(daemon, "mixed").protocol == "range"


@pytest.mark.parametrize("leader", LIBRARIES)
def test_every_library_leads_the_others(leader: str, daemon: Daemon, start_member: StartMember) -> None:
    group = f"led-by-{leader}"
    first = start_member(leader, group)
    until_shared(daemon, [first])

    others = [start_member(library, group) for library in present() if library != leader]
    owned = until_shared(daemon, [first, *others])

    # Range gives what does not come out even to the first; nobody gets two more than another.
    assert max(map(len, owned.values())) - min(map(len, owned.values())) <= len({"orders", "payments"})


@pytest.mark.parametrize(("writer", "reader"), list(permutations(COMMITTING, 2)))
def test_what_one_library_commits_another_goes_on_from(
    writer: str, reader: str, daemon: Daemon, start_member: StartMember
) -> None:
    group = f"from-{writer}-to-{reader}"
    first, second = start_member(writer, group), start_member(reader, group)
    owned = until_shared(daemon, [first, second])[first.options.client_id]

    first.commit(dict.fromkeys(owned, 42))
    first.leave()
    until_shared(daemon, [second])

    assert second.committed(owned) == dict.fromkeys(owned, 42)
    assert {place: offset for place, (offset, _) in stored(daemon, group).items()} == dict.fromkeys(owned, 42)
