"""Pages that stand on their own, and the report of a load as one of them."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from offsetd.pipeline.load.audience import Unwritten
from offsetd.pipeline.load.pace import SAMPLES_MAX, Pace
from offsetd.pipeline.load.report import Report, render
from offsetd.pipeline.page import TABLE_ROWS_MAX, Page
from offsetd.pipeline.plots import BARS_MAX, Mark, bars, lines, stacked, steps
from tests.pipeline.show.loads import plan, summary

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps ids, references and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name.endswith("href") or name in ("src", "srcset", "action", "data"):
                self.references.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(page: str) -> Reader:
    """Return what a page has, if it is well formed and needs nothing from elsewhere."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert all(reference.startswith("#") and reference[1:] in reader.ids for reference in reader.references)
    assert set(re.findall(r"https?://[^\"'\s<]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in page
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert {"script", "link", "img", "iframe"}.isdisjoint(reader.tags)
    return reader


def test_a_page_with_everything_is_well_formed_and_stands_alone() -> None:
    page = Page("A <title>", "with & more")
    page.figures([("records", 1_234_567), ("nothing", None)])
    page.section("First <section>", "one\n\ntwo")
    curve = [(float(at), float(at * at)) for at in range(5)]
    page.plot(lines({"a": curve, "b": curve}, y="records", x="seconds", marks=[Mark(2.0, "here $x")]), "two <lines>")
    page.plot(steps({"a": curve}, y="offset", x="seconds"))
    page.plot(bars({"x$y": 1.0, "<z>": 2.0}, x="records"))
    page.plot(stacked({"x": (1.0, 2.0)}, ("one", "other"), x="records"))
    page.section("Second")
    page.note("look", "warn")
    page.table(("name", "count"), [("<b>", 1_000), ("c", None)])

    reader = read(page.render())

    assert {"A <title>", "First <section>", "1,234,567", "1,000", "<b>", "two <lines>"} <= set(reader.words)
    assert reader.tags.count("svg") == 4
    assert "prefers-color-scheme: dark" in page.render()


def test_plots_take_their_colours_from_the_page() -> None:
    svg = bars({"a": 1.0}, x="records")
    assert "var(--series-1)" in svg
    assert "#0c0c" not in svg
    assert "#0b0b" not in svg


def test_of_many_bars_the_largest_are_drawn_and_the_others_counted() -> None:
    svg = bars({f"bar-{at}": float(at) for at in range(BARS_MAX + 3)}, x="records")
    assert "bar-2<" not in svg
    assert "bar-3<" in svg
    assert "not drawn: 3 smaller ones, 3 together" in svg


def test_a_table_that_is_too_long_says_how_many_rows_are_left_off() -> None:
    page = Page("t")
    page.table(("n",), [(at,) for at in range(TABLE_ROWS_MAX + 5)])
    assert "5 more rows are left off." in read(page.render()).words


@pytest.mark.parametrize("case", ["whole", "without news", "not committed", "no group"])
def test_the_report_of_a_load_stands_alone(case: str) -> None:
    done = {
        "whole": summary(unparsed=3),
        "without news": summary(plan(ranges=())),
        "not committed": summary(committed=False),
        "no group": summary(plan(group=None)),
    }[case]

    words = set(read(render(done, notes=["a <note>"])).words)

    assert {"Load 000007", "Lag before and after", "Plan", "Verified", "a <note>"} <= words
    if case == "whole":
        assert {"2,535", "orders/0", "the newest load ended here", "507/s"} <= words
        assert "no row outside the plan, none twice; some offsets hold no record" in words


def test_the_report_draws_the_rate_that_it_was_told(tmp_path: Path) -> None:
    now = [0.0]
    report = Report(tmp_path / "deep" / "load.html", monotonic=lambda: now[0])
    report.planned(plan())
    report.stage("write", 2_540)
    for at in range(1, 9):
        now[0] = at * 0.5
        report.progressed(at * 300)
    report.stage("publish", None)
    report.finished(summary())
    text = (tmp_path / "deep" / "load.html").read_text(encoding="utf-8")
    assert "records per second" in read(text).words
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["load.html"]


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unwritten, match="was not written"):
        Report(tmp_path / "file" / "load.html").finished(summary())


def test_a_pace_is_thinned_out_and_keeps_its_end() -> None:
    pace = Pace()
    for at in range(1, 5 * SAMPLES_MAX):
        pace.add(float(at), at * 10)
    counts = pace.counts()
    assert len(counts) <= 2 * SAMPLES_MAX
    assert counts[-1] == (float(5 * SAMPLES_MAX - 1), float((5 * SAMPLES_MAX - 1) * 10))
    assert all(abs(rate - 10) < 1e-6 for _, rate in pace.rates())
