"""``offsetd pipeline compact``: the small files of published loads are folded, and readers do not notice."""

import sys
from datetime import timedelta

import click

from offsetd.pipeline.load.refusal import LoadRefused
from offsetd.pipeline.quantity import in_bytes, parse_bytes


def _size(_context: click.Context, _option: click.Parameter, text: str) -> int:
    try:
        size = parse_bytes(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if size < 1:
        raise click.BadParameter("want at least one byte")
    return size


@click.command()
@click.option("--out", required=True, metavar="DIR", help="The table, as it was given to load.")
@click.option(
    "--target-bytes",
    default="128MiB",
    show_default=True,
    callback=_size,
    metavar="SIZE",
    help="How large a folded file may be; files of over half of it stay as they are.",
)
@click.option("--before", type=click.IntRange(min=1), metavar="N", help="Only loads with a smaller number.")
@click.option(
    "--keep-hours",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="How long loads are kept under _replaced as they were.",
)
@click.option(
    "--wait-seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="How long to wait for readers that hold DIR/_readers.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be folded and change nothing.")
def command(
    *, out: str, target_bytes: int, before: int | None, keep_hours: float, wait_seconds: float, dry_run: bool
) -> None:
    """Fold the small files of each published load into fewer, larger ones.

    Files of one load, topic and day are folded; loads are never mixed. Exit codes: 0 done, or nothing to do; 1 failed,
    or a load is not what its manifest says; 2 the command line makes no sense; 7 what was folded is not what was there.
    """
    # Imported here: help needs none of it.
    from offsetd.pipeline.compacting.compactor import Wish, compact  # noqa: PLC0415
    from offsetd.pipeline.load.table import Table  # noqa: PLC0415

    wish = Wish(
        target_bytes=target_bytes,
        before=before,
        keep=timedelta(hours=keep_hours),
        wait_seconds=wait_seconds,
        dry_run=dry_run,
    )
    loads = 0
    try:
        for outcome in compact(Table(out), wish):
            loads += 1
            size = "" if not outcome.bytes_after else f" to {in_bytes(outcome.bytes_after)}"
            click.echo(
                f"load {outcome.number}: {outcome.files_before:,} files to {outcome.files_after:,}, "
                f"{in_bytes(outcome.bytes_before)}{size}: {outcome.done}"
            )
    except LoadRefused as refused:
        click.echo(f"Error: {refused}", err=True)
        sys.exit(refused.code)
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror or error}") from error
    if not loads:
        click.echo("nothing to fold: no load has two small files of the same topic and day")
