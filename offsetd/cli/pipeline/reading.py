"""How commands read a broker's history: which options say it, and what is said when it cannot be read."""

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from offsetd.pipeline.session import DEFAULT_MASTER, SparkMissing, missing, spark_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which history, and which groups and topics of it."""

    data: Path
    broker_id: int | None
    groups: tuple[str, ...]
    topics: tuple[str, ...]
    master: str

    @contextmanager
    def session(self) -> "Iterator[SparkSession]":
        """Give a session of Spark, if there is a history to be read at all.

        Raises:
            click.ClickException: there is none, or it cannot be read.
        """
        # Imported here, so that help is quick.
        from offsetd.journal.segment import Damage, NewerFormat  # noqa: PLC0415
        from offsetd.pipeline.history.options import local_directory  # noqa: PLC0415
        from offsetd.pipeline.history.places import locate  # noqa: PLC0415
        from offsetd.pipeline.history.refusal import HistoryRefused  # noqa: PLC0415

        lacking = missing()
        if lacking is not None:
            raise click.ClickException(lacking)
        from pyspark.errors import PySparkException  # noqa: PLC0415  # it has just been found to be there

        try:
            # Spark takes seconds to start, and a wrong directory is the likeliest fault.
            locate(local_directory(str(self.data)), self.broker_id)
            with spark_session("offsetd pipeline history", master=self.master) as spark:
                yield spark
        except (HistoryRefused, Damage, NewerFormat, SparkMissing) as error:
            raise click.ClickException(str(error)) from error
        except PySparkException as error:
            raise click.ClickException(f"the history could not be read: {said(str(error))}") from error

    def records(self, spark: "SparkSession") -> "DataFrame":
        """Return the wanted records of the history."""
        from offsetd.pipeline.history.records import records  # noqa: PLC0415

        return self.chosen(records(spark, self.data, broker_id=self.broker_id))

    def chosen(self, frame: "DataFrame") -> "DataFrame":
        """Return the records of the wanted groups and topics; what is about a whole group stays."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # it is there, as `session` has found

        if self.groups:
            frame = frame.where(matches(f.col("group"), self.groups))
        if self.topics:
            frame = frame.where(f.col("topic").isNull() | matches(f.col("topic"), self.topics))
        return frame


def matches(column: "Column", patterns: tuple[str, ...]) -> "Column":
    """Return whether a name matches any of some patterns, in which * and ? stand for anything."""
    wild = {"*": ".*", "?": "."}
    words = ("".join(wild.get(each) or re.escape(each) for each in pattern) for pattern in patterns)
    return column.rlike("|".join(rf"(?s)\A{word}\z" for word in words))


def said(text: str) -> str:
    """Return what a worker's traceback says in the end, which Spark shows whole and with its own around it."""
    ours = [line.strip() for line in text.splitlines() if line.strip().startswith("offsetd.")]
    return ours[-1].partition(": ")[2] or ours[-1] if ours else text.strip().splitlines()[0]


def reads_history(function: Callable[Concatenate[Asked, P], R]) -> Callable[P, R]:
    """Give a command the options that say which history, and what they say as its first argument."""

    @functools.wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = {name: kwargs.pop(name) for name in ("data", "broker_id", "groups", "topics", "master")}
        return function(Asked(**given), *args, **kwargs)

    decorated: Callable[P, R] = command
    options = (
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            default=Path("data"),
            show_default=True,
            metavar="DIR",
            help="The data directory of a daemon, running or not, or a copy of its history.",
        ),
        click.option(
            "--broker-id", type=click.IntRange(min=0), metavar="N", help="Whose history, if there are several."
        ),
        click.option(
            "--group", "groups", multiple=True, metavar="PATTERN", help="Only these groups; * and ? stand for anything."
        ),
        click.option(
            "--topic", "topics", multiple=True, metavar="PATTERN", help="Only these topics; * and ? stand for anything."
        ),
        click.option("--master", default=DEFAULT_MASTER, show_default=True, metavar="URL", help="Where Spark runs."),
    )
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
