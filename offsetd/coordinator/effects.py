"""What a step of a group's membership brings about, as data: replies to held requests, and what the log must keep."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from offsetd.record import Generation
from protocol.errors import Code

NO_GENERATION: Final = -1


class JoinReply(NamedTuple):
    """The answer to a JoinGroup, whatever its version."""

    code: Code
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    # Id, instance id and metadata of every member: only for the leader.
    members: tuple[tuple[str, str | None, bytes], ...] = ()


class SyncReply(NamedTuple):
    """The answer to a SyncGroup."""

    code: Code
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Answer(NamedTuple):
    """A held request, which is the broker's own object, and its reply."""

    held: object
    reply: JoinReply | SyncReply


@dataclass(slots=True)
class Effects:
    """All of one step, in order."""

    answers: list[Answer] = field(default_factory=list)
    # To be appended; the membership hears by `settled` or `refused` what became of it.
    append: Generation | None = None

    def answer(self, held: object | None, reply: JoinReply | SyncReply) -> None:
        """Answer a request, if there is one."""
        if held is not None:
            self.answers.append(Answer(held, reply))
