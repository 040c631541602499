"""``offsetd pipeline import``: commit offsets from a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offsetd.pipeline.session import DEFAULT_MASTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = click.Choice(["csv", "parquet", "zookeeper", "kafka-csv"])
_SHOWN_MAX = 20


class Failed(click.ClickException):
    """It could not be done at all."""

    exit_code = 3


@click.command()
@click.argument("file")
@click.option("--to", "bootstrap", required=True, metavar="HOST:PORT", help="The broker, or several joined by commas.")
@click.option("--format", "kind", type=FORMATS, help="What the file is (default: told by its name and first line).")
@click.option("--group", help="The group, for a Kafka CSV that names none.")
@click.option("--dry-run", is_flag=True, help="Read and check the file, and commit nothing.")
@click.option(
    "--refused",
    "refused_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the rows that are not in the broker (.csv or .parquet).",
)
@click.option("--connections", type=click.IntRange(1, 1000), help="Tasks, each with one connection (default: cores).")
@click.option("--master", default=DEFAULT_MASTER, show_default=True, metavar="URL", help="Spark's master.")
def command(
    file: str,
    bootstrap: str,
    kind: str | None,
    group: str | None,
    refused_file: Path | None,
    connections: int | None,
    master: str,
    *,
    dry_run: bool,
) -> None:
    """Commit the offsets of FILE. Running it again is harmless.

    Exit code 0: every row is in the broker. 1: some were refused or are malformed, and are shown; the others are in
    the broker. 2: the command was not understood. 3: the file, the broker or Spark could not be used.
    """
    # Imported here, so that help is quick.
    from offsetd.client.address import parse_bootstrap  # noqa: PLC0415
    from offsetd.pipeline.bulk.reading import DumpUnreadable, read_dump  # noqa: PLC0415
    from offsetd.pipeline.session import SparkMissing, spark_session  # noqa: PLC0415

    try:
        parse_bootstrap(bootstrap)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if refused_file is not None and refused_file.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"--refused {refused_file.name} ends neither with .csv nor with .parquet")
    try:
        with spark_session("offsetd pipeline import", master=master) as spark:
            frame = read_dump(spark, file, kind, group=group)
            code = _check(frame) if dry_run else _commit(spark, frame, bootstrap, refused_file, connections)
    except (DumpUnreadable, SparkMissing) as error:
        raise Failed(str(error)) from error
    sys.exit(code)


def _check(frame: "DataFrame") -> int:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    frame = frame.persist()
    numbers = frame.agg(
        F.count("*").alias("rows"),
        F.count("problem").alias("malformed"),
        F.countDistinct("group").alias("groups"),
    ).head()
    click.echo(
        f"{numbers['rows']} rows, {numbers['groups']} groups, {numbers['malformed']} malformed. Nothing was committed."
    )
    for row in frame.where(F.col("problem").isNotNull()).limit(_SHOWN_MAX).collect():
        click.echo(f"malformed: {row['problem']}", err=True)
    return 1 if numbers["malformed"] else 0


def _commit(
    spark: "SparkSession", frame: "DataFrame", bootstrap: str, refused_file: Path | None, connections: int | None
) -> int:
    from offsetd.client.errors import ClientError  # noqa: PLC0415
    from offsetd.client.transient import Transient  # noqa: PLC0415
    from offsetd.pipeline.bulk.exporting import list_groups, write_file  # noqa: PLC0415
    from offsetd.pipeline.bulk.importing import import_offsets  # noqa: PLC0415

    try:
        # Asked only to see that somebody answers, before a million rows find out one by one.
        list_groups(bootstrap)
    except (ClientError, Transient) as error:
        raise Failed(f"nothing was committed: {error}") from error
    summary, refused = import_offsets(spark, frame, bootstrap, connections=connections)
    click.echo(
        f"{summary.rows} rows: {summary.committed} committed, {summary.refused} refused, {summary.malformed} malformed "
        f"({summary.requests} requests, {summary.retries} of them again)."
    )
    if not summary.complete:
        for row in refused.limit(_SHOWN_MAX).collect():
            named = f"{row['group']} {row['topic']}/{row['partition']} {row['offset']}: " if row["group"] else ""
            click.echo(f"not committed: {named}{row['why']}", err=True)
    if refused_file is not None:
        try:
            write_file(refused, refused_file)
        except OSError as error:
            raise Failed(f"the refused rows could not be written to {refused_file}: {error.strerror}") from error
    return 0 if summary.complete else 1
