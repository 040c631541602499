"""What a scenario is: scripted requests as data, sent word for word to Kafka and to offsetd. Nothing is sent here.

Three kinds of words stand for something else until they are sent: a text that begins with `@` is a name of this run of
the scenario alone (no other scenario or version has used that group), one that begins with `~` is the member id that a
client was given, and `id_of` is each peer's own id of a topic.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from protocol.api import Request
from protocol.schema import parse_versions
from tests.conformance.member_ids import MemberIds

#: Topics that both peers know before the first step, each with this many partitions.
ORDERS: Final = "orders"
PAYMENTS: Final = "payments"
#: Nobody commits to this one, so that its log is empty by every measure.
EMPTY: Final = "empty"
#: Commits name partitions of this one that it does not have.
GROWN: Final = "grown"
#: Messages go to this one.
WRITTEN: Final = "written"
TOPICS: Final = (ORDERS, PAYMENTS, EMPTY, GROWN, WRITTEN)
PARTITIONS: Final = 4
#: How large a group may become.
MEMBERS_MAX: Final = 3

_ID_MARK: Final = b"id:"
_UUID_BYTES: Final = 16

#: One request for all versions, or how to put the same question in each.
Asked = Request | Callable[[int], Request]


@dataclass(frozen=True, slots=True)
class Seen:
    """How a group looks when a held request has been taken."""

    group: str
    state: str
    members: int


@dataclass(frozen=True, slots=True)
class Step:
    """One request, and what its answers have in common."""

    name: str
    #: None: nothing is asked, the answer to the client's held request is taken.
    asked: Asked | None
    #: In which of the scenario's versions the step takes part.
    versions: str = "0+"
    #: Its own version, if the step only prepares or looks after another API.
    at: int | None = None
    #: Whether the order of the answer's lists is nobody's promise.
    unordered: bool = False
    #: The topics that an answer is narrowed to, where it lists also what other scenarios have made.
    only: tuple[str, ...] = ()
    #: Whether an answer comes at all, so that nobody waits for one that never does.
    answered: bool = True
    #: Which client asks, on a connection of its own, and how it calls itself.
    by: str = ""
    client_id: str | None = "raw"
    #: Whether the answer waits for what others do, and is taken in a later step.
    held: bool = False
    #: What to wait for before the next step.
    until: Seen | None = None
    #: Whether an answer is narrowed to the groups of this run.
    own: bool = False

    def takes_part(self, version: int) -> bool:
        """Tell whether this version of the scenario has the step."""
        return version in parse_versions(self.versions)

    def request(self, version: int) -> Request:
        """Return the request as this version puts it."""
        assert self.asked is not None, "nothing is asked"
        return self.asked(version) if callable(self.asked) else self.asked


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes that no ordinary client sends, on a connection of their own: answered or closed is what counts."""

    name: str
    data: bytes
    #: API and version to read an answer by, if it can be read.
    reads: tuple[int, int] | None
    #: So many zero bytes follow.
    zeros: int = 0


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames that have something in common."""

    name: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps of one connection, gone through again in every version of one API that both peers serve."""

    name: str
    api: int
    steps: tuple[Step, ...]
    versions: str = "0+"
    #: Whether it is about a daemon with `topics.strict`.
    strict: bool = False

    def speaks(self, version: int) -> bool:
        """Tell whether the scenario is gone through in this version."""
        return version in parse_versions(self.versions)


def id_of(topic: str) -> bytes:
    """Stand for the id that each peer has given a topic."""
    mark = _ID_MARK + topic.encode()
    assert len(mark) <= _UUID_BYTES
    return mark.ljust(_UUID_BYTES, b"\0")


def spoken(request: Request, run: str, topic_ids: Mapping[str, bytes], member_ids: MemberIds | None = None) -> Request:
    """Put the words of a run and of a peer in place of those that stand for them."""
    put: Request = _put(request, run, topic_ids, member_ids)
    return put


def _put(value: Any, run: str, topic_ids: Mapping[str, bytes], member_ids: MemberIds | None) -> Any:
    if isinstance(value, str) and value.startswith("@"):
        return f"{run}.{value[1:]}"
    if isinstance(value, str) and value.startswith("~") and member_ids is not None:
        return member_ids.word(value[1:])
    if isinstance(value, bytes) and value.startswith(_ID_MARK):
        return topic_ids[value.removeprefix(_ID_MARK).rstrip(b"\0").decode()]
    if isinstance(value, tuple):
        parts = [_put(part, run, topic_ids, member_ids) for part in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value
