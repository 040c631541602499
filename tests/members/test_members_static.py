"""Static members: they may be started again without anybody noticing, and of two with one name the older is fenced."""

import re

import pytest

from tests.clients.process import ClientRefused
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon
from tests.members.conftest import StartMember
from tests.members.described import described, remove_member
from tests.members.process import AIOKAFKA, KAFKA_PYTHON
from tests.members.sharing import until, until_shared
from tests.members.toolchains import COMMITTING, STATIC

pytestmark = pytest.mark.integration

#: So rare that a member does not learn of its fate before it is told to commit.
RARE_HEARTBEAT_MS = 15_000
LONG_SESSION_MS = 45_000


@pytest.mark.parametrize("library", STATIC)
def test_a_restart_keeps_the_partitions_and_disturbs_nobody(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    group = f"restart-{library}"
    first, other = (start_member(library, group, instance=name) for name in ("one", "two"))
    before = until_shared(daemon, [first, other])
    assignments = other.look().assignments

    first.crash()
    again = start_member(library, group, instance="one")
    after = until_shared(daemon, [again, other])

    assert after[again.options.client_id] == before[first.options.client_id]
    assert other.look().assignments == assignments


@pytest.mark.parametrize("library", [library for library in STATIC if library in COMMITTING])
def test_the_older_of_two_with_one_name_cannot_commit(library: str, daemon: Daemon, start_member: StartMember) -> None:
    group = f"twin-{library}"
    first = start_member(library, group, instance="one", session_ms=LONG_SESSION_MS, heartbeat_ms=RARE_HEARTBEAT_MS)
    until_shared(daemon, [first])
    first.commit({("orders", 0): 1})

    twin = start_member(library, group, instance="one")
    until_shared(daemon, [twin])
    twin.commit({("orders", 0): 2})
    # aiokafka does not say which instance it is when it commits, so the daemon knows only that its id is gone.
    with pytest.raises(ClientRefused, match=r"(?i)fenced|fatal|Commit ?Failed"):
        first.commit({("orders", 0): 3})

    assert stored(daemon, group)["orders", 0][0] == 2


@pytest.mark.parametrize("library", [library for library in STATIC if library not in (KAFKA_PYTHON, AIOKAFKA)])
def test_the_older_of_two_with_one_name_hears_that_it_is_fenced(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    """kafka-python tells nobody but its log; aiokafka fences its twin in turn."""
    group = f"fenced-{library}"
    first = start_member(library, group, instance="one")
    until_shared(daemon, [first])

    twin = start_member(library, group, instance="one")
    until_shared(daemon, [twin])
    seen = until("the first to hear of it", first.look, lambda look: look.error is not None)
    first.crash()

    assert re.search("fenced|same group.instance.id", str(seen.error), re.IGNORECASE)


@pytest.mark.parametrize("library", STATIC)
def test_a_static_member_that_closes_keeps_its_place_until_it_is_removed(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    """It is expected back; only its silence or an administrator takes it out."""
    group = f"silent-{library}"
    other, static = start_member(library, group), start_member(library, group, instance="one")
    until_shared(daemon, [other, static])

    static.leave()
    seen = described(daemon, group)
    remove_member(daemon, group, instance="one")
    until_shared(daemon, [other])

    assert (seen.state, len(seen.members)) == ("Stable", 2)
