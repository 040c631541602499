"""A whole bench: fresh servers in a temporary directory, every cell, restarts and memory, and away with all of it."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from offsetd.bench import kafka
from offsetd.bench.cell import CELLS, Cell, generate, run_cells
from offsetd.bench.large import COMMITS, LIVE_OFFSETS, run_large
from offsetd.bench.members import run_members
from offsetd.bench.replay import run_replay
from offsetd.bench.report import Report
from offsetd.bench.server import DaemonProcess, Server

_JVM_WARMUP_SECONDS: Final = 20.0
_REPLAY_OFFSETS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure."""

    rounds: int = 3
    seconds: float = 2.0
    warmup: float = 0.5
    replay_offsets: int = _REPLAY_OFFSETS
    replay_starts: int = 3
    large: bool = False
    # Where Kafka's jars are, when it takes part.
    peers: Path | None = None

    @classmethod
    def quick(cls) -> "Plan":
        """Return a plan of less than a minute, to see that all works; its figures are rough."""
        return cls(rounds=1, seconds=1.0, warmup=0.3, replay_offsets=100_000, replay_starts=1)


def run(plan: Plan, told: Callable[[str], None]) -> Report:
    """Measure."""
    report = Report(rounds=plan.rounds, seconds=plan.seconds)
    with tempfile.TemporaryDirectory(prefix="offsetd-bench-") as name:
        directory = Path(name)
        with ExitStack() as stack:
            daemon = DaemonProcess(directory / "data")
            stack.callback(daemon.kill)
            daemon.wait_for("slots_loaded", 30.0)
            servers: list[Server] = [daemon]
            if plan.peers is not None:
                for sync in (False, True):
                    peer = kafka.KafkaProcess(plan.peers, directory / f"kafka-{sync}", sync=sync)
                    stack.callback(peer.kill)
                    _warm_up(peer, told)
                    servers.append(peer)
            report.runs = run_cells(
                servers, CELLS, rounds=plan.rounds, seconds=plan.seconds, warmup=plan.warmup, told=told
            )
            daemon.stop()
        report.replay = run_replay(directory, offsets=plan.replay_offsets, starts=plan.replay_starts, told=told)
        report.members = run_members(directory, told=told)
        if plan.large:
            report.large = run_large(directory, live=LIVE_OFFSETS, commits=COMMITS, told=told)
    return report


def _warm_up(peer: Server, told: Callable[[str], None]) -> None:
    """Give a JVM the time to compile what will be measured."""
    for cell in (Cell(operation, partitions, 50) for operation in ("commit", "fetch") for partitions in (1, 10, 100)):
        told(f"warming {peer.name} up: {cell.label}")
        generate(peer, **cell._asdict(), warmup=_JVM_WARMUP_SECONDS, seconds=0.1)
