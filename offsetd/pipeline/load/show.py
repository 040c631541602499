"""A load on the terminal: the plan as a table, a bar for each stage with rate and time left, a summary; or plain lines.

    with shown() as observer:
        load(..., observer)

Plan and summary go to standard output, which scripts keep; how it goes on goes to standard error.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from offsetd.pipeline.load.observer import Observer
from offsetd.pipeline.load.plan import Plan
from offsetd.pipeline.load.summary import Summary
from offsetd.pipeline.load.tables import (
    PLAN_COLUMNS,
    left_off,
    plan_rows,
    plan_sentences,
    plan_text,
    plan_title,
    summary_rows,
    summary_text,
)
from offsetd.pipeline.quantity import in_seconds, per_second, short

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table
    from rich.text import Text

#: More partitions scroll by unread; the report has all of them.
PLAN_ROWS_MAX: Final = 60
#: How often plain lines tell of progress: a log that nobody watches should not fill.
LINE_SECONDS: Final = 10.0


@contextmanager
def shown(out: TextIO | None = None, err: TextIO | None = None) -> Iterator[Observer]:
    """Give an observer that draws for whoever looks: bars on a terminal, lines elsewhere.

    Args:
        out: for plan and summary, standard output by default.
        err: for progress and notes, standard error by default.
    """
    out, err = out or sys.stdout, err or sys.stderr
    if not (out.isatty() and err.isatty()):
        yield Lines(out, err)
        return
    terminal = Terminal(out, err)
    try:
        yield terminal
    finally:
        terminal.close()


class Lines:
    """Tells a load in plain lines: what logs, pipes and mails can hold."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._stage = ""
        self._total: int | None = None
        self._began = 0.0
        self._told = 0.0

    def planned(self, plan: Plan) -> None:
        """Write the plan."""
        print(plan_text(plan, rows_max=PLAN_ROWS_MAX), file=self._out, flush=True)

    def stage(self, name: str, total_records: int | None) -> None:
        """Write that a stage begins, and how long the one before took."""
        self._end_stage()
        self._stage, self._total = name, total_records
        self._began = self._told = time.monotonic()
        records = "" if total_records is None else f", {total_records:,} records"
        print(f"{name}{records} ...", file=self._err, flush=True)

    def progressed(self, records: int) -> None:
        """Write how far it is, now and then."""
        now = time.monotonic()
        if now - self._told < LINE_SECONDS:
            return
        self._told = now
        spent = now - self._began
        print(f"{self._stage}: {_far(records, self._total, spent)}", file=self._err, flush=True)

    def finished(self, summary: Summary) -> None:
        """Write the summary."""
        self._end_stage()
        print(summary_text(summary), file=self._out, flush=True)

    def noted(self, sentence: str) -> None:
        """Write a note."""
        print(f"note: {sentence}", file=self._err, flush=True)

    def _end_stage(self) -> None:
        if self._stage:
            print(f"{self._stage}: done in {in_seconds(time.monotonic() - self._began)}", file=self._err, flush=True)
            self._stage = ""


class Terminal:
    """Draws a load with rich."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        # Imported here: it is not there without the extra.
        from rich.console import Console  # noqa: PLC0415

        self._out = Console(file=out, highlight=False)
        self._err = Console(file=err, highlight=False)
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def planned(self, plan: Plan) -> None:
        """Draw the plan as a table."""
        from rich.text import Text  # noqa: PLC0415

        # Bars that still move would begin the plan behind themselves, on their own line.
        self._end_stage()
        self.close()
        self._out.print(Text(plan_title(plan), style="bold"))
        if plan.ranges:
            self._out.print(_plan_table(plan))
        for sentence in plan_sentences(plan):
            self._out.print(Text(sentence))

    def stage(self, name: str, total_records: int | None) -> None:
        """Begin a bar; the one before is full."""
        if self._progress is None:
            self._progress = _progress(self._err)
            self._progress.start()
        self._end_stage()
        self._task = self._progress.add_task(name, total=total_records, counted=total_records is not None)

    def progressed(self, records: int) -> None:
        """Move the bar."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=records)

    def finished(self, summary: Summary) -> None:
        """Draw the summary as a table."""
        self._end_stage()
        self.close()
        self._out.print(_summary_table(summary))

    def noted(self, sentence: str) -> None:
        """Write a note above the bars."""
        from rich.text import Text  # noqa: PLC0415

        console = self._err if self._progress is None else self._progress.console
        console.print(Text(f"note: {sentence}", style="yellow"))

    def close(self) -> None:
        """Leave the bars as they are, also when a load did not come to its end."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _end_stage(self) -> None:
        if self._progress is None or self._task is None:
            return
        task = next(each for each in self._progress.tasks if each.id == self._task)
        # Offsets may hold no record, so a stage can be done before its count is full.
        total = task.completed if task.total is not None and task.completed else (task.total or 1)
        self._progress.update(self._task, total=total, completed=total)
        self._progress.stop_task(self._task)
        self._task = None


def _far(records: int, total: int | None, seconds: float) -> str:
    rate = per_second(records, seconds)
    if total is None:
        return f"{records:,} records, {rate}"
    left = in_seconds((total - records) * seconds / records) if records else "?"
    return f"{records:,} of {total:,} records, {rate}, {left} left"


def _plan_table(plan: Plan) -> "Table":
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for name in PLAN_COLUMNS:
        table.add_column(name, justify="right" if name in ("from", "to", "records") else "left")
    for partition, start, end, records, why in plan_rows(plan.ranges[:PLAN_ROWS_MAX]):
        table.add_row(Text(partition), f"{start:,}", f"{end:,}", f"{records:,}", Text(why, style="dim"))
    if len(plan.ranges) > PLAN_ROWS_MAX:
        table.caption = left_off(plan, PLAN_ROWS_MAX)
    return table


def _summary_table(summary: Summary) -> "Table":
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in summary_rows(summary):
        table.add_row(name, Text(value))
    return table


def _progress(console: Any) -> "Progress":
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Speed(ProgressColumn):
        """Records so far, rate, and time left; nothing for a stage that is not counted."""

        def render(self, task: Any) -> "Text":
            if not task.fields["counted"] or not task.elapsed:
                return Text("")
            rate = per_second(task.completed, task.elapsed)
            left = task.time_remaining
            behind = "" if task.finished or left is None else f", {in_seconds(left)} left"
            return Text(f"{short(task.completed)} records, {rate}{behind}", style="cyan")

    return Progress(
        TextColumn("{task.description:<10}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        Speed(),
        console=console,
    )
