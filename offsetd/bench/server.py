"""Servers under test: what the bench knows of any of them, and a fresh offsetd on a free port."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

_START_SECONDS_MAX: Final = 30.0
_STOP_SECONDS_MAX: Final = 60.0
_LOOK_SECONDS: Final = 0.02


class ServerFailed(Exception):
    """A server did not start, or did not do what it was started for."""


class Server(Protocol):
    """What a load needs to know."""

    name: str
    # What an acknowledgement of a commit means with this server.
    promise: str

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""

    @property
    def pid(self) -> int:
        """Whose CPU is counted."""


class DaemonProcess:
    """offsetd as a user would start it, with its log in a file."""

    name = "offsetd"
    promise = "on disk (fdatasync)"

    def __init__(self, data: Path, settings: Mapping[str, str] | None = None) -> None:
        """Start it; settings are given by their dotted names."""
        data.mkdir(parents=True, exist_ok=True)
        self.data = data
        self._log = data.parent / f"{data.name}.log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OFFSETD_")}
        environment["OFFSETD_LOG_FORMAT"] = "json"
        for name, value in (settings or {}).items():
            environment["OFFSETD_" + name.upper().replace(".", "_")] = value
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                [
                    *(sys.executable, "-m", "offsetd", "serve", "--data", str(data)),
                    *("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        try:
            self._port = int(self.wait_for("broker_started", _START_SECONDS_MAX)["listen"].rpartition(":")[2])
        except ServerFailed:
            self.kill()
            raise

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return self._port

    @property
    def pid(self) -> int:
        """Return the daemon's process id."""
        return self._process.pid

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the log so far, line by line."""
        for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("{"):
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    continue  # the last line is still being written

    def wait_for(self, event: str, seconds_max: float) -> dict[str, Any]:
        """Return the newest log line of an event, as soon as there is one."""
        until = time.monotonic() + seconds_max
        while time.monotonic() < until:
            found = [line for line in self.events() if line.get("event") == event]
            if found:
                return found[-1]
            if self._process.poll() is not None:
                tail = self._log.read_text(encoding="utf-8", errors="replace")[-500:]
                raise ServerFailed(f"offsetd ended with {self._process.returncode}: {tail}")
            time.sleep(_LOOK_SECONDS)
        raise ServerFailed(f"offsetd did not say {event} within {seconds_max:.0f} s")

    def stop(self) -> None:
        """Stop it as an operator would."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed("offsetd did not stop when told to") from None
        if code:
            raise ServerFailed(f"offsetd stopped with exit code {code}")

    def kill(self) -> None:
        """Stop it at once, whatever it does; nothing if it has ended."""
        self._process.kill()
        self._process.wait()
