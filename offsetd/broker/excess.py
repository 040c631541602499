"""What members say stays in memory as long as they are members: mostly little, and for the rest there is a bound."""

import structlog

from offsetd.coordinator.member import Joining, excess_of
from offsetd.logs import RateLimited

logger = structlog.get_logger()


class Excess:
    """By how much the members of all groups say more than members usually do."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._by_group: dict[str, int] = {}
        self._loud = RateLimited(logger)

    def has_room(self, joining: Joining, *, now_ms: int) -> bool:
        """Tell whether a newcomer may be let in; who says as little as most always may."""
        more = excess_of(joining.protocols)
        if not more or self._bytes + more <= self._bytes_max:
            return True
        reason = "what members of all groups say takes too much memory"
        self._loud.warning(now_ms, reason, "join_refused", reason=reason, bytes=self._bytes + more)
        return False

    def count(self, group_id: str, size: int) -> None:
        """Take down how much it is for one group now."""
        self._bytes += size - self._by_group.pop(group_id, 0)
        if size:
            self._by_group[group_id] = size
