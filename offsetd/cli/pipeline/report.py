"""``offsetd pipeline report``: a time of the history as one page."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from offsetd.cli.pipeline.history import JUMP_MIN
from offsetd.cli.pipeline.moments import Moment, Span
from offsetd.cli.pipeline.reading import Asked, reads_history


@click.command()
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="The page, .html."
)
@click.option(
    "--from", "start", type=Moment(), default="1d", show_default=True, metavar="TIME", help="Where the time begins."
)
@click.option("--to", "end", type=Moment(), metavar="TIME", help="Where it ends (default: now).")
@click.option("--samples", type=click.Path(path_type=Path), metavar="DIR", help="Log ends, for the lag.")
@click.option(
    "--jump", "jump_min", type=click.IntRange(min=1), default=JUMP_MIN, show_default=True, metavar="RECORDS",
    help="How far ahead is a jump.",
)  # fmt: skip
@click.option(
    "--longer-than", "silence", type=Span(), default="5m", show_default=True, metavar="SPAN", help="How long is silent."
)
@click.option("--retention", type=Span(), default="7d", show_default=True, metavar="SPAN", help="The broker's.")
@click.option(
    "--within", "ahead", type=Span(), default="1d", show_default=True, metavar="SPAN",
    help="How far to look ahead for what expires.",
)  # fmt: skip
@reads_history
def command(
    asked: Asked,
    out: Path,
    start: datetime,
    end: datetime | None,
    samples: Path | None,
    jump_min: int,
    silence: timedelta,
    retention: timedelta,
    ahead: timedelta,
) -> None:
    """Tell what happened in a time, as one page of HTML that stands on its own.

    TIME is ISO 8601 (UTC if not said), milliseconds since 1970, or a span for so long ago (2h), by the broker's clock.
    Exit codes: 0 it is written, 1 the history cannot be read or the page not be written, 2 the command line makes no
    sense.
    """
    # Imported here, so that help is quick.
    from offsetd.pipeline.history.report import Question, find  # noqa: PLC0415
    from offsetd.pipeline.history.samples import NoSamples, read_samples  # noqa: PLC0415

    question = Question(
        start=start, end=end or datetime.now(UTC), jump_min=jump_min, silence=silence, retention=retention, ahead=ahead
    )
    if question.start >= question.end:
        raise click.UsageError("--from is not before --to")
    try:
        with asked.session() as spark:
            taken = None if samples is None else read_samples(spark, samples)
            found = find(asked.records(spark), question, taken)
        from offsetd.pipeline.history.report_page import render  # noqa: PLC0415
        from offsetd.pipeline.load.report import replace_text  # noqa: PLC0415

        replace_text(out, render(found, question, asked.data))
    except NoSamples as error:
        raise click.ClickException(str(error)) from error
    except ImportError as error:
        raise click.ClickException(f"{error.name} is not installed: pip install 'offsetd[spark]'") from error
    except OSError as error:
        raise click.ClickException(f"{out}: {error.strerror or error}") from error
    click.echo(f"The report is in {out}.")
