"""`offsetd serve`: introduces the rooms to each other and keeps them company until a signal comes."""

import sys

import click

from offsetd.cli.options import with_settings
from offsetd.settings import Settings


@click.command()
@with_settings
def command(settings: Settings) -> None:
    """Run the broker until SIGTERM or SIGINT; a second signal ends it at once."""
    sys.exit(run(settings))


def run(settings: Settings) -> int:
    """Run the daemon until it is told to stop; return its exit code."""
    # Imported here, so that a mistake in the settings is answered before anything heavy is loaded.
    import uvloop  # noqa: PLC0415

    from offsetd.daemon import Daemon  # noqa: PLC0415
    from offsetd.logs import configure_logs  # noqa: PLC0415

    configure_logs(level=settings.log_level, form=settings.log_format)
    daemon = Daemon(settings)
    refusal = daemon.prepare()
    if refusal is not None:
        click.echo(f"offsetd: {refusal}", err=True)
        return 1
    code: int = uvloop.run(daemon.run())
    return code
