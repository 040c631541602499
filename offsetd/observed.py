"""What the daemon counts while it works, and what it can be asked about itself. Plain numbers, no clock, no names.

The hot path adds to ``Observed``; ``offsetd/http`` reads it, together with a ``Live``, when it is scraped.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SECONDS_BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
ENTRIES_BOUNDS = tuple(float(4**power) for power in range(9))
BYTES_BOUNDS = tuple(float(64 * 4**power) for power in range(10))


class Histogram:
    """Counts of values by fixed upper bounds, the last count being for all above."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value; a value equal to a bound belongs below it, as Prometheus has it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


def seconds_histogram() -> Histogram:
    """Return a histogram of durations from 0.1 ms to 10 s."""
    return Histogram(SECONDS_BOUNDS)


class Observed:
    """Counters and last values since the start. Every attribute is written in place by the part that it is about."""

    __slots__ = (
        "batch_bytes",
        "batch_entries",
        "bytes_received",
        "bytes_sent",
        "commit_partitions",
        "commit_requests",
        "compaction_failures",
        "compaction_lag_bytes",
        "compaction_last_success_ms",
        "compaction_runs",
        "compaction_seconds",
        "connections_accepted",
        "connections_closed",
        "connections_open",
        "connections_refused",
        "expired_groups",
        "expired_offsets",
        "fetch_cache_hits",
        "fetch_requests",
        "generations",
        "in_flight_bytes",
        "journal_batches",
        "journal_bytes_written",
        "journal_records",
        "journal_refusals",
        "latency",
        "load_records",
        "load_seconds",
        "recovered_torn_bytes",
        "refusals",
        "requests",
        "sealing_bytes",
        "sealing_failures",
        "sealing_files",
        "sealing_last_success_ms",
        "sealing_records",
        "sealing_runs",
        "sealing_seconds",
        "shape_hits",
        "shape_learned",
        "sync_seconds",
        "unchanged_commits",
    )

    def __init__(self) -> None:
        self.requests: dict[tuple[int, int], int] = defaultdict(int)
        """Requests by API key and version."""
        self.refusals: dict[tuple[int, int], int] = defaultdict(int)
        """Errors answered, by API key and error code."""
        self.latency: dict[int, Histogram] = defaultdict(seconds_histogram)
        """Seconds from a whole frame to its reply being handed to the socket, by API key."""

        self.commit_requests = 0
        """OffsetCommit requests decided."""
        self.commit_partitions = 0
        """Partitions in them."""
        self.unchanged_commits = 0
        """OffsetCommit requests that changed nothing and wrote no record."""
        self.fetch_requests = 0
        """OffsetFetch requests answered."""
        self.fetch_cache_hits = 0
        """Of these, answered from the reply kept for the group's version."""
        self.shape_hits = 0
        """Requests decoded by a shape learned before."""
        self.shape_learned = 0
        """Shapes learned."""

        self.generations = 0
        """Generations of members completed, an empty one being the last member's leaving."""

        self.expired_offsets = 0
        """Offsets removed because their retention was over."""
        self.expired_groups = 0
        """Groups that lost their last offset that way."""

        self.connections_accepted = 0
        """Connections taken."""
        self.connections_closed: dict[str, int] = defaultdict(int)
        """Connections ended, by reason."""
        self.connections_refused: dict[str, int] = defaultdict(int)
        """Connections closed at once because of a limit, by limit."""
        self.connections_open = 0
        """Connections open now."""
        self.bytes_received = 0
        """Bytes read from clients."""
        self.bytes_sent = 0
        """Bytes handed to clients' sockets."""
        self.in_flight_bytes = 0
        """Memory of requests and unsent replies now."""

        self.journal_batches = 0
        """Batches written."""
        self.journal_bytes_written = 0
        """Bytes of them."""
        self.journal_records = 0
        """Records in them."""
        self.batch_entries = Histogram(ENTRIES_BOUNDS)
        """Entries (one per request) of each batch."""
        self.batch_bytes = Histogram(BYTES_BOUNDS)
        """Bytes of each batch."""
        self.sync_seconds = seconds_histogram()
        """Seconds that each sync took."""
        self.journal_refusals = 0
        """Commits refused because the disk was full."""

        self.compaction_runs = 0
        """Compactions that ended well."""
        self.compaction_failures = 0
        """Compactions that failed."""
        self.compaction_last_success_ms = 0
        """Wall-clock time of the last compaction that ended well, 0 for none."""
        self.compaction_seconds = 0.0
        """Seconds that it took."""
        self.compaction_lag_bytes = 0
        """Sealed bytes that wait for compaction now."""

        self.sealing_runs = 0
        """Runs that sealed history and ended well."""
        self.sealing_failures = 0
        """Runs that failed."""
        self.sealing_last_success_ms = 0
        """Wall-clock time of the last run that ended well, 0 for none."""
        self.sealing_seconds = 0.0
        """Seconds that it took."""
        self.sealing_files = 0
        """Files sealed, also by runs that failed later."""
        self.sealing_bytes = 0
        """Bytes of them."""
        self.sealing_records = 0
        """Records in them."""

        self.load_records = 0
        """Records read into memory at the start so far."""
        self.load_seconds = 0.0
        """Seconds that the load took so far."""
        self.recovered_torn_bytes = 0
        """Bytes of an unsynced tail that recovery cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """State as it is at this moment, gathered only when asked for."""

    groups: int
    group_states: Mapping[str, int]
    """Groups that have or await members, by Kafka's name of their state; all others are empty."""
    members: int
    """Members of all groups."""
    offsets: int
    slots: Mapping[str, int]
    """Slots by state: loading, ready, failed."""
    load_share: float
    """How much of the load is done, 0 to 1."""
    journal_bytes: int
    journal_segments: int
    checkpoint_bytes: int
    history_bytes: int
    """Of segments and sealed files together."""
    history_segments: int
    history_sealed_bytes: int
    history_sealed_files: int
    oldest_sealed_ms: int | None
    """When the oldest segment that waits for compaction was sealed; None when none waits."""
    disk_free_bytes: int
    disk_total_bytes: int
    disk_full: bool
    """Commits are refused for want of space."""
    batch_number: int
    """Number of the last settled batch."""
    epoch: int
    shapes: int
    """Shapes held in memory."""
    topics_known: int
    connections_max: int
    """The limit of open connections."""
    per_group: Iterable[tuple[str, int, int]]
    """Group id, its live offsets, wall-clock milliseconds of its last commit; read lazily, in a stable order."""
