"""A member in kcat, which is a command line: it is watched by what it prints, and cannot be told to commit."""

import re
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.clients.process import WAIT_SECONDS, Place
from tests.members.process import Look, Options

_REBALANCED: Final = re.compile(r"^% Group .* rebalanced \(memberid .*\): (assigned|revoked): ?(.*)$", re.MULTILINE)
_PLACE: Final = re.compile(r"([\w.-]+) \[(\d+)\]")
_FAILED: Final = re.compile(r"^% (?:ERROR|FATAL).*$", re.MULTILINE)


class KcatProcess:
    """One `kcat -G`."""

    def __init__(self, command: Sequence[str], address: str, options: Options, log_path: Path) -> None:
        self.name = "kcat"
        self.options = options
        self.has_ended = False
        self._log_path = log_path
        settings = {
            "client.id": options.client_id,
            "partition.assignment.strategy": options.assignor,
            "session.timeout.ms": options.session_ms,
            "heartbeat.interval.ms": options.heartbeat_ms,
            "fetch.wait.max.ms": 100,
        }
        if options.instance is not None:
            settings["group.instance.id"] = options.instance
        given = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "-b", address, *given, "-G", options.group, *options.topics],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def look(self) -> Look:
        """Read what it has printed."""
        text = self.log_text()
        assigned, owned = 0, frozenset[Place]()
        for kind, places in _REBALANCED.findall(text):
            owned = frozenset((topic, int(number)) for topic, number in _PLACE.findall(places))
            assigned += kind == "assigned"
            if kind == "revoked":
                owned = frozenset()
        failed = _FAILED.search(text)
        return Look(owned, assigned, None if failed is None else failed[0])

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Never: it commits what it has printed, and there is nothing to print."""
        raise NotImplementedError

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]:
        """Never: it does not say."""
        raise NotImplementedError

    def leave(self) -> None:
        """End it as a terminal does; it leaves its group first."""
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(WAIT_SECONDS) == 0, f"kcat did not leave in order; its log:\n{self.log_text()}"
        self.has_ended = True

    def crash(self) -> None:
        """End it with kill -9."""
        self._process.kill()
        self._process.wait()
        self.has_ended = True

    def sleep(self) -> None:
        """Stop the whole process."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def clean_up(self) -> None:
        """Leave no process behind, whatever happened."""
        self._process.kill()
        self._process.wait(WAIT_SECONDS)

    def log_text(self) -> str:
        """Return what it has printed."""
        return self._log_path.read_text(errors="replace")
