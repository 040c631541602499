"""The report of one load: an HTML page that stands on its own, for whoever was not there."""

import os
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Final

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.audience import Unwritten
from offsetd.pipeline.load.observer import Silent
from offsetd.pipeline.load.pace import Pace
from offsetd.pipeline.load.plan import Check, Plan
from offsetd.pipeline.load.summary import Summary
from offsetd.pipeline.load.tables import (
    CHECK_WORDS,
    PLAN_COLUMNS,
    commit_words,
    plan_rows,
    plan_sentences,
    reasons,
)
from offsetd.pipeline.page import Page
from offsetd.pipeline.plots import bars, lines, stacked
from offsetd.pipeline.quantity import in_bytes, in_seconds, per_second

#: With fewer counts than this there is no curve to draw.
_SAMPLES_MIN: Final = 4


class Report(Silent):
    """An observer that writes the page when the load is done."""

    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._began = 0.0
        self._stage = ""
        self._paces: dict[str, Pace] = {}
        self._notes: list[str] = []

    def stage(self, name: str, total_records: int | None) -> None:
        """Begin to count a stage."""
        self._stage = name
        self._began = self._monotonic()
        if total_records is not None:
            self._paces[name] = Pace()

    def progressed(self, records: int) -> None:
        """Count."""
        if self._stage in self._paces:
            self._paces[self._stage].add(self._monotonic() - self._began, records)

    def finished(self, summary: Summary) -> None:
        """Write the page.

        Raises:
            Unwritten: it cannot be written, or matplotlib is missing.
        """
        try:
            replace_text(self._path, render(summary, paces=self._paces, notes=self._notes))
        except (OSError, ImportError) as error:
            raise Unwritten(f"the report {self._path} was not written: {error}") from error

    def noted(self, sentence: str) -> None:
        """Keep a note for the page."""
        self._notes.append(sentence)


