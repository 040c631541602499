"""``offsetd pipeline sample``: keep where the logs of the data cluster end, so that lag can be told later."""

import sys
from datetime import timedelta
from pathlib import Path

import click

from offsetd.cli.pipeline.moments import Span


@click.command()
@click.option("--upstream", required=True, metavar="HOST:PORT", help="The Kafka cluster that has the records.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The table of samples.",
)
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="A topic; may be repeated (default: all).")
@click.option("--pattern", metavar="REGEX", help="All topics whose whole name matches, instead of --topic.")
@click.option("--every", type=Span(), metavar="SPAN", help="Sample again and again: 30s, 5m.")
@click.option("--for", "lasting", type=Span(), metavar="SPAN", help="For how long, with --every.")
def command(
    upstream: str,
    out: Path,
    topics: tuple[str, ...],
    pattern: str | None,
    every: timedelta | None,
    lasting: timedelta | None,
) -> None:
    """Append where logs begin and end to a table of its own, once, or every so often for a while.

    `offsetd pipeline history lag` and `offsetd pipeline report` read it. It needs no Java. Exit codes: 0 every sample
    was taken; 1 some were not; 2 the command line makes no sense.
    """
    # Imported here, so that help is quick.
    from offsetd.pipeline.history.sampling import Sampling  # noqa: PLC0415
    from offsetd.pipeline.load.refusal import BadRequest  # noqa: PLC0415
    from offsetd.pipeline.load.upstream import Topics  # noqa: PLC0415

    if (every is None) != (lasting is None):
        raise click.UsageError("--every says how often and --for how long: give both, or neither for a single sample")
    failed = 0
    try:
        wanted = Topics(names=topics, pattern=".*" if pattern is None and not topics else pattern)
        sampling = Sampling(upstream=upstream, topics=wanted, out=out, every=every, lasting=lasting)
        for sampled in sampling.run():
            if sampled.problem is not None:
                failed += 1
                click.echo(f"Error: {sampled.time:%Y-%m-%d %H:%M:%S} UTC: {sampled.problem}", err=True)
            else:
                click.echo(f"{sampled.time:%Y-%m-%d %H:%M:%S} UTC: {sampled.partitions:,} partitions")
    except BadRequest as refused:
        raise click.UsageError(str(refused)) from refused
    except ImportError as error:
        raise click.ClickException(f"{error.name} is not installed: pip install 'offsetd[spark]'") from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror or error}") from error
    if failed:
        sys.exit(1)
