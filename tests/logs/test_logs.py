"""Log lines: their form, and that nothing from a client can forge or flood them."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from offsetd.logs import KEYS_MAX, RateLimited, configure_logs, escaped

HOSTILE = 'x\n2026-01-01T00:00:00Z error forged \x1b[31m\u2028\u202e"'


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Set-up is of the whole process, so each test leaves it as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def written(form: str, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    configure_logs(level=level, form=form, stream=stream)
    return stream


def test_a_json_line_has_time_level_event_and_facts() -> None:
    stream = written("json")

    structlog.get_logger().info("slot_ready", slot=17, took_ms=3)

    line = json.loads(stream.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {"level": "info", "event": "slot_ready", "slot": 17, "took_ms": 3}


def test_a_console_line_quotes_what_has_blanks() -> None:
    stream = written("console")

    structlog.get_logger().warning("peer_closed", reason="too slow", bytes=3, empty="")

    assert stream.getvalue().rstrip().endswith('warning peer_closed reason="too slow" bytes=3 empty=""')


def test_auto_is_json_away_from_a_terminal() -> None:
    stream = written("auto")

    structlog.get_logger().info("started")

    assert json.loads(stream.getvalue())["event"] == "started"


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_hostile_client_id_stays_inside_its_line(form: str) -> None:
    stream = written(form)

    structlog.get_logger().info("peer", client_id=HOSTILE, nested=[HOSTILE])

    assert stream.getvalue().count("\n") == 1
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_forges_no_line(form: str) -> None:
    stream = written(form)
    error = ValueError(HOSTILE)

    structlog.get_logger().error("failed", exc_info=error)

    first, *rest = stream.getvalue().splitlines()
    assert "failed" in first
    assert all(line.startswith("    | ") for line in rest)
    assert "ValueError" in stream.getvalue()


def test_lines_below_the_level_are_left_out() -> None:
    stream = written("json", level="warning")

    structlog.get_logger().info("quiet")

    assert stream.getvalue() == ""


def test_the_standard_library_logs_the_same_way() -> None:
    stream = written("json")

    logging.getLogger("asyncio").error("lost %s", HOSTILE)

    line = json.loads(stream.getvalue())
    assert (line["event"], line["library"], line["level"]) == ("library_message", "asyncio", "error")


@given(st.text(), st.text())
def test_escaping_keeps_different_texts_apart(one: str, other: str) -> None:
    assert (escaped(one) == escaped(other)) == (one == other)
    assert len(escaped(one).splitlines()) <= 1


def test_a_flood_becomes_a_few_lines_and_a_count() -> None:
    with structlog.testing.capture_logs() as lines:
        limited = RateLimited(structlog.get_logger(), lines_max=2, interval_ms=1000)
        for now_ms in range(0, 1000, 100):
            limited.warning(now_ms, "10.0.0.1", "frame_refused", size=now_ms)
        limited.warning(1000, "10.0.0.1", "frame_refused", size=1000)

    assert [line["event"] for line in lines] == ["frame_refused"] * 2 + ["lines_suppressed", "frame_refused"]
    assert lines[2] == {
        "event": "lines_suppressed",
        "log_level": "warning",
        "of": "frame_refused",
        "key": "10.0.0.1",
        "suppressed": 8,
    }


def test_keys_are_limited_apart() -> None:
    with structlog.testing.capture_logs() as lines:
        limited = RateLimited(structlog.get_logger(), lines_max=1, interval_ms=1000)
        for key in ("a", "b", "a", "b"):
            limited.warning(0, key, "refused", peer=key)
        limited.flush(0, everything=True)

    assert [line.get("suppressed", line.get("peer")) for line in lines] == ["a", "b", 1, 1]


def test_many_keys_cost_bounded_memory_and_lines() -> None:
    with structlog.testing.capture_logs() as lines:
        limited = RateLimited(structlog.get_logger(), lines_max=1, interval_ms=1000)
        for number in range(KEYS_MAX + 500):
            limited.warning(0, f"peer-{number}", "refused")

    assert len(lines) == KEYS_MAX + 1
    assert len(limited._windows) == KEYS_MAX + 1


def test_windows_that_are_over_make_room() -> None:
    with structlog.testing.capture_logs():
        limited = RateLimited(structlog.get_logger(), lines_max=1, interval_ms=1000)
        for number in range(KEYS_MAX):
            limited.warning(0, f"peer-{number}", "refused")
        limited.warning(1000, "new", "refused")

    assert list(limited._windows) == ["new"]
