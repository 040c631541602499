"""The command line: one command per file, imported only when it is run, so that a quick command starts quickly."""

from importlib import import_module
from typing import cast

import click

from offsetd.settings.error import ConfigError

# Where each command lives and what help says of it, so that help imports none of them.
COMMANDS = {
    "serve": ("offsetd.cli.serve:command", "Run the broker."),
    "healthcheck": ("offsetd.cli.healthcheck:command", "Ask a running broker whether it is well."),
    "config": ("offsetd.cli.config:command", "Show, check and document the settings."),
    "journal": ("offsetd.cli.journal:command", "Verify, dump or repair a journal."),
    "bench": ("offsetd.cli.bench:command", "Measure a fresh broker under load."),
    "version": ("offsetd.cli.version:command", "Print the version."),
}


class LazyCommands(click.Group):
    """A group that knows its commands by name, and turns a wrong setting into one sentence and exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module_name, attribute = COMMANDS[cmd_name][0].split(":")
        return cast("click.Command", getattr(import_module(module_name), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def commands() -> None:
    """Kafka's consumer-offset service as a daemon of its own."""
