"""Alerts and dashboard against the collector: whatever they name must exist, or they are silent for ever."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from offsetd.http.page import every_family

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus/rules.yml"
RULE_TESTS = DEPLOY / "prometheus/rules_test.yml"
METRIC = re.compile(r"\b((?:offsetd|process|python)_[a-z0-9_]+)\b")
LABELS_OF_SCRAPES = {"instance", "job", "le"}
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing (Debian: apt-get install prometheus)"
)


class Everything(Collector):
    """What a daemon shows that has done one of everything."""

    def collect(self) -> Iterable[Metric]:
        return every_family()


@pytest.fixture(scope="module")
def series() -> dict[str, set[str]]:
    """Every sample that a busy daemon exposes, by name, with its label names."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    samples: dict[str, set[str]] = {}
    for family in (*registry.collect(), *every_family()):
        for sample in family.samples:
            samples.setdefault(sample.name, set()).update(sample.labels)
    return samples


def rules() -> list[dict[str, Any]]:
    return list(yaml.safe_load(RULES.read_text())["groups"][0]["rules"])


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
    return loaded


def expressions() -> Iterator[str]:
    """Every query of the rules and the dashboard."""
    for rule in rules():
        yield rule["expr"]
    board = dashboard()
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for annotation in board["annotations"]["list"]:
        yield annotation["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_every_metric_that_is_asked_for_exists(series: dict[str, set[str]]) -> None:
    asked = {name for expression in expressions() for name in METRIC.findall(expression)}

    assert len(asked) > 30
    assert asked - set(series) == set()


def test_every_label_that_is_asked_for_exists(series: dict[str, set[str]]) -> None:
    for expression in expressions():
        for name, matchers in re.findall(r"\b(offsetd_[a-z0-9_]+)\{([^}]*)\}", expression):
            asked = set(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"", matchers))
            assert asked - LABELS_OF_SCRAPES <= series[name], expression
        labels = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
        known = set().union(*(series[name] for name in METRIC.findall(expression)))
        assert labels - LABELS_OF_SCRAPES <= known, expression


def test_metric_names_follow_prometheus_conventions(series: dict[str, set[str]]) -> None:
    for name in series:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert not re.search(r"_(ms|millis|milliseconds|kb|mb)(_|$)", name)


def test_every_alert_has_a_unit_test_that_fires_and_one_that_does_not() -> None:
    names = {rule["alert"] for rule in rules()}
    fires: set[str] = set()
    silent: set[str] = set()
    for case in yaml.safe_load(RULE_TESTS.read_text())["tests"]:
        for check in case["alert_rule_test"]:
            (fires if check.get("exp_alerts") else silent).add(check["alertname"])

    assert fires == silent == names


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")


def test_the_dashboard_s_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


@needs_promtool
@pytest.mark.parametrize("arguments", [("check", "rules", "rules.yml"), ("test", "rules", "rules_test.yml")])
def test_promtool_accepts_the_rules(arguments: tuple[str, ...]) -> None:
    result = subprocess.run(["promtool", *arguments], cwd=RULES.parent, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout + result.stderr


@needs_promtool
def test_promtool_accepts_what_is_scraped() -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Everything())

    result = subprocess.run(
        ["promtool", "check", "metrics"], input=generate_latest(registry), capture_output=True, check=False
    )

    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


@needs_promtool
def test_promtool_accepts_the_scrape_configuration() -> None:
    result = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"], cwd=RULES.parent, capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stdout + result.stderr


@needs_promtool
def test_promtool_parses_every_query_of_the_dashboard(tmp_path: Path) -> None:
    queries = [text for text in expressions() if not text.startswith("label_values(")]
    numbered = [
        {"record": f"query:{number}", "expr": text.replace("$__rate_interval", "5m").replace("$instance", ".*")}
        for number, text in enumerate(queries)
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": numbered}]}))

    result = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout + result.stderr
