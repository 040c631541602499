"""What the writer is told: when to sync and when to roll, and where to count. No behaviour."""

from dataclasses import dataclass
from typing import Protocol


class Observes(Protocol):
    """Anything that takes single values, such as a histogram."""

    def observe(self, value: float, /) -> None: ...


class Counters(Protocol):
    """What the writer counts into."""

    journal_batches: int
    journal_bytes_written: int
    journal_records: int
    journal_refusals: int

    @property
    def batch_entries(self) -> Observes: ...

    @property
    def batch_bytes(self) -> Observes: ...

    @property
    def sync_seconds(self) -> Observes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """When the journal is synced and when it rolls. `flush_messages` 1: every batch is synced before it is settled."""

    segment_bytes: int = 64 * 1024 * 1024
    roll_ms: int = 7 * 24 * 3600 * 1000
    flush_messages: int = 1
    flush_ms: int | None = None
