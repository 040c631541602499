"""A worker: a process of low priority that the daemon starts for long work, and that ends when the daemon does.

Both ends of it. What the work is, and when it is due, is said by those who use it. A worker must be safe to kill.
"""

import asyncio
import ctypes
import os
import platform
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

_NICE: Final = 10
_PR_SET_PDEATHSIG: Final = 1
_IOPRIO_SET: Final = {"x86_64": 251, "aarch64": 30}
_IOPRIO_WHO_PROCESS: Final = 1
_IOPRIO_IDLE: Final = 3 << 13
_ORPHANED: Final = 3
_SAID_BYTES_MAX: Final = 4096


# --- the daemon's end -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended: its exit code (None if it could not be started), what it said, and its complaints' end."""

    code: int | None
    said: bytes
    complaint: str


class Worker:
    """A process that is started once."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._ended = False

    async def run(self, module: str, arguments: Sequence[str]) -> Ended:
        """Run a module of ours to its end; a worker that was ended before it began ends at once."""
        command = [sys.executable, "-m", module, "--parent", str(os.getpid()), *arguments]
        pipe = asyncio.subprocess.PIPE
        try:
            # A session of its own: a terminal's Ctrl-C is for the daemon, which would take its end for a failure.
            process = self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            return Ended(None, b"", f"it could not be started: {error}")
        assert process.stdin is not None, "asked for above"
        assert process.stdout is not None, "asked for above"
        assert process.stderr is not None, "asked for above"
        if self._ended:
            process.kill()
        # Not communicate(): it would close stdin, which the worker takes for our end.
        said, complaint = await asyncio.gather(process.stdout.read(), process.stderr.read())
        code = await process.wait()
        process.stdin.close()
        return Ended(code, said, complaint.decode("utf-8", "replace").strip()[-_SAID_BYTES_MAX:])

    def end(self) -> None:
        """End it, now or as soon as it has begun."""
        self._ended = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()


# --- the worker's own end ---------------------------------------------------------------------------------------------


def end_with_parent(parent: int) -> None:
    """Leave when this process, which must be our parent, does, or when it closes our stdin."""
    # A terminal's Ctrl-C reaches the whole process group; when to stop is the daemon's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(_ORPHANED)
    # Beside the signal, which not every system has: the parent holds the other end of stdin.
    threading.Thread(target=_watch_stdin, name="parent", daemon=True).start()


def _watch_stdin() -> None:
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    os._exit(_ORPHANED)


def step_back() -> None:
    """Leave the processor and the disk to the daemon, as far as the system lets us."""
    with suppress(OSError):
        os.nice(_NICE)
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_PROCESS, 0, _IOPRIO_IDLE)
