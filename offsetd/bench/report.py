"""What was measured, as a table for people and as JSON for machines. No figure is left out because it is ugly."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from offsetd import __version__
from offsetd.bench.cell import Runs, ratio
from offsetd.bench.generator import Result
from offsetd.bench.large import Large
from offsetd.bench.members import Members
from offsetd.bench.numbers import Spread
from offsetd.bench.replay import Replay

OURS = "offsetd"


@dataclass(slots=True)
class Report:
    """All of one bench."""

    rounds: int
    seconds: float
    runs: list[Runs] = field(default_factory=list)
    replay: Replay | None = None
    members: Members | None = None
    large: Large | None = None

    def peers(self) -> list[tuple[Runs, Runs]]:
        """Return every cell of ours beside each peer's."""
        ours = {runs.cell: runs for runs in self.runs if runs.server == OURS}
        return [(ours[runs.cell], runs) for runs in self.runs if runs.server != OURS and runs.cell in ours]


def machine() -> dict[str, Any]:
    """Return what was measured on."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "offsetd": __version__,
    }


def as_json(report: Report) -> dict[str, Any]:
    """Return everything, every round on its own."""
    replay = report.replay
    return {
        "machine": machine(),
        "rounds": report.rounds,
        "seconds": report.seconds,
        "runs": [
            {
                "server": runs.server,
                "acknowledged": runs.promise,
                **runs.cell._asdict(),
                "rounds": [asdict(result) for result in runs.results],
            }
            for runs in report.runs
        ],
        "ratios": [
            {
                "peer": theirs.server,
                **ours.cell._asdict(),
                "requests_per_second": asdict(ratio(ours, theirs, "requests_per_second")),
                "server_us": asdict(ratio(ours, theirs, "server_us")),
                "p99_ms": asdict(ratio(ours, theirs, "p99_ms")),
            }
            for ours, theirs in report.peers()
        ],
        "replay": None if replay is None else asdict(replay),
        "members": None if report.members is None else asdict(report.members),
        "large": None if report.large is None else asdict(report.large),
    }


def as_text(report: Report) -> str:
    """Return the tables."""
    facts = machine()
    lines = [
        f"offsetd {facts['offsetd']}, Python {facts['python']}, Linux {facts['kernel']}",
        f"{facts['cores']} cores: {facts['processor']}",
        f"{report.rounds} rounds of {report.seconds:g} s; median (lowest..highest)",
        "p: partitions per request, c: connections; CPU: of the server with its helper, per request",
        "",
    ]
    if report.runs:
        lines += _table(
            ["work", "server", "requests/s", "p50 ms", "p99 ms", "CPU us", "helper us", "generator us", "foreign"],
            [_row(runs) for runs in report.runs],
        )
        lines.append("")
        lines += [f"an acknowledged commit is, with {name}: {promise}" for name, promise in _promises(report.runs)]
    if report.peers():
        lines += ["", "offsetd / peer, in the same rounds:"]
        lines += _table(
            ["work", "peer", "requests/s", "CPU per request", "p99"],
            [
                [
                    ours.cell.label,
                    theirs.server,
                    *(_times(ratio(ours, theirs, figure)) for figure in ("requests_per_second", "server_us", "p99_ms")),
                ]
                for ours, theirs in report.peers()
            ],
        )
    if report.replay is not None:
        lines += ["", *_replay_lines(report.replay)]
    if report.members is not None:
        lines += ["", *_members_lines(report.members)]
    if report.large is not None:
        lines += ["", *_large_lines(report.large)]
    return "\n".join(lines)


def _row(runs: Runs) -> list[str]:
    rate = runs.spread("requests_per_second")
    return [
        runs.cell.label,
        runs.server,
        f"{rate.median:,.0f} ({rate.low:,.0f}..{rate.high:,.0f})",
        f"{runs.spread('p50_ms').median:.2f}",
        f"{runs.spread('p99_ms').median:.2f}",
        _plain(runs.spread("server_us")),
        f"{runs.spread('children_us').median:.1f}",
        f"{runs.spread('generator_us').median:.1f}",
        f"{runs.spread('foreign_cores').high:.2f}",
    ]


def _plain(spread: Spread) -> str:
    return f"{spread.median:.1f} ({spread.low:.1f}..{spread.high:.1f})"


def _times(spread: Spread) -> str:
    return f"{spread.median:.2f}x ({spread.low:.2f}..{spread.high:.2f})"


def _promises(runs: Sequence[Runs]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((one.server, one.promise) for one in runs))


def _replay_lines(replay: Replay) -> list[str]:
    group = f"{replay.topics_per_group} topic of {replay.partitions_per_topic} partitions"
    lines = [f"{replay.offsets:,} live offsets, a group has {group}:"]
    for source in dict.fromkeys(load.source for load in replay.loads):
        loads = [load for load in replay.loads if load.source == source]
        rate = Spread.of([load.offsets_per_second for load in loads])
        resident = replay.bytes_per_offset(int(median(load.resident_bytes for load in loads)))
        lines.append(
            f"  load from the {source}: {median(load.took_ms for load in loads):,.0f} ms, {rate.median / 1e6:.2f} M/s "
            f"({rate.low / 1e6:.2f}..{rate.high / 1e6:.2f}); {resident:.0f} resident bytes per offset"
        )
    committed = replay.bytes_per_offset(replay.resident_committed_bytes)
    lines.append(f"  after committing them: {committed:.0f} (with what is remembered of requests)")
    return lines


def _members_lines(members: Members) -> list[str]:
    listed, rebalanced = Spread.of(members.list_ms), Spread.of(members.rebalance_ms)
    return [
        f"{members.groups:,} groups listed in {_plain(listed)} ms",
        f"a group of {members.members} members rebalanced in {_plain(rebalanced)} ms",
        f"  fetch of another connection while listing:     {_latency(members.fetch_while_listing)}",
        f"  fetch of another connection while rebalancing: {_latency(members.fetch_while_rebalancing)}",
        f"  the same when nothing else happens:            {_latency(members.fetch_idle)}",
    ]


def _large_lines(large: Large) -> list[str]:
    parts = {"journal": large.journal_bytes, "checkpoint": large.checkpoint_bytes, "history": large.history_bytes}
    return [
        f"{large.live_offsets:,} live offsets after {large.commits:,} commits in {large.commit_seconds:,.0f} s:",
        f"  data directory when the last was acknowledged: {_megabytes(large.written_bytes)}",
        f"  the most it ever was: {_megabytes(large.peak_bytes)}",
        f"  after compaction: {_megabytes(large.total_bytes)}",
        *(f"    {name}: {_megabytes(size)}" for name, size in parts.items()),
        f"  restart loads them in {large.load_ms:,} ms; {_megabytes(large.resident_bytes)} resident",
        f"  fetch while compacting: {_latency(large.fetch_during_compaction)}",
        f"  fetch when idle:        {_latency(large.fetch_idle)}",
    ]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _latency(result: Result) -> str:
    return (
        f"p50 {result.p50_ms:.2f}, p99 {result.p99_ms:.2f}, max {result.max_ms:.1f} ms, "
        f"{result.requests_per_second:,.0f}/s"
    )


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
