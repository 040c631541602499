"""How long a join phase may take: the patience of its members, and before it in a new group a wait for more of them."""


class JoinPhase:
    """The end of the join phase under way, if there is one."""

    __slots__ = ("_delay_ms", "_left_ms", "_newcomers", "deadline_ms", "is_first")

    def __init__(self, *, initial_delay_ms: int) -> None:
        self._delay_ms = initial_delay_ms
        self.deadline_ms: int | None = None
        # Whether it is that of a group that was empty: it waits for members that nobody knows yet.
        self.is_first = False
        self._left_ms = 0
        self._newcomers = False

    def begin(self, now_ms: int, patience_ms: int) -> None:
        """Wait for the members that are known."""
        self.is_first = False
        self.deadline_ms = now_ms + patience_ms

    def begin_first(self, now_ms: int, patience_ms: int) -> None:
        """Wait for more: they usually follow the first within moments, and one rebalance serves them all."""
        self.is_first = True
        self._newcomers = False
        self._left_ms = max(patience_ms - self._delay_ms, 0)
        self.deadline_ms = now_ms + self._delay_ms

    def meet_newcomer(self) -> None:
        """Hear that somebody came: others may follow."""
        self._newcomers = True

    def is_due(self, now_ms: int) -> bool:
        """Tell whether its time is over."""
        return self.deadline_ms is not None and self.deadline_ms <= now_ms

    def extend(self, now_ms: int) -> bool:
        """Wait once more for newcomers, if some came and the first member's patience allows it; tell whether."""
        if not (self.is_first and self._newcomers and self._left_ms):
            return False
        self._newcomers = False
        self.deadline_ms = now_ms + min(self._delay_ms, self._left_ms)
        self._left_ms = max(self._left_ms - self._delay_ms, 0)
        return True

    def end(self) -> None:
        """It is over."""
        self.deadline_ms = None
