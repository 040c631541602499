"""A load on the terminal and in plain lines."""

import re
from io import StringIO

import pytest

from offsetd.pipeline.load.audience import Audience, Unwritten
from offsetd.pipeline.load.observer import Silent
from offsetd.pipeline.load.plan import Range, Reason
from offsetd.pipeline.load.show import PLAN_ROWS_MAX, Lines, Terminal, shown
from offsetd.pipeline.load.summary import Summary
from offsetd.pipeline.load.tables import plan_text, summary_text
from offsetd.pipeline.quantity import in_bytes, in_seconds, parse_bytes, per_second, short
from tests.pipeline.show.loads import plan, summary

PLAN = """\
load 7 of group 'lake' into /lake/events
partition   from     to  records  why it starts there
orders/0   1,000  3,500    2,500  the newest load ended here
orders/1       0     40       40  the log's start, nothing was known
2,540 records of 2 partitions to load.
1 partition without news left out."""

SUMMARY = """\
records                   2,535
offsets without a record  5
files                     2
bytes                     1.5 KiB
time                      5.00 s
rate                      634/s while writing, 507/s in all
lag before                2,540
lag after                 12
offsetd                   committed, load:7"""


class _Tty(StringIO):
    def isatty(self) -> bool:
        return True


def _words(text: str) -> str:
    """Return what a terminal shows: without escapes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_plan_and_a_summary_as_plain_text() -> None:
    assert plan_text(plan(), rows_max=10) == PLAN
    assert summary_text(summary()) == SUMMARY


def test_a_plan_of_more_partitions_than_fit_says_what_is_left_off() -> None:
    many = tuple(Range(topic="t", partition=at, start=0, end=10, reason=Reason.EARLIEST) for at in range(5))
    assert "... and 3 partitions with 30 records" in plan_text(plan(ranges=many), rows_max=2)


def test_a_plan_without_news_says_so() -> None:
    assert plan_text(plan(ranges=()), rows_max=10).splitlines()[1:] == ["Nothing to load: no partition has news."]


def test_what_offsetd_does_not_know_yet_is_said() -> None:
    assert summary_text(summary(committed=False)).endswith("not told; the next run tells it")
    assert summary_text(summary(plan(group=None))).endswith("not told: the table belongs to no group")


def test_without_a_terminal_there_are_plain_lines_and_results_are_apart_from_progress() -> None:
    out, err = StringIO(), StringIO()
    with shown(out, err) as observer:
        assert isinstance(observer, Lines)
        observer.planned(plan())
        observer.stage("write", 2_540)
        observer.progressed(100)
        observer.noted("something")
        observer.stage("publish", None)
        observer.finished(summary())
    assert out.getvalue() == f"{PLAN}\n{SUMMARY}\n"
    told = re.sub(r"\d\.\d\d s", "0.00 s", err.getvalue())
    assert told.splitlines() == [
        "write, 2,540 records ...",
        "note: something",
        "write: done in 0.00 s",
        "publish ...",
        "publish: done in 0.00 s",
    ]


def test_plain_lines_tell_rate_and_time_left_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("offsetd.pipeline.load.show.time.monotonic", lambda: now[0])
    err = StringIO()
    lines = Lines(StringIO(), err)
    lines.stage("write", 1_000)
    for seconds in (101.0, 110.0, 111.0):
        now[0] = seconds
        lines.progressed(250)
    assert err.getvalue().splitlines()[1:] == ["write: 250 of 1,000 records, 25/s, 30.0 s left"]


def test_on_a_terminal_there_are_tables_and_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    out, err = _Tty(), _Tty()
    with shown(out, err) as observer:
        assert isinstance(observer, Terminal)
        observer.planned(plan())
        observer.stage("write", 2_540)
        observer.progressed(2_535)
        observer.noted("a [bold] word")
        observer.stage("publish", None)
        observer.finished(summary())
    seen, progress = _words(out.getvalue()), _words(err.getvalue())
    assert re.search(r"orders/0 +1,000 +3,500 +2,500 +the newest load ended here", seen)
    assert re.search(r"records +2,535", seen)
    assert "note: a [bold] word" in progress
    assert re.search(r"write +\S+ +0:00:00 2.5[34] k records, .*/s", progress)
    assert "publish" in progress


def test_a_load_that_fails_leaves_the_terminal_in_order() -> None:
    err = _Tty()

    def fail() -> None:
        with shown(_Tty(), err) as observer:
            observer.stage("write", 10)
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert err.getvalue().rfind("\x1b[?25h") > err.getvalue().rfind("\x1b[?25l")  # the cursor is back


class _Broken(Silent):
    def finished(self, summary: Summary) -> None:
        raise Unwritten("the report was not written: no room")


def test_an_observer_that_cannot_deliver_keeps_nobody_from_hearing() -> None:
    out, err = StringIO(), StringIO()
    audience = Audience((_Broken(), Lines(out, err)))
    audience.planned(plan())
    audience.stage("write", 1)
    audience.progressed(1)
    audience.finished(summary())
    assert SUMMARY in out.getvalue()
    assert audience.unwritten == ["the report was not written: no room"]
    assert "note: the report was not written: no room" in err.getvalue()


def test_more_partitions_than_a_terminal_shows_are_counted() -> None:
    many = tuple(
        Range(topic="t", partition=at, start=0, end=1, reason=Reason.EARLIEST) for at in range(PLAN_ROWS_MAX + 2)
    )
    out = _Tty()
    Terminal(out, _Tty()).planned(plan(ranges=many))
    assert "... and 2 partitions with 2 records" in _words(out.getvalue())


def test_amounts_are_written_shortly() -> None:
    assert [short(value) for value in (0, 12.34, 999, 999_999, 1_234_567)] == ["0", "12.3", "999", "1 M", "1.23 M"]
    assert [in_bytes(value) for value in (12, 1_536, 5 << 30)] == ["12 B", "1.5 KiB", "5.0 GiB"]
    assert [in_seconds(value) for value in (0.42, 12.34, 245, 7_800)] == ["0.42 s", "12.3 s", "4 m 05 s", "2 h 10 m"]
    assert per_second(10, 0) == "–"  # noqa: RUF001
    assert [parse_bytes(text) for text in ("128MiB", "1k", "5 B", "7", "0.5GB")] == [128 << 20, 1024, 5, 7, 1 << 29]
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes("many")
