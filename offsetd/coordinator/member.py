"""One member of a group: what it said when it joined, what it was assigned, and which of its requests are held."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from offsetd.record import ENTRY_BYTES_MAX
from protocol.errors import Code

#: Names that members bring are shown to others, also in versions that write a name's length in two bytes.
NAME_BYTES_MAX: Final = 1024
#: So much of a client id is part of the ids that its members are given.
CLIENT_ID_SHOWN_MAX: Final = 255
#: What a protocol takes in memory, however short it is.
_PROTOCOL_BYTES_LEAST: Final = 64
#: What members say is counted from here on: nearly all of them say less.
_SAID_BYTES_FREE: Final = 4096


class Joining(NamedTuple):
    """What a JoinGroup says, whatever its version."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    # Name and metadata, the one that the member likes best first.
    protocols: tuple[tuple[str, bytes], ...]
    # From version 4 on a newcomer is first given an id, and joins with it.
    needs_id: bool = False
    # From version 9 on a leader that comes back learns that it need not assign anew.
    can_skip_assignment: bool = False

    def refuse(self) -> Code:
        """Tell why nobody can join so, if it is so: what one request may leave in memory is bounded.

        A generation whose members say more than a log entry can hold would be refused anyway.
        """
        names = (self.protocol_type, self.instance_id or "", *(name for name, _ in self.protocols))
        if any(len(name.encode()) > NAME_BYTES_MAX for name in names):
            return Code.INVALID_REQUEST
        return Code.INVALID_REQUEST if _size_of(self.protocols) > ENTRY_BYTES_MAX else Code.NONE

    def made_id(self, new_id: str) -> str:
        """Return the id of the member that comes to be."""
        name = self.client_id[:CLIENT_ID_SHOWN_MAX] if self.instance_id is None else self.instance_id
        return f"{name}-{new_id}"


@dataclass(slots=True, eq=False)
class Member:
    """A member. Held requests are the broker's own objects; nothing is known of them here."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    joining: object | None = None
    syncing: object | None = None
    # Until its first join phase is over it does not know its id, and cannot send heartbeats.
    is_new: bool = False
    deadline_ms: int = field(default=0)

    @property
    def is_excused(self) -> bool:
        """Whether no heartbeat is expected: one of its requests is held, and that is our doing."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return what it said for a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that it likes best."""
        return next(name for name, _ in self.protocols if name in candidates)

    def hear(self, now_ms: int) -> None:
        """Take a sign of life."""
        self.deadline_ms = now_ms + self.session_timeout_ms


def excess_of(protocols: tuple[tuple[str, bytes], ...]) -> int:
    """Return by how many bytes a member says more than members usually do."""
    return max(_size_of(protocols) - _SAID_BYTES_FREE, 0)


def _size_of(protocols: tuple[tuple[str, bytes], ...]) -> int:
    return sum(_PROTOCOL_BYTES_LEAST + len(metadata) for _, metadata in protocols)
