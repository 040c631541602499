"""Who owns what: the word of the members and the word of the daemon, which must become one."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from tests.clients.process import Place
from tests.fakes.daemon import WAIT_SECONDS, Daemon
from tests.members.described import described
from tests.members.member import Member
from tests.members.process import Look

TOPICS: Final = {"orders": 6, "payments": 3}
PLACES: Final = frozenset((topic, number) for topic, count in TOPICS.items() for number in range(count))
#: The setting that makes these topics.
TOPICS_KNOWN: Final = ",".join(f"{topic}:{count}" for topic, count in TOPICS.items())
_LOOK_SECONDS: Final = 0.05
T = TypeVar("T")


def until(what: str, look: Callable[[], T], is_right: Callable[[T], bool]) -> T:
    """Look again and again until something is as it should be, and return it."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_right(seen := look()):
        assert time.monotonic() < deadline, f"waited in vain for {what}; last seen: {seen}"
        time.sleep(_LOOK_SECONDS)
    return seen


def until_shared(
    daemon: Daemon, members: Sequence[Member], places: Iterable[Place] = PLACES
) -> dict[str, frozenset[Place]]:
    """Wait until these members, and no others, own every partition once; return what each client owns."""
    (group,) = {member.options.group for member in members}
    wanted = frozenset(places)

    def look() -> tuple[str, dict[str, frozenset[Place]], dict[str, Look]]:
        found = described(daemon, group)
        owned = {member.client_id: member.owned for member in found.members}
        assert len(owned) <= len(found.members)
        return f"{found.state} {len(found.members)}", owned, {each.options.client_id: each.look() for each in members}

    def is_shared(seen: tuple[str, dict[str, frozenset[Place]], dict[str, Look]]) -> bool:
        state, owned, looks = seen
        return (
            state == f"Stable {len(members)}"
            and owned == {client_id: each.owned for client_id, each in looks.items()}
            and is_once(owned.values(), wanted)
        )

    return until(f"{group} to be shared", look, is_shared)[1]


def is_once(parts: Iterable[frozenset[Place]], wanted: frozenset[Place] = PLACES) -> bool:
    """Tell whether the parts make up the whole, and none of them overlap."""
    flat = [place for part in parts for place in part]
    return len(flat) == len(wanted) and frozenset(flat) == wanted
