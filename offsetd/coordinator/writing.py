"""What of a group is on its way to the log, and which static members wait for it. It is told what became of it."""

from typing import Final, NamedTuple

from offsetd.coordinator.effects import Effects, JoinReply
from offsetd.coordinator.member import Member
from offsetd.record import Generation
from protocol.errors import Code

#: How long a group waits before it tries again to have written that it is empty.
RETRY_MS: Final = 1000


class _Return(NamedTuple):
    """A static member that came back, and goes on where it was when the log knows its new id."""

    generation: Generation
    member: Member
    held: object
    reply: JoinReply


class Writing:
    """The generations of one group between append and settled."""

    __slots__ = ("_returns", "_unsettled", "retry_ms")

    def __init__(self) -> None:
        self._unsettled = 0
        self._returns: list[_Return] = []
        # When to try again, after the log refused what it has to know.
        self.retry_ms: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether the log has all that it has to know."""
        return not self._unsettled and self.retry_ms is None

    def begin(self) -> None:
        """Count a generation that is appended."""
        self._unsettled += 1
        self.retry_ms = None

    def hold(self, generation: Generation, member: Member, held: object, reply: JoinReply) -> None:
        """Keep a member's reply until a generation is settled."""
        self._returns.append(_Return(generation, member, held, reply))

    def dismiss(self, member: Member, reply: JoinReply, effects: Effects) -> None:
        """Answer a member's return otherwise, before the log has spoken."""
        for each in self._returns:
            if each.member is member:
                effects.answer(each.held, reply)
        self._returns = [each for each in self._returns if each.member is not member]

    def settled(self, generation: Generation, effects: Effects) -> None:
        """Answer those who waited for it."""
        for each in self._heard(generation):
            effects.answer(each.held, each.reply)

    def refused(self, generation: Generation, code: Code, effects: Effects) -> None:
        """Tell those who waited for it."""
        for each in self._heard(generation):
            effects.answer(each.held, JoinReply(code, ""))

    def retry_later(self, now_ms: int) -> None:
        """Try again after a while."""
        self.retry_ms = now_ms + RETRY_MS

    def give_up(self) -> None:
        """Do not try again: what is to be known has changed."""
        self.retry_ms = None

    def is_due(self, now_ms: int) -> bool:
        """Tell whether it is time to try again."""
        return self.retry_ms is not None and self.retry_ms <= now_ms

    def _heard(self, generation: Generation) -> list[_Return]:
        self._unsettled -= 1
        waited = [each for each in self._returns if each.generation is generation]
        self._returns = [each for each in self._returns if each.generation is not generation]
        return waited
