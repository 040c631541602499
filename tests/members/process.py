"""The outside of a member: a real Kafka client that has subscribed, in a process of its own."""

import json
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.clients.process import Place, ProgramProcess

KAFKA_PYTHON, AIOKAFKA, CONFLUENT = PYTHON_LIBRARIES = ("kafka_python", "aiokafka", "confluent")
#: Long enough that nobody is missed because the machine is busy; heartbeats bring news of a rebalance soon.
SESSION_MS: Final = 20_000
HEARTBEAT_MS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a member is started with, in the words of no library."""

    group: str
    topics: Sequence[str]
    client_id: str
    instance: str | None = None
    #: The group protocol: `consumer` is the newer one (KIP-848), of those libraries that have it.
    protocol: str = "classic"
    assignor: str = "range"
    session_ms: int = SESSION_MS
    heartbeat_ms: int = HEARTBEAT_MS


@dataclass(frozen=True, slots=True)
class Look:
    """How a member is, by its own word."""

    owned: frozenset[Place]
    #: How often it was assigned partitions.
    assignments: int
    #: What ended it, if anything did.
    error: str | None


def python_command(library: str) -> list[str]:
    """Return the command of a library in the tests' own environment."""
    return [sys.executable, "-m", f"tests.members.programs.{library}_member"]


class MemberProcess(ProgramProcess):
    """One member of one group; it subscribes as soon as it is there."""

    def __init__(self, library: str, command: Sequence[str], address: str, options: Options, log_path: Path) -> None:
        super().__init__(library, [*command, address, json.dumps(asdict(options))], log_path)
        self.options = options
        self.has_ended = False

    def look(self) -> Look:
        """Ask it how it is."""
        found = self.call("look")
        owned = [(topic, partition) for topic, partition in found["owned"]]
        assert len(owned) == len(set(owned)), found
        return Look(frozenset(owned), found["assignments"], found["error"])

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit as a member."""
        self.call("commit", [(topic, partition, offset) for (topic, partition), offset in offsets.items()])

    def committed(self, places: Iterable[Place]) -> dict[Place, int | None]:
        """Read offsets as a consumer does."""
        return {(topic, partition): offset for topic, partition, offset in self.call("committed", list(places))}

    def leave(self) -> None:
        """Close the consumer and end the process."""
        assert self.close() == 0, f"{self.name} did not leave in order; its log:\n{self.log_text()}"
        self.has_ended = True

    def crash(self) -> None:
        """End it with kill -9: nobody hears of it."""
        self._process.kill()
        self._process.wait()
        self.has_ended = True

    def sleep(self) -> None:
        """Stop the whole process, as a long pause of a machine does."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)
