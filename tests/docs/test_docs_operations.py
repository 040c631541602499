"""The operations page against the code: every alert, event, metric and exit code that an operator can meet."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from offsetd import failpoint
from offsetd.http.page import every_family, metrics_page
from offsetd.journal import writer
from tests.docs.pages import PAGES, ROOT, name, prose

PAGE = ROOT / "docs/operations.md"
LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error", "critical": "error"}
LOGGERS = {"logger", "log", "_log", "_loud"}
#: Of the log itself: its event is whatever it is given, and that call is read where it stands.
PASSED_ON = {("offsetd/logs.py", "warning")}
METRIC = re.compile(r"\b(offsetd_[a-z0-9_]+)\b")


def section(title: str) -> str:
    """Return what stands under a heading of the second rank."""
    return prose(PAGE).split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def events() -> Iterator[tuple[str, str]]:
    """Yield each event that the daemon can log, info or above, with its level."""
    for path in sorted((ROOT / "offsetd").rglob("*.py")):
        where = str(path.relative_to(ROOT))
        if where.startswith(("offsetd/bench/", "offsetd/client/", "offsetd/pipeline/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                owner = node.func.value
                called = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                if called in LOGGERS:
                    yield from _event(node, node.func.attr, where)


def _event(call: ast.Call, method: str, where: str) -> Iterator[tuple[str, str]]:
    texts = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    # A limited line has a key before its event; the event is the last of the words without a name.
    if texts:
        yield texts[-1], LEVELS[method]
    else:
        assert (where, method) in PASSED_ON, f"{where}, line {call.lineno}: an event must be a constant"


def documented() -> dict[str, str]:
    """Return the events of the table, each with what the table says of its level."""
    found = {}
    for names, levels in re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", section("What the log says"), re.MULTILINE
    ):
        for each in re.findall(r"`(\w+)`", names):
            found[each] = levels
    return found


def test_every_event_is_in_the_table_and_no_other() -> None:
    logged = {event for event, _ in events()}

    assert len(logged) > 20
    # This one is written by number, whatever level a library gave it.
    assert set(documented()) - {"library_message"} == logged


def test_the_table_says_the_level_of_each_event() -> None:
    table = documented()

    assert [(event, level) for event, level in events() if level not in table[event]] == []


def test_every_reason_for_closing_a_connection_is_explained() -> None:
    code = "".join(path.read_text() for path in (ROOT / "offsetd/server").glob("*.py"))
    reasons = set(re.findall(r"\.close\(\s*\"(\w+)\"", code))
    (row,) = re.findall(r"^\| `connection_closed` \|.*$", section("What the log says"), re.MULTILINE)

    assert len(reasons) >= 6
    assert {reason for reason in reasons if f"`{reason}`" not in row} == set()


def test_every_alert_has_its_runbook_and_no_other() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())["groups"][0]["rules"]

    assert re.findall(r"^### (.+)$", section("Alerts"), re.MULTILINE) == [rule["alert"] for rule in rules]


def test_every_exit_code_is_explained() -> None:
    codes = set(re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE))
    forced = re.findall(r"_EXIT_CODE: Final = (\d+)", (ROOT / "offsetd/daemon.py").read_text())

    assert len(forced) >= 2
    assert {str(failpoint.EXIT_CODE), str(writer.EXIT_CODE), *forced, "0"} <= codes


def test_the_metrics_page_is_made_from_the_collector() -> None:
    """Run ``python -m offsetd.http > docs/metrics.md`` when this fails."""
    assert (ROOT / "docs/metrics.md").read_text() == metrics_page()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_metric_that_is_named_exists(page: Path) -> None:
    families = list(every_family())
    known = {family.name for family in families} | {sample.name for family in families for sample in family.samples}

    assert set(METRIC.findall(page.read_text())) - known == set()
