"""The newer group protocol (KIP-848) is not served: who asks for it hears so at once, and disturbs nobody."""

import pytest

from tests.fakes.daemon import Daemon
from tests.members.conftest import StartMember
from tests.members.process import CONFLUENT
from tests.members.sharing import until, until_shared
from tests.members.toolchains import JAVA, LIBRARIES

pytestmark = pytest.mark.integration

#: The libraries that can ask for it, and the words in which each ends.
WORDS = {CONFLUENT: "API version not supported", JAVA: "Set group.protocol=classic"}


@pytest.mark.parametrize("library", [library for library in LIBRARIES if library in WORDS])
def test_a_client_that_asks_for_the_newer_protocol_ends_with_its_own_error(
    library: str, daemon: Daemon, start_member: StartMember
) -> None:
    group = f"newer-{library}"
    classic = start_member(library, group)
    until_shared(daemon, [classic])
    assignments = classic.look().assignments

    newer = start_member(library, group, protocol="consumer")
    error = until("the client to give up", newer.look, lambda look: look.error is not None).error

    assert error is not None
    assert WORDS[library] in error
    assert classic.look().assignments == assignments
    until_shared(daemon, [classic])
