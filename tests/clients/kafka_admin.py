"""kafka-python's command line for administrators."""

import json
import subprocess
import sys
from typing import Any

from tests.clients.process import WAIT_SECONDS
from tests.fakes.daemon import Daemon


def kafka_admin(daemon: Daemon, *arguments: str) -> Any:
    """Run it and return what it prints."""
    code, text = run_kafka_admin(daemon, *arguments)
    assert code == 0, text
    return json.loads(text)


def run_kafka_admin(daemon: Daemon, *arguments: str) -> tuple[int, str]:
    """Run it; return its exit code, and what it prints if that is 0, or else all that it says."""
    command = [sys.executable, "-m", "kafka.admin", "-b", daemon.address, "--format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")
