"""The metrics page of the documentation, written from the collector so that it cannot differ from it."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from offsetd.http.collector import SLOT_STATES, DaemonCollector
from offsetd.observed import Live, Observed

HEAD = """\
# Metrics

This page is made from the collector in `offsetd/http/collector.py` by `python -m offsetd.http`; a test keeps it true.

Everything is read when Prometheus asks, at `http://<http.listeners>/metrics`, so no series outlives its group. Counters
begin at 0 with every start. A histogram `x` is the series `x_bucket`, `x_sum` and `x_count`. Beside these stand the
usual `process_*` and `python_*` of the Python client for Prometheus. [operations.md](operations.md) says what to watch
and what to do.

## Series

| name | type | labels | meaning |
| --- | --- | --- | --- |
"""
LABELS_HEAD = """
## Labels

| label | value |
| --- | --- |
"""
LABELS = {
    "api": "Kafka's name of the API, as in `OffsetCommit`; the number of one that has no name here",
    "code": "Kafka's number of the error",
    "error": "Kafka's name of the error, as in `COORDINATOR_LOAD_IN_PROGRESS`",
    "group": (
        "the group's id, with control characters escaped; at most `metrics.groups.max` groups, and none when "
        "`metrics.groups.enabled` is false"
    ),
    "reason": (
        "of a refused connection the setting that refused it; of a closed one `peer` (it left), `error` (it broke), or "
        "why we closed it: see connection_closed in [operations.md](operations.md#what-the-log-says)"
    ),
    "state": " or ".join(f"`{state}`" for state in SLOT_STATES),
    "version": "of `offsetd_requests_total` the version of the API; of `offsetd_info` that of the daemon",
}


def metrics_page() -> str:
    """Return ``docs/metrics.md``, whole."""
    families = list(every_family())
    named = sorted({label for family in families for label in _labels(family)})
    rows = "".join(_row(family) for family in families)
    return HEAD + rows + LABELS_HEAD + "".join(f"| `{label}` | {LABELS[label]} |\n" for label in named)


def every_family() -> Iterator[Metric]:
    """Yield each metric with at least one sample: as a daemon shows them that has done one of everything."""
    observed = Observed()
    observed.requests[8, 9] = 1
    observed.refusals[8, 7] = 1
    observed.latency[8].observe(0.001)
    observed.connections_closed["idle"] = 1
    observed.connections_refused["max.connections.total"] = 1
    live = Live(
        groups=1, group_states={"Stable": 1}, members=1, offsets=1, slots={}, load_share=1.0,
        journal_bytes=1, journal_segments=1, checkpoint_bytes=1,
        history_bytes=1, history_segments=1, history_sealed_bytes=1, history_sealed_files=1,
        oldest_sealed_ms=1, disk_free_bytes=1, disk_total_bytes=1,
        disk_full=False, batch_number=1, epoch=1, shapes=1, topics_known=1, connections_max=1,
        per_group=[("billing", 1, 1)],
    )  # fmt: skip
    collector = DaemonCollector(observed=observed, live=lambda: live, ready=lambda: True, per_group=True, groups_max=1)
    yield from collector.collect()


def _labels(family: Metric) -> list[str]:
    """Return the label names in their order; a histogram's own one is known to everybody."""
    return [
        label for label in dict.fromkeys(label for sample in family.samples for label in sample.labels) if label != "le"
    ]


def _row(family: Metric) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = ", ".join(f"`{label}`" for label in _labels(family))
    return f"| `{name}` | {family.type} | {labels} | {family.documentation} |\n"
