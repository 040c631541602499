"""`offsetd serve`: introduces the rooms to each other and keeps them company until a signal comes."""

import os
import sys
from pathlib import Path

import click

from offsetd.settings import ConfigError, Settings, load_settings


@click.command()
@click.option("--config", type=click.Path(path_type=Path), default=None, help="A TOML file of settings.")
@click.option("--data", default=None, help="The data directory (data.dir). Default: ./data.")
@click.option("--listen", default=None, help="HOST:PORT for Kafka clients (listeners). Default: 127.0.0.1:9092.")
@click.option("--advertise", default=None, help="HOST:PORT that clients are told (advertised.listeners).")
@click.option("--http", default=None, help="HOST:PORT for metrics and health (http.listeners).")
def command(config: Path | None, data: str | None, listen: str | None, advertise: str | None, http: str | None) -> None:
    """Run the daemon."""
    flags = {"data.dir": data, "listeners": listen, "advertised.listeners": advertise, "http.listeners": http}
    try:
        settings = load_settings(
            config, os.environ, {name: value for name, value in flags.items() if value is not None}
        )
    except ConfigError as error:
        click.echo(f"offsetd: {error}", err=True)
        sys.exit(1)
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
