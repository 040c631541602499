"""A real daemon in a process of its own: started on free ports, stopped, killed and started again on the same data."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

#: Generous, because nothing may fail for want of speed; a daemon that hangs is still noticed.
WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.005
_HOST = "127.0.0.1"


class DaemonEnded(AssertionError):
    """The daemon ended where a test needed it alive."""

    def __init__(self, code: int | None, log: str) -> None:
        super().__init__(f"the daemon ended with {code}; the end of its log:\n{log[-4000:]}")
        self.code = code


class Daemon:
    """One `offsetd serve` over one data directory, through any number of lives."""

    def __init__(self, directory: Path, settings: Mapping[str, object] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log_path = directory / "daemon.log"
        self.settings: dict[str, object] = {"disk.reserve.bytes": 0, **(settings or {})}
        self.failpoints = ""
        self.port = 0
        self.http_port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    # --- lives ------------------------------------------------------------------------------------------------------

    def start(self, *, ready: bool = True, listen: str = f"{_HOST}:0") -> "Daemon":
        """Start a life and wait until it listens, and, if asked for, until it serves every group."""
        self.launch(listen=listen)
        started = self.wait_for_event("broker_started")
        self.port = int(str(started["listen"]).rpartition(":")[2])
        self.http_port = int(started["http_port"])
        if ready:
            self.wait_until(lambda: self.readiness()[0] == 200)
        return self

    def launch(self, *, listen: str = f"{_HOST}:0") -> "subprocess.Popen[bytes]":
        """Start the process and wait for nothing."""
        assert self.process is None or self.process.poll() is not None, "it still runs"
        self.directory.mkdir(parents=True, exist_ok=True)
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        command = [sys.executable, "-m", "offsetd", "serve", "--data", str(self.data)]
        command += ["--listen", listen, "--http", f"{_HOST}:0"]
        with self.log_path.open("ab") as log:
            # A session of its own, so that cleaning up reaches the helpers too, whatever became of their parent.
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )
        return self.process

    def _environment(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OFFSETD_")}
        environment["OFFSETD_LOG_FORMAT"] = "json"
        # A coverage or development mode of the tests' own interpreter would only make the daemon slower.
        environment.pop("PYTHONDEVMODE", None)
        for name, value in self.settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            environment["OFFSETD_" + name.replace(".", "_").upper()] = text
        if self.failpoints:
            environment["OFFSETD_FAILPOINTS"] = self.failpoints
        return environment

    def terminate(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it with kill -9, as a test of its promises does."""
        assert self.process is not None, "never started"
        self.process.kill()
        self.process.wait(WAIT_SECONDS)

    def restart(self, *, ready: bool = True) -> "Daemon":
        """Kill it if it runs, and start it on the same data."""
        if self.alive:
            self.kill()
        return self.start(ready=ready)

    def wait(self) -> int:
        """Wait for its end and return the exit code."""
        assert self.process is not None, "never started"
        return self.process.wait(WAIT_SECONDS)

    def signal(self, number: int) -> None:
        """Send a signal to the daemon alone."""
        assert self.process is not None, "never started"
        self.process.send_signal(number)

    def clean_up(self) -> None:
        """Leave no process behind, whatever happened."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT_SECONDS)

    # --- what it says -----------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"{_HOST}:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def log_text(self) -> str:
        """Return what this life has written."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace")

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return the events of this life, or those of one name."""
        found = []
        for line in self.log_text().splitlines():
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and name in (None, event.get("event")):
                    found.append(event)
        return found

    def wait_for_event(self, name: str) -> dict[str, Any]:
        """Wait until this life has logged an event, and return the first."""
        self.wait_until(lambda: bool(self.events(name)))
        return self.events(name)[0]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that this life is to bring about."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            if not self.alive:
                if condition():
                    return
                raise DaemonEnded(None if self.process is None else self.process.returncode, self.log_text())
            assert time.monotonic() < deadline, f"waited in vain; the end of its log:\n{self.log_text()[-4000:]}"
            time.sleep(_POLL_SECONDS)

    def get(self, path: str) -> tuple[int, bytes]:
        """Ask the HTTP port."""
        connection = http.client.HTTPConnection(_HOST, self.http_port, timeout=WAIT_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def readiness(self) -> tuple[int, dict[str, Any]]:
        """Return the status and the facts of /readyz."""
        status, body = self.get("/readyz")
        facts: dict[str, Any] = json.loads(body)
        return status, facts

    def metric(self, name: str) -> float:
        """Return the sum of a metric over its labels; 0 if it has no series."""
        total = 0.0
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith((name + " ", name + "{")):
                total += float(line.rpartition(" ")[2])
        return total

    # --- what it uses -----------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process is not None, "never started"
        return self.process.pid

    def memory_bytes(self) -> int:
        """Return its resident memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self) -> int:
        """Return how many files and sockets it holds open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


@contextmanager
def running(directory: Path, settings: Mapping[str, object] | None = None, *, failpoints: str = "") -> Iterator[Daemon]:
    """Run a daemon for the length of a block; no process outlives it."""
    daemon = Daemon(directory, settings)
    daemon.failpoints = failpoints
    try:
        yield daemon.start()
    finally:
        daemon.clean_up()
