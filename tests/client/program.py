"""A program of a user of the client, in an interpreter of its own that makes an error of every warning."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.fakes.daemon import WAIT_SECONDS

ROOT: Final = Path(__file__).parents[2]
#: In development mode asyncio also logs every callback that took 0.1 s, which says how busy the machine is and no more.
#: What it has to say of tasks and exceptions that were left behind, it logs as errors.
_HEAD: Final = 'import logging\nlogging.getLogger("asyncio").setLevel(logging.ERROR)\ndel logging\n'


def run_program(program: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", _HEAD + program],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
