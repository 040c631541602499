"""Every metric of the daemon, made at scrape from counters and live state, so that no series outlives its group."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from offsetd import __version__
from offsetd.http.names import api_name, code_name
from offsetd.logs import escaped
from offsetd.observed import Histogram, Live, Observed

SLOT_STATES = ("loading", "ready", "failed")
MILLISECONDS = 1000


class DaemonCollector(Collector):
    """Reads ``Observed`` and ``Live`` when Prometheus asks."""

    def __init__(
        self,
        *,
        observed: Observed,
        live: Callable[[], Live],
        ready: Callable[[], bool],
        per_group: bool,
        groups_max: int,
    ) -> None:
        self._observed = observed
        self._live = live
        self._ready = ready
        self._per_group = per_group
        self._groups_max = groups_max

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not scrape a daemon that has not started."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        observed, live = self._observed, self._live()
        info = GaugeMetricFamily("offsetd_info", "Version of the daemon.", labels=("version",))
        info.add_metric((__version__,), 1)
        yield info
        yield _gauge("ready", "Whether every slot is served (1) or not (0).", self._ready())
        yield from _requests(observed)
        yield from _offsets(observed, live)
        yield from _connections(observed, live)
        yield from _journal(observed, live)
        yield from _compaction(observed, live)
        yield from _sealing(observed)
        yield from _load(observed, live)
        if self._per_group:
            yield from self._groups(live)

    def _groups(self, live: Live) -> Iterator[Metric]:
        offsets = GaugeMetricFamily("offsetd_group_offsets", "Live offsets of the group.", labels=("group",))
        times = GaugeMetricFamily(
            "offsetd_group_last_commit_timestamp_seconds",
            "When the group last committed, seconds since 1970.",
            labels=("group",),
        )
        shown = 0
        # The first ones in a stable order, not the newest: a series that comes and goes is worth nothing in a graph.
        for group, count, last_commit_ms in islice(live.per_group, self._groups_max):
            label = (escaped(group),)
            offsets.add_metric(label, count)
            times.add_metric(label, last_commit_ms / MILLISECONDS)
            shown += 1
        yield offsets
        yield times
        yield _gauge(
            "groups_without_series",
            "Groups left out of the per-group series because of metrics.groups.max.",
            max(0, live.groups - shown),
        )


def _requests(observed: Observed) -> Iterator[Metric]:
    requests = CounterMetricFamily("offsetd_requests", "Requests by API and version.", labels=("api", "version"))
    for (api_key, version), count in sorted(observed.requests.items()):
        requests.add_metric((api_name(api_key), str(version)), count)
    yield requests
    errors = CounterMetricFamily(
        "offsetd_request_errors", "Errors answered, by API and code.", labels=("api", "code", "error")
    )
    for (api_key, code), count in sorted(observed.refusals.items()):
        errors.add_metric((api_name(api_key), str(code), code_name(code)), count)
    yield errors
    seconds = HistogramMetricFamily(
        "offsetd_request_seconds", "From a whole request to its reply being sent.", labels=("api",)
    )
    for api_key, histogram in sorted(observed.latency.items()):
        _add(seconds, histogram, (api_name(api_key),))
    yield seconds


def _offsets(observed: Observed, live: Live) -> Iterator[Metric]:
    yield _gauge("groups", "Groups that have offsets or members.", live.groups)
    states = GaugeMetricFamily("offsetd_groups_by_state", "Groups by state.", labels=("state",))
    for state, count in live.group_states.items():
        states.add_metric((state,), count)
    yield states
    yield _gauge("members", "Members of all groups.", live.members)
    yield _counter("generations", "Generations of members completed, also empty ones.", observed.generations)
    yield _gauge("offsets", "Live offsets.", live.offsets)
    yield _gauge("topics_known", "Topics that clients are told of.", live.topics_known)
    yield _gauge("shapes", "Shapes of repeated requests held in memory.", live.shapes)
    yield _counter("commit_requests", "OffsetCommit requests decided.", observed.commit_requests)
    yield _counter("commit_partitions", "Partitions in OffsetCommit requests.", observed.commit_partitions)
    yield _counter("unchanged_commits", "OffsetCommit requests that changed nothing.", observed.unchanged_commits)
    yield _counter("fetch_requests", "OffsetFetch requests answered.", observed.fetch_requests)
    yield _counter("fetch_cache_hits", "OffsetFetch requests answered from a kept reply.", observed.fetch_cache_hits)
    yield _counter("shape_hits", "Requests decoded by a shape learned before.", observed.shape_hits)
    yield _counter("shapes_learned", "Shapes learned.", observed.shape_learned)
    yield _counter("expired_offsets", "Offsets removed after their retention.", observed.expired_offsets)
    yield _counter("expired_groups", "Groups that lost their last offset by expiry.", observed.expired_groups)


def _connections(observed: Observed, live: Live) -> Iterator[Metric]:
    yield _counter("connections_accepted", "Connections taken.", observed.connections_accepted)
    closed = CounterMetricFamily("offsetd_connections_closed", "Connections ended, by reason.", labels=("reason",))
    for reason, count in sorted(observed.connections_closed.items()):
        closed.add_metric((reason,), count)
    yield closed
    refused = CounterMetricFamily(
        "offsetd_connections_refused", "Connections closed at once because of a limit.", labels=("reason",)
    )
    for reason, count in sorted(observed.connections_refused.items()):
        refused.add_metric((reason,), count)
    yield refused
    yield _gauge("connections_open", "Connections open now.", observed.connections_open)
    yield _gauge("connections_max", "Limit of open connections (max.connections.total).", live.connections_max)
    yield _counter("received_bytes", "Bytes read from clients.", observed.bytes_received)
    yield _counter("sent_bytes", "Bytes handed to clients' sockets.", observed.bytes_sent)
    yield _gauge("in_flight_bytes", "Memory of requests and unsent replies.", observed.in_flight_bytes)


def _journal(observed: Observed, live: Live) -> Iterator[Metric]:
    yield _counter("journal_batches", "Batches written to the journal.", observed.journal_batches)
    yield _counter("journal_written_bytes", "Bytes written to the journal.", observed.journal_bytes_written)
    yield _counter("journal_entries", "Entries written to the journal, one per request.", observed.journal_records)
    yield _histogram("journal_batch_entries", "Entries of a batch, one per request.", observed.batch_entries)
    yield _histogram("journal_batch_bytes", "Bytes of a batch.", observed.batch_bytes)
    yield _histogram("journal_sync_seconds", "Duration of a sync of the journal.", observed.sync_seconds)
    yield _counter("journal_refused_commits", "Commits refused because the disk was full.", observed.journal_refusals)
    yield _gauge("journal_bytes", "Size of the journal's segments.", live.journal_bytes)
    yield _gauge("journal_segments", "Segments of the journal.", live.journal_segments)
    yield _gauge("journal_batch_number", "Number of the last settled batch.", live.batch_number)
    yield _gauge("journal_epoch", "Epoch of the journal, one more at every start.", live.epoch)
    yield _gauge("checkpoint_bytes", "Size of the checkpoint.", live.checkpoint_bytes)
    yield _gauge("history_bytes", "Size of the history, segments and sealed files together.", live.history_bytes)
    yield _gauge("history_segments", "Segments in the history.", live.history_segments)
    yield _gauge("history_sealed_bytes", "Size of the history's sealed files.", live.history_sealed_bytes)
    yield _gauge("history_sealed_files", "Sealed files (Parquet) in the history.", live.history_sealed_files)
    yield _gauge("disk_free_bytes", "Free space of the data directory's disk.", live.disk_free_bytes)
    yield _gauge("disk_size_bytes", "Size of the data directory's disk.", live.disk_total_bytes)
    yield _gauge("disk_full", "Whether commits are refused for want of space.", live.disk_full)


def _compaction(observed: Observed, live: Live) -> Iterator[Metric]:
    yield _counter("compactions", "Compactions that ended well.", observed.compaction_runs)
    yield _counter("compaction_failures", "Compactions that failed.", observed.compaction_failures)
    yield _gauge(
        "compaction_last_success_timestamp_seconds",
        "When a compaction last ended well, seconds since 1970; 0 for never since the start.",
        observed.compaction_last_success_ms / MILLISECONDS,
    )
    yield _gauge(
        "compaction_last_seconds", "Duration of the last compaction that ended well.", observed.compaction_seconds
    )
    yield _gauge("compaction_lag_bytes", "Sealed bytes that wait for compaction.", observed.compaction_lag_bytes)
    waiting = GaugeMetricFamily(
        "offsetd_compaction_oldest_waiting_timestamp_seconds",
        "When the oldest segment that waits for compaction was sealed, seconds since 1970; absent when none waits.",
    )
    if live.oldest_sealed_ms is not None:
        waiting.add_metric((), live.oldest_sealed_ms / MILLISECONDS)
    yield waiting


def _sealing(observed: Observed) -> Iterator[Metric]:
    yield _counter("sealings", "Runs that sealed history and ended well.", observed.sealing_runs)
    yield _counter("sealing_failures", "Runs that sealed history and failed.", observed.sealing_failures)
    yield _gauge(
        "sealing_last_success_timestamp_seconds",
        "When such a run last ended well, seconds since 1970; 0 for never since the start.",
        observed.sealing_last_success_ms / MILLISECONDS,
    )
    yield _gauge("sealing_last_seconds", "Duration of the last such run that ended well.", observed.sealing_seconds)
    yield _counter("sealing_files", "Files of Parquet written from history.", observed.sealing_files)
    yield _counter("sealing_bytes", "Bytes of these files.", observed.sealing_bytes)
    yield _counter("sealing_records", "Records in these files.", observed.sealing_records)


def _load(observed: Observed, live: Live) -> Iterator[Metric]:
    slots = GaugeMetricFamily("offsetd_slots", "Slots by state.", labels=("state",))
    # All states always, so that an alert on one of them has a series to compare.
    for state in SLOT_STATES:
        slots.add_metric((state,), live.slots.get(state, 0))
    yield slots
    yield _gauge("load_share", "How much of the load at start is done, 0 to 1.", live.load_share)
    yield _gauge("load_offsets", "Offsets brought into memory by the load at start.", observed.load_records)
    yield _gauge("load_seconds", "Duration of the load at start, so far.", observed.load_seconds)
    yield _gauge("recovered_torn_bytes", "Unsynced bytes that recovery cut at start.", observed.recovered_torn_bytes)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"offsetd_{name}", about, value=value)


def _counter(name: str, about: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"offsetd_{name}", about, value=value)


def _histogram(name: str, about: str, histogram: Histogram) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"offsetd_{name}", about)
    _add(family, histogram, ())
    return family


def _add(family: HistogramMetricFamily, histogram: Histogram, labels: tuple[str, ...]) -> None:
    """Add a histogram the way Prometheus has it: each bucket counts all the ones below."""
    buckets: list[tuple[str, float]] = []
    running = 0
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        running += count
        buckets.append((bound, running))
    family.add_metric(labels, buckets, histogram.total)
