"""How long the client waits, how often it tries, and how much it holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a client. The defaults are those of Kafka's Java client where it has the limit."""

    connect_timeout_s: float = 10.0
    """Until a connection is open and the broker has said what it serves."""
    request_timeout_s: float = 30.0
    """Until a request that was sent is answered; then its connection is given up."""
    total_timeout_s: float = 60.0
    """Until a call gives up, with all its attempts and pauses."""
    backoff_first_s: float = 0.1
    """The longest pause after a first failure; it doubles with each further one."""
    backoff_max_s: float = 3.0
    """The longest pause of all."""
    reply_bytes_max: int = 100 * 1024 * 1024
    """The largest reply that is read."""
    commit_bytes_max: int = 512 * 1024
    """About the largest request that several commits are put together to; a broker takes 1 MiB of records."""

    def __post_init__(self) -> None:
        for name in ("connect_timeout_s", "request_timeout_s", "total_timeout_s", "reply_bytes_max"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, want more than 0")
        if not 0 <= self.backoff_first_s <= self.backoff_max_s:
            raise ValueError(f"backoff_first_s is {self.backoff_first_s}, want 0..{self.backoff_max_s} (backoff_max_s)")
