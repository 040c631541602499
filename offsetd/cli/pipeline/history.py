"""``offsetd pipeline history …``: what the history of offsets tells, a view for each question."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from offsetd.cli.pipeline.answer import Answer, answers
from offsetd.cli.pipeline.moments import Moment, Span
from offsetd.cli.pipeline.reading import Asked, reads_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

F = TypeVar("F", bound=Callable[..., object])

#: How far a commit must go ahead of the one before it to be told as a jump.
JUMP_MIN: Final = 100_000

_SPAN: Final = Span()
_MOMENT: Final = Moment()


def in_window(function: F) -> F:
    """Give a command the options that say a window of time."""
    to = click.option("--to", "end", type=_MOMENT, metavar="TIME", help="Only what was before it (default: now).")
    since = click.option("--from", "start", type=_MOMENT, metavar="TIME", help="Only what was then or later.")
    return since(to(function))


def within(frame: "DataFrame", start: datetime | None, end: datetime | None, column: str = "time") -> "DataFrame":
    """Return the rows of a window of time."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # not there without the extra

    if start is not None:
        frame = frame.where(f.col(column) >= f.lit(start))
    if end is not None:
        frame = frame.where(f.col(column) < f.lit(end))
    return frame


@click.group()
def command() -> None:
    """Ask the history of offsets: who stood where, who moved what, who is behind.

    TIME is ISO 8601 (UTC if not said), milliseconds since 1970, or a span for so long ago (2h), by the broker's clock.
    SPAN is 90s, 5m, 2h, 7d. Exit codes: 0 answered, 1 the history cannot be read, 2 the command line makes no sense.
    """


@command.command("as-of")
@click.option("--at", "moment", type=_MOMENT, metavar="TIME", help="When (default: now).")
@reads_history
@answers
def as_of_command(answer: Answer, asked: Asked, moment: datetime | None) -> None:
    """Show where groups stood at a moment."""
    with asked.session() as spark:
        from offsetd.pipeline.history.state import as_of  # noqa: PLC0415  # so that help is quick

        answer.give(as_of(asked.records(spark), moment), empty="No group had an offset then.")


@command.command("rate")
@click.option(
    "--every", "width", type=_SPAN, default="5m", show_default=True, metavar="SPAN", help="How wide windows are."
)
@in_window
@reads_history
@answers
def rate_command(answer: Answer, asked: Asked, width: timedelta, start: datetime | None, end: datetime | None) -> None:
    """Count what each group committed."""
    with asked.session() as spark:
        from offsetd.pipeline.history.views import commit_rate  # noqa: PLC0415

        records = within(asked.records(spark), start, end, "batch_time")
        answer.give(commit_rate(records, width), empty="Nothing was committed.")


@command.command("moves")
@click.option(
    "--jump",
    "jump_min",
    type=click.IntRange(min=1),
    default=JUMP_MIN,
    show_default=True,
    metavar="RECORDS",
    help="How far ahead is a jump.",
)
@in_window
@reads_history
@answers
def moves_command(answer: Answer, asked: Asked, jump_min: int, start: datetime | None, end: datetime | None) -> None:
    """List rewinds and jumps: who, from where, to where."""
    with asked.session() as spark:
        from offsetd.pipeline.history.views import moves  # noqa: PLC0415

        found = within(moves(asked.records(spark), jump_min=jump_min), start, end)
        answer.give(found, empty=f"Nobody went back, nor ahead by {jump_min:,} or more.")


@command.command("gaps")
@click.option(
    "--longer-than", type=_SPAN, default="5m", show_default=True, metavar="SPAN", help="Shorter ones are not shown."
)
@in_window
@reads_history
@answers
def gaps_command(
    answer: Answer, asked: Asked, longer_than: timedelta, start: datetime | None, end: datetime | None
) -> None:
    """List times in which a group committed nothing."""
    with asked.session() as spark:
        from pyspark.sql import functions as f  # noqa: PLC0415

        from offsetd.pipeline.history.line import until  # noqa: PLC0415
        from offsetd.pipeline.history.views import gaps  # noqa: PLC0415

        found = gaps(until(asked.records(spark), end), longer_than, until=end or datetime.now(UTC))
        if start is not None:
            found = found.where(f.col("to").isNull() | (f.col("to") > f.lit(start)))
        answer.give(found, empty="No group was silent for so long.")


@command.command("expiring")
@click.option("--at", "moment", type=_MOMENT, metavar="TIME", help="When (default: now).")
@click.option(
    "--retention", type=_SPAN, default="7d", show_default=True, metavar="SPAN", help="The broker's, for these groups."
)
@click.option(
    "--within", "ahead", type=_SPAN, default="1d", show_default=True, metavar="SPAN", help="How far to look ahead."
)
@reads_history
@answers
def expiring_command(
    answer: Answer, asked: Asked, moment: datetime | None, retention: timedelta, ahead: timedelta
) -> None:
    """List groups whose offsets will soon expire."""
    with asked.session() as spark:
        from offsetd.pipeline.history.state import expiring  # noqa: PLC0415

        found = expiring(asked.records(spark), moment or datetime.now(UTC), retention=retention, within=ahead)
        answer.give(found, empty="Nothing expires by then.")


@command.command("owners")
@in_window
@reads_history
@answers
def owners_command(answer: Answer, asked: Asked, start: datetime | None, end: datetime | None) -> None:
    """List when a partition was committed by somebody else than before."""
    with asked.session() as spark:
        from offsetd.pipeline.history.views import owners  # noqa: PLC0415

        answer.give(within(owners(asked.records(spark)), start, end), empty="Nobody took over from anybody.")


@command.command("removals")
@in_window
@reads_history
@answers
def removals_command(answer: Answer, asked: Asked, start: datetime | None, end: datetime | None) -> None:
    """List offsets that were deleted or expired: where they stood, and who removed them."""
    with asked.session() as spark:
        from offsetd.pipeline.history.views import removals  # noqa: PLC0415

        answer.give(within(removals(asked.records(spark)), start, end), empty="Nothing was removed.")


@command.command("lag")
@click.option(
    "--samples",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="What `offsetd pipeline sample` has written.",
)
@in_window
@reads_history
@answers
def lag_command(answer: Answer, asked: Asked, folder: Path, start: datetime | None, end: datetime | None) -> None:
    """Show how far groups were behind, wherever the ends of the logs were sampled."""
    with asked.session() as spark:
        from offsetd.pipeline.history.lag import lag  # noqa: PLC0415
        from offsetd.pipeline.history.samples import NoSamples, read_samples  # noqa: PLC0415

        try:
            samples = within(read_samples(spark, folder), start, end)
        except NoSamples as error:
            raise click.ClickException(str(error)) from error
        answer.give(lag(asked.records(spark), samples), empty="No group had an offset of what was sampled.")
