"""How a load can end other than well: what is raised, and the exit code that scripts read."""

from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """What `offsetd pipeline load` ends with."""

    DONE = 0
    """Loaded and committed, or there was nothing to load."""
    FAILED = 1
    """Something else went wrong; nothing was published by this run."""
    USAGE = 2
    """The command line does not make sense."""
    MOVED = 3
    """Somebody moved the group: choose `--accept` or `--repair`."""
    GONE = 4
    """The log no longer holds what the load should go on with."""
    FENCED = 5
    """Another loader published first."""
    NOT_COMMITTED = 6
    """Published, and offsetd could not be told; the next run tells it."""
    NOT_VERIFIED = 7
    """What was written is not what was planned."""


class LoadRefused(Exception):
    """A load that stops here, with words for people: what was wrong, where, and what to do."""

    code = Exit.FAILED

    def __init__(self, sentence: str, details: Sequence[str] = ()) -> None:
        super().__init__("\n  ".join((sentence, *details)))
        self.sentence = sentence
        self.details = tuple(details)


class BadRequest(LoadRefused):
    """What was asked for contradicts itself, or the table."""

    code = Exit.USAGE


class GroupMoved(LoadRefused):
    """The group's offsets are neither ours nor where the table ends."""

    code = Exit.MOVED


class RecordsGone(LoadRefused):
    """The log begins behind the position, or ends before it."""

    code = Exit.GONE


class Outrun(LoadRefused):
    """Another loader has published meanwhile."""

    code = Exit.FENCED


class NotCommitted(LoadRefused):
    """The load stands in the table, and offsetd does not know it yet."""

    code = Exit.NOT_COMMITTED


class NotVerified(LoadRefused):
    """The files do not hold what the plan says."""

    code = Exit.NOT_VERIFIED
