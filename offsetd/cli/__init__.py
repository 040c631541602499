"""The command line: one command per file, imported only when it is run."""

from typing import Final

import click

from offsetd.cli.lazy import LazyGroup
from offsetd.settings.error import ConfigError

COMMANDS: Final = {
    "serve": ("offsetd.cli.serve:command", "Run the broker."),
    "healthcheck": ("offsetd.cli.healthcheck:command", "Ask a running broker whether it is well."),
    "config": ("offsetd.cli.config:command", "Show, check and document the settings."),
    "journal": ("offsetd.cli.journal:command", "Verify, dump or repair a journal."),
    "history": ("offsetd.cli.history:command", "Seal history as Parquet, and show what there is of it."),
    "pipeline": ("offsetd.cli.pipeline:command", "Load topics, ask the history, import and compare offsets."),
    "bench": ("offsetd.cli.bench:command", "Measure a fresh broker under load."),
    "version": ("offsetd.cli.version:command", "Print the version."),
}


class Commands(LazyGroup):
    """All commands; a wrong setting is one sentence and exit code 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=Commands, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
def commands() -> None:
    """Kafka's consumer-offset service as a daemon of its own."""
