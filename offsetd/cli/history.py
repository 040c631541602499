"""``offsetd history seal|list``: seal released segments as Parquet, and show what history holds."""

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import click

from offsetd.cli.options import with_data
from offsetd.journal.directory import BrokerDirectory, DirectoryRefused, Identity, broker_directory, read_identity
from offsetd.journal.history import HistorySegment, list_history
from offsetd.journal.sealed import SealedFile, list_sealed, sealed_through
from offsetd.journal.segment import segment_number
from offsetd.journal.worker import step_back
from offsetd.pipeline.quantity import in_bytes, in_seconds
from offsetd.settings import Settings

if TYPE_CHECKING:
    from offsetd.history.seal import Done

P = ParamSpec("P")


@click.group()
def command() -> None:
    """Seal history as Parquet, and show what there is of it."""


def _on_history(function: Callable[Concatenate[BrokerDirectory, Identity, P], int]) -> Callable[P, None]:
    """Give a command the broker's directory and whose it is; what it returns is the exit code."""

    @with_data
    @functools.wraps(function)
    def wrapped(settings: Settings, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            identity = read_identity(settings.data_dir, settings.broker_id)
            code = function(broker_directory(settings.data_dir, settings.broker_id), identity, *args, **kwargs)
        except DirectoryRefused as refused:
            raise click.ClickException(str(refused)) from refused
        except OSError as error:
            raise click.ClickException(f"{error.filename or settings.data_dir}: {error.strerror}") from error
        sys.exit(code)

    return wrapped


@command.command()
@_on_history
def seal(directory: BrokerDirectory, identity: Identity) -> int:
    """Write all released segments as Parquet by day, and take each away when all of it is on disk.

    For cron, or by hand; beside a daemon or without one, as the owner of the data directory. Killed anywhere, it is
    simply run again. Exit code 0: all is sealed, or there was nothing to seal. 1: not all, and why.
    """
    owner = directory.path.stat().st_uid
    if os.geteuid() != owner:
        raise click.ClickException(
            f"{directory.path} belongs to the user {owner}, and this is user {os.geteuid()}. Run it as its owner, or "
            "the daemon could not remove what it writes when that is too old."
        )
    try:
        import pyarrow as pa  # noqa: PLC0415  # takes long, and only this command needs it

        from offsetd.history import seal as work  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(
            f"history cannot be sealed without pyarrow and numpy ({error}). Install them beside offsetd."
        ) from error
    step_back()
    pa.set_cpu_count(1)
    started, done = time.monotonic(), work.Done()
    try:
        work.seal(directory, identity, done=done, on_published=_say_published)
    except (*work.REFUSALS, work.SealedByAnother) as refused:
        _say_done(done, time.monotonic() - started)
        raise click.ClickException(str(refused)) from refused
    except OSError:
        _say_done(done, time.monotonic() - started)
        raise
    _say_done(done, time.monotonic() - started)
    return 0


def _say_published(file: SealedFile, records: int) -> None:
    _say(f"sealed {file.day} {_batches(file.first_number, file.last_number)}: ", end="")
    _say(f"{_counted(records, 'record')}, {in_bytes(file.size_bytes)}")


def _say_done(done: "Done", seconds: float) -> None:
    if not done.files and not done.segments:
        _say("Nothing was sealed.")
        return
    _say(
        f"{_counted(done.segments, 'segment')} of {in_bytes(done.segment_bytes)} became "
        f"{_counted(done.files, 'file')} of {in_bytes(done.bytes)} with {_counted(done.records, 'record')}, "
        f"in {in_seconds(seconds)}."
    )


@command.command(name="list")
@_on_history
def show(directory: BrokerDirectory, identity: Identity) -> int:
    """Show what history holds, day by day, and what is not sealed yet. Changes nothing, beside a daemon or without one.

    Exit code 0, also where batches are missing between others: these are named.
    """
    # In this order, because what is sealed meanwhile then shows twice and not never.
    segments = list_history(directory.history)
    files = list_sealed(directory.sealed)
    _say(f"{directory.history.parent}: cluster {identity.cluster_id}")
    if not files and not segments:
        _say("There is no history.")
        return 0
    for day, found in groupby(files, key=lambda file: file.day):
        _say(f"  {day}  {_day_words(list(found))}")
    if segments:
        number = sealed_through(files, _first(segments[0])) + 1
        taken = in_bytes(sum(segment.size_bytes for segment in segments))
        _say(f"  not sealed  from batch {number} on, {_counted(len(segments), 'segment')}, {taken}")
    for first, last in _gaps(files, segments):
        _say(f"  missing     {_batches(first, last)}")
    return 0


def _day_words(files: Sequence[SealedFile]) -> str:
    taken = in_bytes(sum(file.size_bytes for file in files))
    return f"{_batches(files[0].first_number, files[-1].last_number)}, {_counted(len(files), 'file')}, {taken}"


def _gaps(files: Sequence[SealedFile], segments: Sequence[HistorySegment]) -> Iterator[tuple[int, int]]:
    """Yield the batches that are missing between others, up to the first segment: no name says where that ends."""
    number = files[0].first_number - 1 if files else 0
    for file in files:
        if file.first_number > number + 1:
            yield number + 1, file.first_number - 1
        number = max(number, file.last_number)
    if files and segments and _first(segments[0]) > number + 1:
        yield number + 1, _first(segments[0]) - 1


def _first(segment: HistorySegment) -> int:
    number = segment_number(segment.path.name)
    assert number is not None, "only segments are listed"
    return number


def _batches(first: int, last: int) -> str:
    return f"batch {first}" if first == last else f"batches {first} to {last}"


def _counted(number: int, one: str) -> str:
    return f"{number} {one if number == 1 else one + 's'}"


def _say(text: str, *, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()
