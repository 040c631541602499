"""What the daemon counts, by label."""

from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.daemon import Daemon


def requests(daemon: Daemon) -> Counter[str]:
    """Return the requests that came in, by API."""
    counted: Counter[str] = Counter()
    for labels, value in _samples(daemon, "offsetd_requests_total"):
        counted[labels["api"]] += value
    return counted


def refusals(daemon: Daemon) -> Counter[tuple[str, int]]:
    """Return the errors that were answered, by API and code."""
    counted: Counter[tuple[str, int]] = Counter()
    for labels, value in _samples(daemon, "offsetd_request_errors_total"):
        counted[labels["api"], int(labels["code"])] += value
    return counted


def _samples(daemon: Daemon, name: str) -> list[tuple[dict[str, str], int]]:
    families = text_string_to_metric_families(daemon.get("/metrics")[1].decode())
    return [
        (sample.labels, int(sample.value)) for family in families for sample in family.samples if sample.name == name
    ]
