"""A million live offsets after ten million commits: does the data directory shrink to what lives, and how quickly do
fetches answer while compaction folds?"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from offsetd.bench.cell import generate
from offsetd.bench.generator import Result
from offsetd.bench.replay import COMPACT_NOW, GROUP_PARTITIONS
from offsetd.bench.server import DaemonProcess
from offsetd.bench.usage import directory_bytes, resident_bytes

LIVE_OFFSETS: Final = 1_000_000
COMMITS: Final = 10_000_000
_SECONDS_MAX: Final = 3600.0
_PIECE_SECONDS: Final = 600.0
_QUIET_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    """What was seen."""

    live_offsets: int
    commits: int
    commit_seconds: float
    # The data directory when the last commit was acknowledged, and after compaction had nothing more to do.
    written_bytes: int
    peak_bytes: int
    journal_bytes: int
    checkpoint_bytes: int
    history_bytes: int
    total_bytes: int
    compactions: int
    fetch_during_compaction: Result
    fetch_idle: Result
    load_ms: int
    resident_bytes: int


def run_large(directory: Path, *, live: int, commits: int, told: Callable[[str], None]) -> Large:
    """Commit, compact, restart."""
    data = directory / "large"
    groups = live // GROUP_PARTITIONS
    daemon = DaemonProcess(data)
    try:
        daemon.wait_for("slots_loaded", _PIECE_SECONDS)
        done, peak, began = 0, 0, time.monotonic()
        while done < commits and time.monotonic() - began < _SECONDS_MAX:
            piece = generate(
                daemon,
                operation="commit",
                groups=groups,
                connections=50,
                depth=4,
                warmup=0,
                seconds=_PIECE_SECONDS,
                requests=min(commits - done, max(1, commits // 10)),
            )
            # Every piece begins with one seeding commit per group.
            done += piece.requests + groups
            peak = max(peak, directory_bytes(data))
            told(f"{done:,} commits, {piece.requests_per_second:,.0f}/s, {directory_bytes(data) / 1e6:,.0f} MB on disk")
        seconds = time.monotonic() - began
        written = directory_bytes(data)
        daemon.stop()
    finally:
        daemon.kill()
    # Started again with the orders to fold everything now: fetches are measured while it does.
    daemon = DaemonProcess(data, COMPACT_NOW)
    try:
        load = daemon.wait_for("slots_loaded", _PIECE_SECONDS)
        assert load["offsets"] == live, f"{load['offsets']} of {live} offsets came back"
        resident = resident_bytes(daemon.pid)
        during = generate(daemon, operation="fetch", groups=1000, connections=50, seconds=5, warmup=0)
        daemon.wait_for("compaction_done", _PIECE_SECONDS)
        compactions = _await_rest(daemon)
        idle = generate(daemon, operation="fetch", groups=1000, connections=50, seconds=5, warmup=0.5)
        _await_rest(daemon)
        daemon.stop()
    finally:
        daemon.kill()
    return Large(
        live_offsets=live,
        commits=done,
        commit_seconds=round(seconds, 1),
        written_bytes=written,
        peak_bytes=peak,
        journal_bytes=_part(data, "journal"),
        checkpoint_bytes=_part(data, "checkpoint"),
        history_bytes=_part(data, "history"),
        total_bytes=directory_bytes(data),
        compactions=compactions,
        fetch_during_compaction=during,
        fetch_idle=idle,
        load_ms=load["took_ms"],
        resident_bytes=resident,
    )


def _await_rest(daemon: DaemonProcess) -> int:
    """Wait until no compaction has ended for a while; return how many have."""
    seen, since = -1, time.monotonic()
    until = since + _PIECE_SECONDS
    while time.monotonic() < min(until, since + 5.0):
        count = sum(line.get("event") == "compaction_done" for line in daemon.events())
        if count != seen:
            seen, since = count, time.monotonic()
        time.sleep(0.2)
    return seen


def _part(data: Path, name: str) -> int:
    return sum(directory_bytes(path) for path in data.glob(f"broker-*/{name}"))
