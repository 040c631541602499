"""Cells: one kind of work each, run in turn against every server, so that all figures of a round are of one minute."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from offsetd.bench.generator import Result
from offsetd.bench.numbers import Spread, ratios
from offsetd.bench.server import Server, ServerFailed

#: A run in which others used more of the machine than this is repeated.
FOREIGN_CORES_MAX: Final = 0.2
_REPEATS_MAX: Final = 2
_GENERATOR_SECONDS_MAX: Final = 900.0


class Cell(NamedTuple):
    """One kind of work."""

    operation: str
    partitions: int
    connections: int

    @property
    def label(self) -> str:
        """Return what the table calls it."""
        work = "90 % commits, 10 % fetches" if self.operation == "mix" else self.operation
        return f"{work}, {self.partitions} p, {self.connections} c"


CELLS: Final = (
    *(Cell("commit", partitions, 50) for partitions in (1, 10, 100)),
    *(Cell("fetch", partitions, 50) for partitions in (1, 10, 100)),
    *(Cell(operation, 10, connections) for operation in ("commit", "fetch") for connections in (1, 200)),
    Cell("mix", 10, 50),
)


@dataclass(slots=True)
class Runs:
    """All rounds of one cell against one server."""

    server: str
    promise: str
    cell: Cell
    results: list[Result] = field(default_factory=list)

    def spread(self, figure: str) -> Spread:
        """Return the median of one figure, and its spread."""
        return Spread.of(self.values(figure))

    def values(self, figure: str) -> list[float]:
        """Return one figure of every round."""
        return [float(getattr(result, figure)) for result in self.results]


def ratio(ours: Runs, theirs: Runs, figure: str) -> Spread:
    """Return ours over theirs, round by round."""
    return ratios(ours.values(figure), theirs.values(figure))


def generator_command(server: Server, **options: object) -> list[str]:
    """Return the command that loads a server."""
    command = [sys.executable, "-m", "offsetd.bench.generator"]
    command += ["--port", str(server.port), "--server-pid", str(server.pid)]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    return command


def generate(server: Server, **options: object) -> Result:
    """Run the generator once in a process of its own."""
    done = subprocess.run(  # noqa: S603  # our own program
        generator_command(server, **options),
        capture_output=True,
        text=True,
        timeout=_GENERATOR_SECONDS_MAX,
        check=False,
    )
    if done.returncode == 2 or not done.stdout.startswith("{"):
        raise ServerFailed(f"the generator could not run against {server.name}: {done.stderr.strip()[-500:]}")
    result = Result(**json.loads(done.stdout))
    if result.wrong:
        # A fast wrong answer is no figure.
        raise ServerFailed(f"{server.name} answered wrongly: {done.stdout.strip()}")
    return result


def run_cells(
    servers: Sequence[Server],
    cells: Sequence[Cell],
    *,
    rounds: int,
    seconds: float,
    warmup: float,
    told: Callable[[str], None],
) -> list[Runs]:
    """Run every cell against every server in each round; every other round goes through the servers backwards."""
    runs = {(server.name, cell): Runs(server.name, server.promise, cell) for cell in cells for server in servers}
    for number in range(rounds):
        for cell in cells:
            for server in servers if number % 2 == 0 else reversed(servers):
                result = _quiet(server, cell, seconds=seconds, warmup=warmup)
                runs[server.name, cell].results.append(result)
                told(
                    f"round {number + 1}/{rounds}  {cell.label:<34} {server.name:<12}"
                    f" {result.requests_per_second:>9,.0f}/s  foreign cores {result.foreign_cores:.2f}"
                )
    return list(runs.values())


def _quiet(server: Server, cell: Cell, *, seconds: float, warmup: float) -> Result:
    """Run a cell; again if others were busy meanwhile; return the quietest run."""
    results: list[Result] = []
    while True:
        result = generate(server, **cell._asdict(), seconds=seconds, warmup=warmup)
        results.append(result)
        if result.foreign_cores <= FOREIGN_CORES_MAX or len(results) > _REPEATS_MAX:
            return min(results, key=lambda run: run.foreign_cores)
