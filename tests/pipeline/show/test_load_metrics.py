"""A load in Prometheus' words: a file that is replaced at once, and a push."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from offsetd.pipeline.load.audience import Unwritten
from offsetd.pipeline.load.metrics import METRICS, MetricsFile, MetricsPush
from offsetd.pipeline.load.refusal import BadRequest
from tests.pipeline.show.loads import plan, summary


def samples(text: str) -> dict[str, float]:
    """Return values by name, with the label that is not of the load behind it."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            rest = [value for name, value in sample.labels.items() if name not in ("group", "out")]
            assert {"group", "out"} <= set(sample.labels)
            found[":".join((sample.name, *rest))] = sample.value
    return found


def test_the_file_has_every_metric_and_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "load.prom"
    path.write_text("old")
    with path.open() as reader:
        MetricsFile(path).finished(summary())
        # Whoever had it open reads the old file to its end: it was replaced, not written over.
        assert reader.read() == "old"

    found = samples(path.read_text())

    assert {name.partition(":")[0] for name in found} == set(METRICS)
    assert found["offsetd_load_records"] == 2_535
    assert found["offsetd_load_bytes"] == 1_536
    assert found["offsetd_load_duration_seconds"] == 5
    assert found["offsetd_load_stage_duration_seconds:write"] == 4
    assert found["offsetd_load_lag_after:orders"] == 12
    assert found["offsetd_load_last_published"] == 7
    assert found["offsetd_load_committed_minus_published"] == 0
    assert found["offsetd_load_last_success_timestamp_seconds"] == summary().started_at.timestamp() + 5
    assert list(tmp_path.iterdir()) == [path]


def test_what_offsetd_does_not_know_shows_as_committed_minus_published(tmp_path: Path) -> None:
    path = tmp_path / "load.prom"
    MetricsFile(path).finished(summary(committed=False))
    assert samples(path.read_text())["offsetd_load_committed_minus_published"] == -2_540
    MetricsFile(path).finished(summary(plan(group=None)))
    assert "offsetd_load_committed_minus_published" not in samples(path.read_text())
    MetricsFile(path).finished(summary(plan(ranges=())))
    assert samples(path.read_text())["offsetd_load_last_published"] == 6


def test_a_name_that_the_collector_would_not_read_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"\.prom"):
        MetricsFile(Path("load.txt"))


class _Gateway(BaseHTTPRequestHandler):
    code = 200
    seen: list[tuple[str, str, str]]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.command, self.path, body))
        self.send_response(self.code)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def gateway() -> Iterator[tuple[str, type[_Gateway]]]:
    handler = type("Gateway", (_Gateway,), {"seen": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}", handler
        server.shutdown()
        thread.join()


def test_a_push_replaces_what_is_known_of_the_group_and_table(gateway: tuple[str, type[_Gateway]]) -> None:
    address, handler = gateway
    MetricsPush(address).finished(summary())
    [(verb, path, body)] = handler.seen
    assert verb == "PUT"
    assert path.startswith("/metrics/job/offsetd_load/")
    assert "/group/lake" in path
    assert samples(body)["offsetd_load_records"] == 2_535


def test_a_gateway_that_refuses_or_is_away_is_told(gateway: tuple[str, type[_Gateway]]) -> None:
    address, handler = gateway
    handler.code = 500
    with pytest.raises(Unwritten, match="were not pushed"):
        MetricsPush(address).finished(summary())
    with pytest.raises(Unwritten, match="were not pushed"):
        MetricsPush("127.0.0.1:1").finished(summary())
