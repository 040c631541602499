"""``offsetd pipeline reconcile``: compare two dumps of offsets, row by row."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offsetd.cli.pipeline.export import last_line
from offsetd.cli.pipeline.importing import FORMATS, Failed
from offsetd.pipeline.session import DEFAULT_MASTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN_MAX = 20


@click.command()
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@click.option("--left-format", type=FORMATS, help="What A is, if a file (default: told by its name and first line).")
@click.option("--right-format", type=FORMATS, help="What B is, likewise.")
@click.option("--group", help="Only this group; also the one of a Kafka CSV that names none.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write every row with its verdict (.csv or .parquet).",
)
@click.option("--master", default=DEFAULT_MASTER, show_default=True, metavar="URL", help="Spark's master.")
def command(
    left: str,
    right: str,
    left_format: str | None,
    right_format: str | None,
    group: str | None,
    out: Path | None,
    master: str,
) -> None:
    """Compare A with B: each a broker (HOST:PORT) or a file of any format that import takes.

    Exit code 0: all equal. 1: there are differences. 2: the command was not understood. 3: one of the two, or a row of
    it, could not be read, so that nothing can be said for sure.
    """
    # Imported here, so that help is quick.
    from offsetd.client.errors import ClientError  # noqa: PLC0415
    from offsetd.client.transient import Transient  # noqa: PLC0415
    from offsetd.pipeline.bulk.reading import DumpUnreadable  # noqa: PLC0415
    from offsetd.pipeline.session import missing, spark_session  # noqa: PLC0415

    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"--out {out.name} ends neither with .csv nor with .parquet")
    lacking = missing()
    if lacking is not None:
        raise Failed(lacking)
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        with spark_session("offsetd pipeline reconcile", master=master) as spark:
            sides = (_read(spark, left, left_format, group), _read(spark, right, right_format, group))
            code = _compare(sides, out)
    except (ClientError, Transient, DumpUnreadable) as error:
        raise Failed(str(error)) from error
    except PySparkException as error:
        raise Failed(f"the offsets could not be read: {last_line(str(error))}") from error
    except OSError as error:
        raise Failed(f"{error.filename or out}: {error.strerror}") from error
    sys.exit(code)


def _read(spark: "SparkSession", place: str, kind: str | None, group: str | None) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from offsetd.client.address import parse_bootstrap  # noqa: PLC0415
    from offsetd.pipeline.bulk.exporting import read_broker  # noqa: PLC0415
    from offsetd.pipeline.bulk.reading import read_dump  # noqa: PLC0415

    if kind is None and not Path(place).exists():
        try:
            parse_bootstrap(place)
        except ValueError:
            pass  # a file that is not there, or one on another file system: whoever reads it says so
        else:
            return read_broker(spark, place, groups=None if group is None else [group])
    frame = read_dump(spark, place, kind, names_group=group)
    return frame if group is None else frame.where((F.col("group") == group) | F.col("problem").isNotNull())


def _compare(sides: "tuple[Any, Any]", out: Path | None) -> int:
    from offsetd.pipeline.bulk.exporting import write_file  # noqa: PLC0415
    from offsetd.pipeline.bulk.reconciling import count_verdicts, reconcile, split  # noqa: PLC0415
    from offsetd.pipeline.bulk.verdict import Verdict  # noqa: PLC0415

    # Kept, so that a broker is asked once, and every number below is of the same answer.
    (left, wrong_left), (right, wrong_right) = (split(side.persist()) for side in sides)
    rows = reconcile(left, right).persist()
    counts = count_verdicts(rows)
    for verdict, count in counts.items():
        click.echo(f"{verdict.value:<18}{count:>12}")
    different = rows.where(rows["verdict"] != Verdict.EQUAL.value).orderBy("group", "topic", "partition")
    for row in different.limit(_SHOWN_MAX).collect():
        by = f" by {row['by']}" if row["by"] else ""
        click.echo(
            f"{row['group']} {row['topic']}/{row['partition']}: {row['verdict']}{by} ({row['left']}, {row['right']})"
        )
    if out is not None:
        write_file(rows.orderBy("group", "topic", "partition"), out)
    unreadable = 0
    for name, wrong in (("A", wrong_left), ("B", wrong_right)):
        problems = [row["problem"] for row in wrong.collect()]
        unreadable += len(problems)
        for problem in problems[:_SHOWN_MAX]:
            click.echo(f"{name} cannot be read: {problem}", err=True)
    if unreadable:
        click.echo(f"{unreadable} rows could not be read.", err=True)
        return 3
    return 0 if sum(counts.values()) == counts[Verdict.EQUAL] else 1
