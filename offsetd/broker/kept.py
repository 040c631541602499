"""Replies kept to be sent again, within a bound on what they take. Whether one is still true, its owner knows."""

from typing import Generic, TypeVar

T = TypeVar("T")

#: What holds an entry beside its bytes.
_ENTRY_BYTES = 300


class Kept(Generic[T]):
    """Replies by what was asked, each with what it was true for."""

    def __init__(self, *, bytes_max: int, reply_bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._reply_bytes_max = reply_bytes_max
        # What it was true for, and the reply around its correlation id.
        self.replies: dict[bytes, tuple[T, bytes, bytes]] = {}
        self.held_bytes = 0

    def keep(self, key: bytes, true_for: T, reply: bytes) -> None:
        """Keep a frame; forget all when the bound is reached, as those in use are soon made again."""
        before = self.replies.pop(key, None)
        if before is not None:
            self.held_bytes -= _cost(key, before[2])
        tail = reply[8:]
        cost = _cost(key, tail)
        if cost > self._reply_bytes_max:
            return
        if self.held_bytes + cost > self._bytes_max:
            self.replies.clear()
            self.held_bytes = 0
        self.held_bytes += cost
        self.replies[key] = (true_for, reply[:4], tail)


def _cost(key: bytes, tail: bytes) -> int:
    return _ENTRY_BYTES + len(key) + len(tail)
