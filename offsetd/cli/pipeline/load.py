"""``offsetd pipeline load``: topics become a table, each record once."""

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offsetd.cli.pipeline.moments import Moment
from offsetd.pipeline.load.audience import Audience
from offsetd.pipeline.load.loader import load
from offsetd.pipeline.load.observer import Observer
from offsetd.pipeline.load.reconcile import Choice
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused
from offsetd.pipeline.load.request import Request, TableFormat
from offsetd.pipeline.load.show import shown
from offsetd.pipeline.load.upstream import Topics
from offsetd.pipeline.load.value import ValueFormat, read_values
from offsetd.pipeline.session import AVRO, DEFAULT_MASTER, DELTA, KAFKA, SparkMissing, make_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _pairs(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE")
        found[key] = value
    return found


@click.command()
@click.option("--upstream", required=True, metavar="HOST:PORT", help="The Kafka cluster that has the records.")
@click.option(
    "--offsets",
    default="127.0.0.1:9092",
    show_default=True,
    metavar="HOST:PORT",
    help="The offsetd that has the group.",
)
@click.option("--group", metavar="NAME", help="The group whose position this table is.")
@click.option("--topic", "--topics", "topics", multiple=True, metavar="NAME", help="A topic; may be repeated.")
@click.option("--pattern", metavar="REGEX", help="All topics whose whole name matches, instead of --topic.")
@click.option("--out", metavar="DIR", help="The table: a directory of this machine.")
@click.option("--into", metavar="DIR", help="A table without a group, instead of --group and --out.")
@click.option(
    "--format",
    "table_format",
    type=click.Choice([item.value for item in TableFormat]),
    default=TableFormat.PARQUET.value,
    show_default=True,
    help="What kind of table it is.",
)
@click.option(
    "--value-format",
    type=click.Choice([item.value for item in ValueFormat]),
    default=ValueFormat.RAW.value,
    show_default=True,
    help="How values are encoded.",
)
@click.option(
    "--schema",
    "schema_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Schema of the values: Spark's DDL or JSON for json, an .avsc file for avro.",
)
@click.option(
    "--from-time",
    type=Moment(),
    metavar="TIME",
    help="Where partitions begin that neither table nor group knows: ISO 8601 (UTC if not said), ms since 1970, or 2h.",
)
@click.option("--supersede", is_flag=True, help="Load anew from --from-time on, replacing the loads that hold it.")
@click.option("--max-records", type=click.IntRange(min=1), metavar="N", help="Load at most so many, from all fairly.")
@click.option(
    "--split", type=click.IntRange(min=1), metavar="N", help="Several tasks for partitions with more records."
)
@click.option("--exact", is_flag=True, help="Publish only if every offset brought a row.")
@click.option("--accept", is_flag=True, help="Somebody moved the group: begin where it is.")
@click.option("--repair", is_flag=True, help="Somebody moved the group: put it back to where the table ends.")
@click.option("--dry-run", is_flag=True, help="Show the plan and change nothing.")
@click.option(
    "--report", metavar="FILE", type=click.Path(path_type=Path), help="Write a page about the load here, as HTML."
)
@click.option(
    "--metrics-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write metrics here, for the textfile collector of Prometheus' node exporter.",
)
@click.option("--push-gateway", metavar="HOST:PORT", help="Push metrics to this Pushgateway.")
@click.option("--master", default=DEFAULT_MASTER, show_default=True, metavar="URL", help="Where Spark runs.")
@click.option(
    "--spark-conf", callback=_pairs, multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
)
def command(
    *,
    upstream: str,
    offsets: str,
    group: str | None,
    topics: tuple[str, ...],
    pattern: str | None,
    out: str | None,
    into: str | None,
    table_format: str,
    value_format: str,
    schema_file: Path | None,
    from_time: datetime | None,
    supersede: bool,
    max_records: int | None,
    split: int | None,
    exact: bool,
    accept: bool,
    repair: bool,
    dry_run: bool,
    report: Path | None,
    metrics_file: Path | None,
    push_gateway: str | None,
    master: str,
    spark_conf: Mapping[str, str],
) -> None:
    """Load topics into a table, each record once, wherever an earlier run was cut off.

    Exit codes: 0 done, or nothing to do; 1 failed; 2 the command line makes no sense; 3 somebody moved the group;
    4 records are gone from the log; 5 another loader was first; 6 published, but offsetd could not be told;
    7 what was written is not what was planned.
    """
    try:
        owner, table = _place(group, out, into)
        request = Request(
            group=owner,
            topics=Topics(names=topics, pattern=pattern),
            out=table,
            upstream=upstream,
            offsets=offsets,
            format=TableFormat(table_format),
            values=read_values(ValueFormat(value_format), schema_file),
            from_time_ms=None if from_time is None else round(from_time.timestamp() * 1000),
            records_max=max_records,
            split=split,
            choice=_choice(accept=accept, repair=repair),
            supersede=supersede,
            exact=exact,
            dry_run=dry_run,
        )
        observers = _observers(report, metrics_file, push_gateway)
        _run(request, observers, master, spark_conf)
    except LoadRefused as refused:
        click.echo(f"Error: {refused}", err=True)
        sys.exit(refused.code)
    except SparkMissing as missing:
        raise click.ClickException(str(missing)) from missing
    except OSError as error:
        raise click.ClickException(f"{error.filename or request.out}: {error.strerror or error}") from error


def _observers(report: Path | None, metrics_file: Path | None, push_gateway: str | None) -> list[Observer]:
    """Return who else hears of the load."""
    from offsetd.pipeline.load.metrics import MetricsFile, MetricsPush  # noqa: PLC0415  # only if asked for
    from offsetd.pipeline.load.report import Report  # noqa: PLC0415

    found: list[Observer] = []
    if report is not None:
        found.append(Report(report))
    if metrics_file is not None:
        found.append(MetricsFile(metrics_file))
    if push_gateway is not None:
        found.append(MetricsPush(push_gateway))
    return found


def _run(request: Request, observers: Sequence[Observer], master: str, settings: Mapping[str, str]) -> None:
    packages = [KAFKA]
    if request.values.format is ValueFormat.AVRO:
        packages.append(AVRO)
    if request.format is TableFormat.DELTA:
        packages.append(DELTA)
    sessions: list[SparkSession] = []

    def session() -> "SparkSession":
        if not sessions:
            sessions.append(make_session("offsetd pipeline load", master=master, packages=packages, settings=settings))
        return sessions[0]

    try:
        with shown() as drawn:
            load(request, session, Audience((drawn, *observers)))
    finally:
        for made in sessions:
            made.stop()


def _place(group: str | None, out: str | None, into: str | None) -> tuple[str | None, str]:
    """Return the group, if any, and the table.

    Raises:
        BadRequest: they contradict each other.
    """
    if into is not None:
        if group is not None or out is not None:
            raise BadRequest("--into is a table without a group: leave out --group and --out.")
        return None, into
    if group is None or out is None:
        raise BadRequest(
            "say which --group the table belongs to and where it is (--out), or --into for one of no group."
        )
    return group, out


def _choice(*, accept: bool, repair: bool) -> Choice:
    if accept and repair:
        raise BadRequest("--accept and --repair say opposite things: choose one.")
    return Choice.ACCEPT if accept else Choice.REPAIR if repair else Choice.STOP
