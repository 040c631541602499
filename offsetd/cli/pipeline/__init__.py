"""``offsetd pipeline …``: one command per file. What they do is in `offsetd.pipeline`, and needs its extra, `spark`."""

from typing import Final

import click

from offsetd.cli.lazy import LazyGroup

COMMANDS: Final = {
    "load": ("offsetd.cli.pipeline.load:command", "Load topics into a table, each record once."),
    "compact": ("offsetd.cli.pipeline.compact:command", "Fold the small files of published loads."),
    "import": ("offsetd.cli.pipeline.importing:command", "Commit offsets from a file."),
    "export": ("offsetd.cli.pipeline.export:command", "Write the offsets of a broker to a file."),
    "history": ("offsetd.cli.pipeline.history:command", "Ask the history of offsets: who moved what, and when."),
    "report": ("offsetd.cli.pipeline.report:command", "Tell a time of the history as one page of HTML."),
    "sample": ("offsetd.cli.pipeline.sample:command", "Keep where the data cluster's logs end, so that lag is known."),
    "reconcile": ("offsetd.cli.pipeline.reconcile:command", "Compare two dumps of offsets, row by row."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def command() -> None:
    """Load topics, ask the history, import and compare offsets, with Spark."""
