"""A load in Prometheus' words: a file for the node exporter's textfile collector, or a push to a Pushgateway.

Both hold one load, the newest that came to its end. A run that fails leaves them as they are: what is to be watched is
how old the last success is, and that shows a load that no longer runs at all, too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import URLError

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.audience import Unwritten
from offsetd.pipeline.load.observer import Silent
from offsetd.pipeline.load.refusal import BadRequest
from offsetd.pipeline.load.report import replace_text
from offsetd.pipeline.load.summary import Summary

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

JOB: Final = "offsetd_load"
PUSH_SECONDS_MAX: Final = 10.0

#: Name and meaning of every metric; each has the labels `group` and `out`.
METRICS: Final = {
    "offsetd_load_records": "Records that the last load brought.",
    "offsetd_load_bytes": "Bytes of the files that the last load wrote.",
    "offsetd_load_files": "Files that the last load wrote.",
    "offsetd_load_partitions": "Partitions that the last load read.",
    "offsetd_load_empty_offsets": "Offsets of the last load's plan that held no record.",
    "offsetd_load_unparsed_values": "Values that the last load kept as they came.",
    "offsetd_load_duration_seconds": "How long the last load took, all stages.",
    "offsetd_load_stage_duration_seconds": "How long a stage of the last load took; label stage.",
    "offsetd_load_lag_before": "Records that the table lacked when the last load was planned, by topic.",
    "offsetd_load_lag_after": "Records that the table lacked when the last load was done, by topic.",
    "offsetd_load_last_published": "Number of the newest published load.",
    "offsetd_load_committed_minus_published": "Committed offsets minus the table's positions, summed; 0 when healthy.",
    "offsetd_load_last_success_timestamp_seconds": "When the last load came to its end, Unix time.",
}


class MetricsFile(Silent):
    """An observer that writes a file for the textfile collector when the load is done."""

    def __init__(self, path: Path) -> None:
        """Make it.

        Raises:
            BadRequest: the collector would not read a file of that name.
        """
        if path.suffix != ".prom":
            raise BadRequest(f"--metrics-file {path}: the textfile collector reads only files that end in .prom.")
        self._path = path

    def finished(self, summary: Summary) -> None:
        """Put a new file in the place of the old one.

        Raises:
            Unwritten: it cannot be written.
        """
        from prometheus_client import generate_latest  # noqa: PLC0415

        try:
            replace_text(self._path, generate_latest(registry(summary)).decode())
        except OSError as error:
            raise Unwritten(f"the metrics file {self._path} was not written: {error}") from error


class MetricsPush(Silent):
    """An observer that pushes to a Pushgateway when the load is done."""

    def __init__(self, gateway: str) -> None:
        """Make it.

        Args:
            gateway: host and port, or a URL.
        """
        self._gateway = gateway

    def finished(self, summary: Summary) -> None:
        """Push, in place of what was pushed for this group and table before.

        Raises:
            Unwritten: the gateway is away, or refuses.
        """
        from prometheus_client import push_to_gateway  # noqa: PLC0415

        try:
            push_to_gateway(
                self._gateway,
                job=JOB,
                registry=registry(summary),
                grouping_key=_labels(summary),
                timeout=PUSH_SECONDS_MAX,
            )
        except (OSError, URLError, ValueError) as error:
            raise Unwritten(f"metrics were not pushed to {self._gateway}: {error}") from error


def registry(summary: Summary) -> "CollectorRegistry":
    """Return the metrics of a load."""
    from prometheus_client import CollectorRegistry, Gauge  # noqa: PLC0415

    made = CollectorRegistry()
    labels = _labels(summary)

    def put(name: str, values: Mapping[str | None, float], label: str | None = None) -> None:
        names = (*labels, label) if label else tuple(labels)
        gauge = Gauge(name, METRICS[name], names, registry=made)
        for value_of, value in values.items():
            gauge.labels(**labels, **({label: value_of} if label else {})).set(value)

    plan = summary.plan
    put("offsetd_load_records", {None: summary.total_rows})
    put("offsetd_load_bytes", {None: summary.bytes})
    put("offsetd_load_files", {None: summary.files})
    put("offsetd_load_partitions", {None: len(plan.ranges)})
    put("offsetd_load_empty_offsets", {None: summary.empty_offsets})
    put("offsetd_load_unparsed_values", {None: summary.unparsed})
    put("offsetd_load_duration_seconds", {None: summary.seconds})
    put("offsetd_load_stage_duration_seconds", dict(summary.stages), "stage")
    put("offsetd_load_lag_before", _by_topic(summary.lag_before), "topic")
    put("offsetd_load_lag_after", _by_topic(summary.lag_after), "topic")
    # A run without news publishes nothing: the newest load is the one before.
    put("offsetd_load_last_published", {None: plan.number if plan.ranges else plan.number - 1})
    if plan.group is not None:
        put("offsetd_load_committed_minus_published", {None: 0 if summary.committed else -plan.records})
    ended = summary.started_at.timestamp() + summary.seconds
    put("offsetd_load_last_success_timestamp_seconds", {None: ended})
    return made


def _labels(summary: Summary) -> dict[str, str]:
    return {"group": summary.plan.group or "", "out": summary.plan.out}


def _by_topic(lags: Mapping[TopicPartition, int]) -> dict[str | None, float]:
    found: dict[str | None, float] = {}
    for key, lag in lags.items():
        found[key.topic] = found.get(key.topic, 0) + lag
    return found
