"""How a view is given to whoever asked: a table for people, CSV or JSON lines for programs, or Parquet."""

import csv
import functools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

import click

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

P = ParamSpec("P")
R = TypeVar("R")

Value: TypeAlias = "str | int | float | bool | datetime | None"

#: More rows scroll by unread.
ROWS_SHOWN: Final = 100
_NUMBERS: Final = ("int", "bigint", "double", "smallint", "tinyint")


@dataclass(frozen=True, slots=True)
class Answer:
    """In which form, how much, and where to."""

    form: str
    limit: int | None
    out: Path | None

    def give(self, frame: "DataFrame", *, empty: str) -> None:
        """Write a frame.

        Args:
            empty: what is said to people in place of a table without rows.

        Raises:
            click.ClickException: it cannot be written.
        """
        if self.out is not None:
            _write_parquet(frame if self.limit is None else frame.limit(self.limit), self.out)
            return
        if self.form == "table":
            self._show(frame, empty)
            return
        # All of them may be more than memory holds; so many as somebody counted are quicker in one piece.
        rows: Iterable[Sequence[Any]]
        if self.limit is None:
            rows = frame.toLocalIterator(prefetchPartitions=True)
        else:
            rows = frame.limit(self.limit).collect()
        if self.form == "csv":
            # Texts in quotes: an empty one is then not taken for one that is missing.
            writer = csv.writer(sys.stdout, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
            click.echo(",".join(frame.columns))
            writer.writerows([plain(value) for value in row] for row in rows)
            return
        for row in rows:
            values = {name: plain(value) for name, value in zip(frame.columns, row, strict=True)}
            click.echo(json.dumps(values, ensure_ascii=False))

    def _show(self, frame: "DataFrame", empty: str) -> None:
        limit = ROWS_SHOWN if self.limit is None else self.limit
        found = frame.limit(limit + 1).collect()
        if not found:
            click.echo(empty)
            return
        rows = found[:limit]
        # A column that says nothing of any row only takes room.
        kept = [at for at in range(len(frame.columns)) if any(row[at] not in (None, "") for row in rows)]
        names = [frame.columns[at] for at in kept]
        numeric = [frame.dtypes[at][1] in _NUMBERS for at in kept]
        draw = _draw if sys.stdout.isatty() else _lines
        draw(names, numeric, [[printed(row[at]) for at in kept] for row in rows])
        if len(found) > limit:
            click.echo(f"There are more rows than these {limit}: --limit shows more, --format csv all of them.")


def answers(function: Callable[Concatenate[Answer, P], R]) -> Callable[P, R]:
    """Give a command the options that say how it answers, and what they say as its first argument."""

    @functools.wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = {name: kwargs.pop(name) for name in ("form", "limit", "out")}
        return function(Answer(**given), *args, **kwargs)

    decorated: Callable[P, R] = command
    options = (
        click.option(
            "--format",
            "form",
            type=click.Choice(["table", "csv", "jsonl"]),
            default="table",
            show_default=True,
            help="How rows are written; times are UTC.",
        ),
        click.option(
            "--limit",
            type=click.IntRange(min=1),
            metavar="N",
            help=f"At most so many rows (default: {ROWS_SHOWN} of a table, else all).",
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write Parquet files into this new directory instead.",
        ),
    )
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def plain(value: Value) -> str | int | float | bool | None:
    """Return a value for programs: times as ISO 8601, in UTC."""
    if isinstance(value, datetime):
        # Spark gives times of this machine's zone, without saying so.
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value


def printed(value: Value) -> str:
    """Return a value for people; names come from clients, and must not steer the terminal."""
    if value is None:
        return "–"  # noqa: RUF001  # a dash that stands for nothing
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in value)


def _write_parquet(frame: "DataFrame", out: Path) -> None:
    if out.exists():
        raise click.UsageError(f"--out {out} is there already: name a directory that is not")
    frame.write.parquet(f"file:{out.absolute()}")
    click.echo(f"The rows are in {out}.")


def _draw(names: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]]) -> None:
    from rich import box  # noqa: PLC0415  # not there without the extra
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name, right in zip(names, numeric, strict=True):
        # Where room is short, words go on in the next line: nothing of them is left out.
        table.add_column(name.replace("_", " "), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(word) for word in row))
    Console(file=sys.stdout, highlight=False).print(table)


def _lines(names: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]]) -> None:
    lines = [list(names), *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    for line in lines:
        words = zip(line, widths, numeric, strict=True)
        click.echo(
            "  ".join(word.rjust(width) if right else word.ljust(width) for word, width, right in words).rstrip()
        )
