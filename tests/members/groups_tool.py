"""Kafka's own `kafka-consumer-groups.sh`: run as a command, its tables read as an operator reads them."""

import subprocess
from dataclasses import dataclass

import pytest

from tests.clients.process import WAIT_SECONDS
from tests.fakes.daemon import Daemon
from tests.members.toolchains import GROUPS_TOOL, ToolchainMissing, command


@dataclass(frozen=True, slots=True)
class Printed:
    """What a run of the tool printed."""

    text: str
    code: int

    def rows(self) -> list[dict[str, str]]:
        """Return all lines of all tables, by the heads of their columns; no cell may be empty."""
        found = []
        heads: list[str] = []
        for line in self.text.splitlines():
            # Two words in one head, and two words in what stands below it.
            words = line.replace("COORDINATOR (ID)", "COORDINATOR NODE").split()
            if words and words[0] in {"GROUP", "TOPIC"}:
                heads = words
            elif heads and len(words) == len(heads):
                found.append(dict(zip(heads, words, strict=True)))
        return found

    def table(self, *heads: str) -> list[tuple[str, ...]]:
        """Return some columns of all lines, in order of their values."""
        return sorted(tuple(row[head] for head in heads) for row in self.rows())


def groups_tool(daemon: Daemon, *arguments: str) -> Printed:
    """Run the tool; where it cannot be had, the test is skipped."""
    try:
        words = command(GROUPS_TOOL)
    except ToolchainMissing as reason:
        pytest.skip(f"no {GROUPS_TOOL}: {reason}")
    done = subprocess.run(
        [*words, "--bootstrap-server", daemon.address, *arguments],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    # What it logs is lost without a logger, and it says so at length.
    said = [line for line in done.stderr.splitlines() if not line.startswith("SLF4J")]
    return Printed(done.stdout + "\n".join(said), done.returncode)
