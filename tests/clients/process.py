"""The outside of a client process: a real Kafka client that a test asks to do things, one call at a time."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

#: Generous, because nothing may fail for want of speed; a client that hangs is still noticed.
WAIT_SECONDS: Final = 60.0
KAFKA_PYTHON, AIOKAFKA, CONFLUENT = CLIENTS = ("kafka_python", "aiokafka", "confluent")
#: What libraries log of themselves: kafka-python when it is closed in the middle of asking for metadata.
_OWN_WORDS: Final = ("ERROR kafka.cluster Metadata refresh: failed Cancelled",)
_ROOT: Final = Path(__file__).parents[2]

Place = tuple[str, int]
#: Offset and metadata.
Held = tuple[int, str]


class ClientRefused(Exception):
    """The library raised an error; its class and words."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What a while of polling brought."""

    records: int
    errors: list[str]
    seconds: float


class ProgramProcess:
    """A program that is called by lines. `send` and `receive` are separate, so that a test can look in between."""

    def __init__(self, name: str, command: Sequence[str], log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        # The tests' development mode would only make the library's own warnings look like ours.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDEVMODE"}
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=_ROOT,
                env=environment,
            )

    # --- calls ------------------------------------------------------------------------------------------------------

    def send(self, method: str, *arguments: object) -> None:
        """Ask for something without waiting for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, arguments]).encode() + b"\n")
        self._process.stdin.flush()

    def has_answered(self, wait_seconds: float = 0.0) -> bool:
        """Tell whether the answer has come, or the process has ended."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], wait_seconds)[0])

    def receive(self) -> Any:
        """Wait for the answer.

        Raises:
            ClientRefused: the library raised an error.
        """
        assert self._process.stdout is not None
        assert self.has_answered(WAIT_SECONDS), f"{self.name} hangs; its log:\n{self.log_text()}"
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait(WAIT_SECONDS)
            raise AssertionError(f"{self.name} ended with {code}; its log:\n{self.log_text()}")
        answer = json.loads(line)
        if "error" in answer:
            raise ClientRefused(answer["error"])
        return answer["result"]

    def call(self, method: str, *arguments: object) -> Any:
        """Ask for something and wait for it."""
        self.send(method, *arguments)
        return self.receive()

    # --- its end ----------------------------------------------------------------------------------------------------

    def close(self) -> int:
        """Let it leave in order and return its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(WAIT_SECONDS)

    def clean_up(self) -> None:
        """Leave no process and no pipe behind, whatever happened."""
        self._process.kill()
        self._process.wait(WAIT_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def log_text(self) -> str:
        """Return what the library has warned of."""
        return self.log_path.read_text(errors="replace")


class ClientProcess(ProgramProcess):
    """One client library against one address."""

    def __init__(self, name: str, address: str, log_path: Path) -> None:
        super().__init__(name, [sys.executable, "-m", f"tests.clients.{name}_program", address], log_path)

    def commit(self, group: str, offsets: Mapping[Place, int | Held]) -> None:
        """Assign partitions and commit their offsets, with metadata or without."""
        self.call("commit", group, _rows(offsets))

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, int | None]:
        """Read offsets as a consumer does."""
        return {(topic, partition): offset for topic, partition, offset in self.call("committed", group, list(places))}

    def group_offsets(self, asked: Mapping[str, Iterable[Place] | None]) -> dict[str, dict[Place, Held]]:
        """Read the offsets of groups as an administrator does; of all topics where none are named."""
        answer = self.call(
            "group_offsets", {group: None if places is None else list(places) for group, places in asked.items()}
        )
        return {
            group: {(topic, partition): (offset, metadata) for topic, partition, offset, metadata in rows}
            for group, rows in answer.items()
        }

    def alter(self, group: str, offsets: Mapping[Place, int | Held]) -> None:
        """Set offsets as an administrator does."""
        self.call("alter", group, _rows(offsets))

    def poll(self, group: str, places: Iterable[Place], seconds: float) -> Polled:
        """Assign partitions and poll them for a while."""
        return Polled(**self.call("poll", group, list(places), seconds))

    def ends(self, group: str, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        """Ask for the first and the last offset of partitions of one topic."""
        rows = self.call("ends", group, list(places))
        return {(topic, partition): (first, last) for topic, partition, first, last in rows}

    def complaints(self) -> list[str]:
        """Return what the library has warned of and the daemon could be to blame for."""
        return [line for line in self.log_text().splitlines() if line not in _OWN_WORDS]


def _rows(offsets: Mapping[Place, int | Held]) -> list[tuple[str, int, int, str]]:
    held = {place: (found, "") if isinstance(found, int) else found for place, found in offsets.items()}
    return [(topic, partition, offset, metadata) for (topic, partition), (offset, metadata) in held.items()]
