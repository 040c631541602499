"""How a member takes part in its group: what it is told, and how long everybody waits."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from offsetd.client.position import TopicPartition

Partitions: TypeAlias = tuple[TopicPartition, ...]
#: Told which partitions a member got or lost.
Callback: TypeAlias = Callable[[Partitions], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times of a member. The defaults are those of Kafka's Java client where it has the same."""

    session_timeout_s: float = 45.0
    """A member that was not heard of for so long is taken for dead."""
    heartbeat_interval_s: float = 3.0
    """How often it lets itself be heard."""
    rebalance_timeout_s: float = 60.0
    """How long the others wait for this member to let go of its partitions and join again."""
    topics_refresh_s: float = 60.0
    """How often the broker is asked for new topics and partitions."""

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_interval_s < self.session_timeout_s:
            raise ValueError(
                f"heartbeat_interval_s is {self.heartbeat_interval_s:g}, want more than 0 and less than "
                f"{self.session_timeout_s:g} (session_timeout_s)"
            )
        for name in ("rebalance_timeout_s", "topics_refresh_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name):g}, want more than 0")


async def ignore(_: Partitions) -> None:
    """Do nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """What the application does about partitions. One is called at a time; heartbeats go on meanwhile."""

    on_assigned: Callback = ignore
    """Called with all partitions of a generation, which may be none."""
    on_revoked: Callback = ignore
    """Called before others get them: finish, and commit; they are this member's until it returns."""
    on_lost: Callback = ignore
    """Called when others may have them already: drop what is unfinished, a commit would be refused."""
