"""How fast a restart is and what an offset costs in memory: seed live offsets, start again, look."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from offsetd.bench.cell import generate
from offsetd.bench.server import DaemonProcess
from offsetd.bench.usage import resident_bytes

#: Offsets per group, all of one topic: the mix of groups decides what an offset costs, so it is said with the figure.
GROUP_PARTITIONS: Final = 10
_LOAD_SECONDS_MAX: Final = 300.0
_COMPACTION_SECONDS_MAX: Final = 300.0
#: Seals the segment at the next batch and folds it at once.
COMPACT_NOW: Final = {
    "log.roll.ms": "1",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.cleaner.max.compaction.lag.ms": "1",
    "log.cleaner.backoff.ms": "100",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One start of the daemon over seeded data."""

    source: str
    offsets: int
    took_ms: int
    resident_bytes: int

    @property
    def offsets_per_second(self) -> float:
        """Return the rate of the load."""
        return self.offsets / self.took_ms * 1000 if self.took_ms else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What restarts and memory cost."""

    offsets: int
    partitions_per_topic: int
    topics_per_group: int
    resident_empty_bytes: int
    # After the offsets were committed: their rows, and what was remembered of the requests.
    resident_committed_bytes: int
    loads: list[Load]

    def bytes_per_offset(self, resident: int) -> float:
        """Return what the offsets added to the daemon's memory, per offset."""
        return (resident - self.resident_empty_bytes) / self.offsets


def run_replay(directory: Path, *, offsets: int, starts: int, told: Callable[[str], None]) -> Replay:
    """Seed, then start from the journal and, after a compaction, from the checkpoint; each so many times."""
    data = directory / "replay"
    daemon = DaemonProcess(data)
    try:
        daemon.wait_for("slots_loaded", _LOAD_SECONDS_MAX)
        empty = resident_bytes(daemon.pid)
        seeded = generate(daemon, operation="seed", groups=offsets // GROUP_PARTITIONS, connections=50, depth=4)
        told(f"seeded {offsets:,} offsets in {seeded.seed_seconds:.1f} s")
        committed = resident_bytes(daemon.pid)
        daemon.stop()
    finally:
        daemon.kill()
    loads = [_start(data, "journal", offsets, told) for _ in range(starts)]
    _compact(data)
    loads += [_start(data, "checkpoint", offsets, told) for _ in range(starts)]
    return Replay(
        offsets=offsets,
        partitions_per_topic=GROUP_PARTITIONS,
        topics_per_group=1,
        resident_empty_bytes=empty,
        resident_committed_bytes=committed,
        loads=loads,
    )


def _start(data: Path, source: str, offsets: int, told: Callable[[str], None]) -> Load:
    daemon = DaemonProcess(data)
    try:
        line = daemon.wait_for("slots_loaded", _LOAD_SECONDS_MAX)
        resident = resident_bytes(daemon.pid)
        assert line["offsets"] == offsets, f"{line['offsets']} of {offsets} offsets came back"
        daemon.stop()
    finally:
        daemon.kill()
    load = Load(source=source, offsets=offsets, took_ms=line["took_ms"], resident_bytes=resident)
    told(f"loaded {offsets:,} offsets from the {source}: {load.took_ms} ms, {load.offsets_per_second:,.0f}/s")
    return load


def _compact(data: Path) -> None:
    daemon = DaemonProcess(data, COMPACT_NOW)
    try:
        daemon.wait_for("slots_loaded", _LOAD_SECONDS_MAX)
        # A segment is sealed by the batch that comes after it.
        generate(daemon, operation="commit", groups=100, connections=10, seconds=0.2, warmup=0.0)
        daemon.wait_for("compaction_done", _COMPACTION_SECONDS_MAX)
        daemon.stop()
    finally:
        daemon.kill()
