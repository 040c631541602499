"""What passes by itself: failures that are worth another attempt. Callers of the client never see them bare."""

from typing import Final

from offsetd.client.address import Address
from protocol.errors import Code

#: Worth another attempt at another broker: whoever answered is not, or cannot be, the coordinator now.
_ELSEWHERE: Final = frozenset({Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR, Code.REQUEST_TIMED_OUT})
#: Worth another attempt at all. REQUEST_TIMED_OUT leaves open whether a commit was stored, and so does a connection
#: that is lost; both are tried again because a commit is the same twice as once.
_AGAIN: Final = _ELSEWHERE | {Code.COORDINATOR_LOAD_IN_PROGRESS}


class Transient(Exception):
    """An attempt failed, and the next one may not."""

    sent = False
    """Whether a broker may have done what was asked."""


class Busy(Transient):
    """A broker answered that it cannot now."""

    def __init__(self, *, address: Address, code: int) -> None:
        super().__init__(f"{address} answered {code} {Code(code).name}")
        self.address = address
        self.code = Code(code)
        self.sent = code == Code.REQUEST_TIMED_OUT


class ConnectionFailed(Transient):
    """A connection could not be made, was lost, or brought what no broker sends."""

    def __init__(self, *, address: Address, reason: str, sent: bool) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.sent = sent


def is_transient(code: int) -> bool:
    """Tell whether what was refused with this code is worth another attempt."""
    return code in _AGAIN


def moved(code: int) -> bool:
    """Tell whether the coordinator must be looked for again."""
    return code in _ELSEWHERE
