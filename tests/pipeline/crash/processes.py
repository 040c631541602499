"""Processes of others as /proc shows them: children, what they run, which files they write, which lock they want."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Generous, because a JVM on a busy machine takes its time; what hangs is still noticed.
WAIT_SECONDS: Final = 240.0
_POLL_SECONDS: Final = 0.005


def wait_until(condition: Callable[[], bool], what: str, describe: Callable[[], str] = str) -> None:
    """Wait for something that other processes are to bring about.

    Args:
        what: is said when it did not come about, with what `describe` returns.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {WAIT_SECONDS:.0f} s in vain for {what}\n{describe()}"
        time.sleep(_POLL_SECONDS)


def children(parent: int, program: str) -> list[int]:
    """Return the living children of a process whose command line names a program."""
    found = []
    for pid in _pids():
        with suppress(OSError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
            if int(fields[1]) == parent and fields[0] not in "ZX" and program in command:
                found.append(pid)
    return sorted(found)


def writes_below(pid: int, directory: Path) -> list[Path]:
    """Return the files below a directory that a process holds open and has already written something to."""
    found = []
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                path = descriptor.readlink()
                if path.is_relative_to(directory) and path.stat().st_size > 0:
                    found.append(path)
    return found


def waits_for_a_lock(pid: int) -> bool:
    """Return whether a process waits for a file lock that another one holds."""
    lines = Path("/proc/locks").read_text().splitlines()
    # "7: -> FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF": the arrow is for those that wait.
    return any(words[1] == "->" and words[5] == str(pid) for words in map(str.split, lines) if len(words) > 5)


def kill(pid: int) -> None:
    """End a process with kill -9."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    """End a process and all that it has started in its own session, also when it has itself ended before."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
