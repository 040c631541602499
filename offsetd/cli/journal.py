"""``offsetd journal verify|dump|repair``: look into a data directory, and mend it if told to."""

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Concatenate, ParamSpec

import click

from offsetd.cli.findings import loss_lines, plan_lines, verification_lines
from offsetd.cli.options import with_data
from offsetd.journal.checkpoint import CheckpointRefused
from offsetd.journal.directory import (
    BrokerDirectory,
    DirectoryLock,
    DirectoryRefused,
    Identity,
    broker_directory,
    open_directory,
    read_identity,
)
from offsetd.journal.dump import Line, Wanted, dump_checkpoint, dump_segment
from offsetd.journal.examine import JournalRefused
from offsetd.journal.history import list_history
from offsetd.journal.loss import measure_loss
from offsetd.journal.plan import RepairRefused, make_plan
from offsetd.journal.planned import PlannedFiles
from offsetd.journal.repair import repair as carry_out
from offsetd.journal.segment import Damage, NewerFormat
from offsetd.journal.survey import list_names
from offsetd.journal.verify import verify as look
from offsetd.journal.view import viewed
from offsetd.logs import configure_logs
from offsetd.record import UnknownEntry
from offsetd.settings import Settings

P = ParamSpec("P")

#: What may be wrong with data, disk or command; anything else is a fault of ours and shows its traceback.
_REFUSALS = (DirectoryRefused, RepairRefused, JournalRefused, CheckpointRefused, UnknownEntry)


@click.group()
def command() -> None:
    """Verify, dump or repair a journal."""