def replace_text(path: Path, text: str) -> None:
    """Write a file so that whoever reads it sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def render(summary: Summary, *, paces: dict[str, Pace] | None = None, notes: list[str] | None = None) -> str:
    """Return the page.

    Args:
        paces: how the counted stages went on.
        notes: what people should know.
    """
    plan = summary.plan
    whose = f"group {plan.group}" if plan.group is not None else "no group"
    page = Page(f"Load {plan.number:06d}", f"{plan.out}, {whose}, {summary.started_at:%d %B %Y, %H:%M:%S} UTC")
    _result(page, summary, notes or [])
    _pace(page, summary, paces or {})
    _partitions(page, summary)
    _lag(page, summary)
    _plan(page, plan)
    _verification(page, summary)
    return page.render()


def _result(page: Page, summary: Summary, notes: list[str]) -> None:
    page.figures(
        [
            ("records", summary.total_rows),
            ("rate while writing", per_second(summary.total_rows, summary.write_seconds)),
            ("rate in all", per_second(summary.total_rows, summary.seconds)),
            ("time", in_seconds(summary.seconds)),
            ("partitions", len(summary.plan.ranges)),
            ("files", summary.files),
            ("bytes", in_bytes(summary.bytes)),
            ("lag before", sum(summary.lag_before.values())),
            ("lag after", sum(summary.lag_after.values())),
        ]
    )
    told = summary.committed or summary.plan.group is None
    page.note(f"offsetd: {commit_words(summary)}.", "good" if told else "warn")
    if summary.unparsed:
        page.note(f"{summary.unparsed:,} values could not be parsed and are kept as they came (value_raw).", "warn")
    for note in notes:
        page.note(note)


def _pace(page: Page, summary: Summary, paces: dict[str, Pace]) -> None:
    page.section("Time", "What each stage took, and how many records per second came through it.")
    if any(seconds for _, seconds in summary.stages):
        page.plot(bars(dict(summary.stages), x="seconds"))
    page.table(
        ("stage", "seconds", "share"),
        [
            (name, seconds, f"{seconds / summary.seconds:.0%}" if summary.seconds else None)
            for name, seconds in summary.stages
        ],
        empty="There was nothing to do.",
    )
    for name, pace in paces.items():
        if len(pace.counts()) < _SAMPLES_MIN:
            page.text(f"Stage {name} was over too soon for a curve.")
            continue
        page.plot(
            lines({"rate": pace.rates()}, y="records per second", x=f"seconds of stage {name}", filled=True),
            f"Rate of stage {name}. Spark counts the records of a task when it ends: few big tasks show as steps.",
        )
        page.plot(lines({"records": pace.counts()}, y="records", x=f"seconds of stage {name}"), "Records so far.")


def _partitions(page: Page, summary: Summary) -> None:
    page.section("Records per partition")
    if not summary.rows:
        page.text("No partition had news.")
        return
    page.plot(bars({str(key): float(rows) for key, rows in sorted(summary.rows.items())}, x="records"))
    topics = [
        (topic, len(keys), sum(summary.rows[key] for key in keys))
        for topic, keys in ((name, list(found)) for name, found in groupby(sorted(summary.rows), lambda key: key.topic))
    ]
    page.table(("topic", "partitions", "records"), topics)


def _lag(page: Page, summary: Summary) -> None:
    page.section(
        "Lag before and after",
        "How far the table was behind the end of each log: when the load was planned, and when it was done. What came "
        "in meanwhile is left for the next load.",
    )
    lags = _lags(summary)
    if not any(before or after for _, before, after in lags):
        page.note("The table was at the end of every log, and is.", "good")
        return
    page.plot(
        stacked(
            {str(key): (float(max(before - after, 0)), float(after)) for key, before, after in lags},
            ("caught up", "lag after"),
            x="records",
        )
    )
    page.table(("partition", "lag before", "lag after"), [(str(key), before, after) for key, before, after in lags])


def _lags(summary: Summary) -> list[tuple[TopicPartition, int, int]]:
    keys = sorted({*summary.lag_before, *summary.lag_after})
    return [(key, summary.lag_before.get(key, 0), summary.lag_after.get(key, 0)) for key in keys]


def _plan(page: Page, plan: Plan) -> None:
    page.section("Plan", "\n\n".join(plan_sentences(plan)))
    found = reasons((*plan.ranges, *plan.idle))
    page.table(("partitions", "start there because"), [(count, reason.value) for reason, count in found.items()])
    page.table(PLAN_COLUMNS, plan_rows(plan.ranges), empty="Nothing was loaded.")
    if plan.skipped:
        page.note("Offsets that were left out, because somebody moved the group over them:", "warn")
        page.table(PLAN_COLUMNS, plan_rows(plan.skipped))


def _verification(page: Page, summary: Summary) -> None:
    page.section(
        "Verified",
        "Before the load was published, every file was read back: the partition, the number of rows and the smallest "
        "and largest offset from its footer, and its offset column from end to end, which must rise. The files of a "
        "partition must not overlap, and must stay within the plan.",
    )
    topics = sorted({item.topic for item in summary.plan.ranges})
    checked = {topic: summary.checked.get(topic, Check.BOUNDS) for topic in topics}
    planned = {topic: sum(item.records for item in summary.plan.ranges if item.topic == topic) for topic in topics}
    rows = {topic: sum(n for key, n in summary.rows.items() if key.topic == topic) for topic in topics}
    page.table(
        ("topic", "offsets planned", "rows found", "offsets without a record", "what was found"),
        [
            (topic, planned[topic], rows[topic], planned[topic] - rows[topic], CHECK_WORDS[checked[topic]])
            for topic in topics
        ],
        empty="There was nothing to verify.",
    )
    if summary.empty_offsets:
        page.note(
            f"{summary.empty_offsets:,} offsets hold no record. Compaction takes records away, transactions that were "
            "given up are not loaded, and the markers of transactions take offsets of their own.",
        )
    page.text(
        f"{summary.files:,} files, {in_bytes(summary.bytes)}. Each is named beside the data (in _offsets.json, or in "
        "the log of a Delta table), with its partition, rows, and first and last offset."
    )
