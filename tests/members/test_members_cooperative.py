"""Cooperative rebalances: members give up only what others are to have, in two generations instead of one."""

import pytest

from tests.fakes.daemon import Daemon
from tests.members.conftest import StartMember
from tests.members.described import described
from tests.members.sharing import PLACES, until_shared
from tests.members.toolchains import COOPERATIVE, FRANZ, present

pytestmark = pytest.mark.integration

ASSIGNOR = "cooperative-sticky"


@pytest.mark.parametrize("library", COOPERATIVE)
def test_members_give_up_a_part_and_get_it_back(library: str, daemon: Daemon, start_member: StartMember) -> None:
    group = f"cooperative-{library}"
    first = start_member(library, group, assignor=ASSIGNOR)
    until_shared(daemon, [first])

    second = start_member(library, group, assignor=ASSIGNOR)
    shared = until_shared(daemon, [first, second])
    second.leave()
    again = until_shared(daemon, [first])

    assert sorted(map(len, shared.values())) == [4, 5]
    assert again == {first.options.client_id: PLACES}
    assert described(daemon, group).protocol == ASSIGNOR


def test_cooperative_members_of_different_libraries_share_one_group(daemon: Daemon, start_member: StartMember) -> None:
    """Without franz-go: of a topic that librdkafka, leading, names twice it reads the last, and joins for ever."""
    members = []
    for library in COOPERATIVE:
        if library == FRANZ or library not in present():
            continue
        members.append(start_member(library, "cooperative", assignor=ASSIGNOR))
        until_shared(daemon, members)
    while len(members) > 1:
        members.pop(0).leave()
        until_shared(daemon, members)

    assert described(daemon, "cooperative").protocol == ASSIGNOR
