"""The processes that a daemon has started, found by what they run; a test stops, continues and kills them."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.fakes.daemon import WAIT_SECONDS, Daemon

SYNC_HELPER = "sync_helper.py"
COMPACTOR = "offsetd.journal.compactor"


def child(daemon: Daemon, program: str) -> int:
    """Wait for the daemon to have a child that runs this program, and return its process id."""
    daemon.wait_until(lambda: _find(daemon.pid, program) is not None)
    found = _find(daemon.pid, program)
    assert found is not None, f"{program} has ended again"
    return found


def state(pid: int) -> str:
    """Return the letter of a process's state, X if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def wait_for_end(pid: int) -> None:
    """Wait until a process that is not our own child has ended."""
    _wait(pid, "XZ")


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Let a process do nothing for the length of a block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        _wait(pid, "T")
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _wait(pid: int, states: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while state(pid) not in states:
        assert time.monotonic() < deadline, f"process {pid} is {state(pid)}, want one of {states}"
        time.sleep(0.002)


def _find(parent: int, program: str) -> int | None:
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            with suppress(OSError, IndexError):
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
                words = (directory / "cmdline").read_bytes().decode().split("\0")
                if int(fields[1]) == parent and any(word.endswith(program) for word in words):
                    return int(directory.name)
    return None
