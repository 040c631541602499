"""``offsetd version``."""

import platform

import click

from offsetd import __version__


@click.command()
def command() -> None:
    """Print the version."""
    click.echo(f"offsetd {__version__} (Python {platform.python_version()})")
