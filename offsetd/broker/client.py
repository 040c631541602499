"""What the broker sees of the world at its edges: a connection, and the clocks."""

import time
from typing import Protocol

from offsetd.broker.turns import Turns
from offsetd.coordinator.shape import Shape


class Client(Protocol):
    """A connection: who it is, the order of its replies, and the shapes of its commits."""

    host: str
    turns: Turns
    shapes: dict[bytes, Shape]
    # Monotonic seconds at which the newest bytes came.
    received_at: float


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is measured."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that never go back."""


class MachineClock:
    """The machine's own clocks."""

    monotonic = staticmethod(time.monotonic)

    @staticmethod
    def wall_ms() -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