def _on_data(function: Callable[Concatenate[Path, int, P], int]) -> Callable[P, None]:
    """Give a command the data directory and the broker's id; what it returns is the exit code."""

    @with_data
    @functools.wraps(function)
    def wrapped(settings: Settings, /, *args: P.args, **kwargs: P.kwargs) -> None:
        configure_logs(level="error", form="console")
        try:
            code = function(settings.data_dir, settings.broker_id, *args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever reads has seen enough; what is still in the buffer must not fail when the process ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except _REFUSALS as refused:
            raise click.ClickException(str(refused)) from refused
        except OSError as error:
            raise click.ClickException(f"{error.filename or settings.data_dir}: {error.strerror}") from error
        sys.exit(code)

    return wrapped


@contextmanager
def _at_rest(data: Path, broker_id: int) -> Iterator[tuple[Identity, BrokerDirectory]]:
    """Keep daemons out for the length of a block, and change nothing."""
    identity = read_identity(data, broker_id)
    directory = broker_directory(data, broker_id)
    lock = DirectoryLock(directory.lock)
    lock.share()
    try:
        yield identity, directory
    finally:
        lock.release()


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


@command.command()
@_on_data
def verify(data: Path, broker_id: int) -> int:
    """Read everything, change nothing, and say what a start would do.

    Exit code 0: all is whole (a torn tail, which a start cuts, is no damage). 1: damaged, or a start would be refused.
    Not while a daemon runs: a batch on its way to the disk cannot be told from a torn one.
    """
    with _at_rest(data, broker_id) as (identity, directory):
        done = look(directory, identity)
    _say(verification_lines(done, directory, identity))
    return 0 if done.whole else 1


@command.command()
@click.option("--execute", is_flag=True, help="Do it. Without this nothing is changed.")
@_on_data
def repair(data: Path, broker_id: int, *, execute: bool) -> int:
    """Show what would be lost by making a start possible again; do it with --execute.

    Everything that is cut goes into quarantine/ and is never deleted. Exit code 0: a daemon can be started. Not while
    one runs. Killed half-way, it is simply run again.
    """
    if execute:
        identity = read_identity(data, broker_id)
        owner = data.stat().st_uid
        if os.geteuid() != owner:
            raise click.ClickException(
                f"{data} belongs to the user {owner}, and this is user {os.geteuid()}. Run the repair as its owner, or "
                "the daemon could not use what it writes."
            )
        _, directory, lock = open_directory(
            data, broker_id=broker_id, slots=identity.slots, cluster_id=identity.cluster_id, random_bytes=os.urandom
        )
        try:
            return _repair(directory, identity, execute=True)
        finally:
            lock.release()
    with _at_rest(data, broker_id) as (identity, directory):
        return _repair(directory, identity, execute=False)


def _repair(directory: BrokerDirectory, identity: Identity, *, execute: bool) -> int:
    plan = make_plan(directory, identity)
    if not plan.needed:
        _say(["Nothing is to be repaired: a daemon can be started."])
        return 0
    _say(plan_lines(plan))
    _say(loss_lines(measure_loss(directory, identity, plan)))
    if not execute:
        _say(["Nothing was changed. Copy the data directory if you can; `--execute` does what is said above."])
        return 1
    # Said before it is done, so that it stands on the screen should something fail.
    sys.stdout.flush()
    _say(f"done: {sentence}" for sentence in carry_out(directory, identity))
    _say(["A daemon can be started."])
    return 0


def _moment(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """Read a time as ISO 8601, in UTC unless it says otherwise, or as milliseconds since 1970."""
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reason = f"{text!r} is neither ISO 8601 (2026-01-31T14:05:00Z) nor milliseconds since 1970"
        raise click.BadParameter(reason) from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


@command.command()
@click.option("--history", is_flag=True, help="Also what compaction has released to history, first.")
@click.option("--checkpoint", is_flag=True, help="The live rows of the checkpoint instead; not while a daemon runs.")
@click.option("--group", help="Only this group.")
@click.option("--topic", help="Only this topic, and removals of whole groups.")
@click.option(
    "--since", callback=_moment, metavar="TIME", help="Only from this time on: ISO 8601 (UTC if not said), or ms."
)
@click.option("--until", callback=_moment, metavar="TIME", help="Only before this time.")
@_on_data
def dump(
    data: Path,
    broker_id: int,
    *,
    history: bool,
    checkpoint: bool,
    group: str | None,
    topic: str | None,
    since: int | None,
    until: int | None,
) -> int:
    """Print entries as JSON, one per line, oldest first. Changes nothing, and may run beside a daemon.

    Exit code 1: something could not be read; it is named on standard error, and what can be read is printed.
    """
    wanted = Wanted(group=group, topic=topic, since_ms=since, until_ms=until)
    if checkpoint:
        with (
            _at_rest(data, broker_id) as (identity, directory),
            viewed(directory.checkpoint, cluster_id=identity.cluster_id) as opened,
        ):
            _say(map(_json, dump_checkpoint(opened, identity.slots, wanted)))
        return 0
    read_identity(data, broker_id)
    directory = broker_directory(data, broker_id)
    released = [segment.path for segment in list_history(directory.history)] if history else []
    journal = [directory.journal / listed.name for listed, _ in list_names(PlannedFiles(), directory.journal)]
    unread = 0
    for path in released + journal:
        complaint = _dump(path, directory, wanted)
        if complaint is not None and not (path == journal[-1] and _runs(directory)):
            click.echo(f"offsetd: {complaint}", err=True)
            unread += 1
    return 1 if unread else 0


def _dump(path: Path, directory: BrokerDirectory, wanted: Wanted) -> str | None:
    """Print the entries of one segment; return what kept it from being read to its end."""
    for place in (path, directory.history / path.name):
        try:
            _say(map(_json, dump_segment(place, wanted)))
        except FileNotFoundError:
            continue  # compaction has taken it away since it was listed
        except Damage as damage:
            return f"{damage}. What stands behind it is not shown; `offsetd journal verify` tells more."
        except NewerFormat as newer:
            return str(newer)
        return None
    return f"{path} was compacted away or sealed meanwhile."


def _runs(directory: BrokerDirectory) -> bool:
    """Return whether a daemon is at work, so that the journal's end may be on its way to the disk."""
    lock = DirectoryLock(directory.lock)
    try:
        lock.share()
    except DirectoryRefused:
        return True
    lock.release()
    return False


def _json(line: Line) -> str:
    # ASCII only, which escapes whatever could forge a line or move a cursor, but for the one that JSON lets through.
    return json.dumps(line).replace("\x7f", "\\u007f")
