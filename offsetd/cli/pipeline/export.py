"""``offsetd pipeline export``: write the offsets of a broker to a file."""

from pathlib import Path

import click

from offsetd.cli.pipeline.importing import Failed
from offsetd.pipeline.session import DEFAULT_MASTER


@click.command()
@click.option("--from", "bootstrap", required=True, metavar="HOST:PORT", help="offsetd, or any broker of Kafka's.")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file, .csv or .parquet.",
)
@click.option("--group", "groups", multiple=True, help="Only this group; may be given more than once (default: all).")
@click.option("--master", default=DEFAULT_MASTER, show_default=True, metavar="URL", help="Spark's master.")
def command(bootstrap: str, out: Path, groups: tuple[str, ...], master: str) -> None:
    """Write every committed offset to one file, in the order of group, topic and partition.

    `offsetd pipeline import` takes the file back. Exit code 0: it is written. 2: the command was not understood. 3: the
    broker or Spark could not be used; no file is left then.
    """
    # Imported here, so that help is quick.
    from offsetd.client.address import parse_bootstrap  # noqa: PLC0415
    from offsetd.client.errors import ClientError  # noqa: PLC0415
    from offsetd.client.transient import Transient  # noqa: PLC0415
    from offsetd.pipeline.bulk.exporting import read_broker, write_file  # noqa: PLC0415
    from offsetd.pipeline.bulk.row import COLUMNS  # noqa: PLC0415
    from offsetd.pipeline.session import SparkMissing, missing, spark_session  # noqa: PLC0415

    if out.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"--out {out.name} ends neither with .csv nor with .parquet")
    try:
        parse_bootstrap(bootstrap)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    lacking = missing()
    if lacking is not None:
        raise Failed(lacking)
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        with spark_session("offsetd pipeline export", master=master) as spark:
            frame = read_broker(spark, bootstrap, groups=groups or None)
            count = write_file(frame.select(*COLUMNS).orderBy("group", "topic", "partition"), out)
    except (ClientError, Transient, SparkMissing) as error:
        raise Failed(str(error)) from error
    except PySparkException as error:
        raise Failed(f"the offsets could not be read: {last_line(str(error))}") from error
    except OSError as error:
        raise Failed(f"{out}: {error.strerror}") from error
    click.echo(f"{count} offsets are in {out}.")


def last_line(text: str) -> str:
    """Return what a worker's traceback says in the end, which Spark shows whole and with its own around it."""
    said = [line for line in text.splitlines() if line.startswith("offsetd.")]
    return said[-1] if said else text.strip().splitlines()[0]
