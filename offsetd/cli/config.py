"""``offsetd config show|check|docs``: what the daemon would run with, and why."""

import json

import click

from offsetd.cli.options import with_settings
from offsetd.settings import TABLE, Settings, shown
from offsetd.settings.page import settings_page


@click.group()
def command() -> None:
    """Show, check and document the settings."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@with_settings
def show(settings: Settings, as_json: bool) -> None:  # noqa: FBT001  # click passes by name
    """Print each value with where it came from."""
    rows = [(about.name, shown(settings.value(about.name)), settings.sources[about.name]) for about in TABLE]
    if as_json:
        values = {name: {"value": value, "source": source} for name, value, source in rows}
        click.echo(json.dumps(values, indent=2))
        return
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(40, max(len(value) for _, value, _ in rows))
    for name, value, source in rows:
        click.echo(f"{name:<{name_width}}  {value or '-':<{value_width}}  {source}")


@command.command()
@with_settings
def check(settings: Settings) -> None:
    """Exit 0 if the settings are right, else 1 with what is wrong."""
    changed = sum(source != "default" for source in settings.sources.values())
    click.echo(f"The settings are right: {changed} given, {len(TABLE) - changed} by default.")


@command.command()
def docs() -> None:
    """Print the settings page of the documentation."""
    click.echo(settings_page(), nl=False)
