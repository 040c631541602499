"""Runs of `offsetd pipeline load` as users start it: a process of its own, with a JVM, that can be killed anywhere."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from offsetd.pipeline.load.request import TableFormat
from tests.fakes.daemon import Daemon
from tests.pipeline.crash.processes import WAIT_SECONDS, children, kill, kill_group, wait_until, writes_below
from tests.pipeline.crash.records import LoadedDelta, LoadedTable, ProducedTopic

FAILPOINT_EXIT_CODE: Final = 86
#: Small heaps; and row groups of few rows, so that a file has bytes on the disk while it is still being written.
_SETTINGS: Final = {
    "spark.driver.memory": "600m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "600m",
    "spark.hadoop.parquet.block.size": "65536",
    "spark.hadoop.parquet.page.size": "8192",
    "spark.hadoop.parquet.page.size.row.check.min": "10",
}


class LoadRun:
    """One run, from its start to its end."""

    def __init__(self, command: list[str], log_path: Path, failpoints: str) -> None:
        self._log_path = log_path
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OFFSETD_")}
        environment.pop("PYTHONDEVMODE", None)
        if failpoints:
            environment["OFFSETD_FAILPOINTS"] = failpoints
        with log_path.open("wb") as log:
            # A session of its own: cleaning up reaches the JVM, whatever became of its driver.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", "COLUMNS": "200"},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The Python driver's process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the driver has ended."""
        return self._process.poll() is not None

    def text(self) -> str:
        """Return what it has said."""
        return self._log_path.read_text("utf-8", "replace")

    def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        return self._process.wait(WAIT_SECONDS)

    def jvm(self) -> int | None:
        """Return the process id of its JVM, None if it has none."""
        found = children(self.pid, "org.apache.spark.deploy.SparkSubmit")
        return found[0] if found else None

    def wait_for_writing(self, out: Path) -> None:
        """Wait until its own JVM has a file open in staging that is not empty."""
        staging = out.resolve() / "_staging"

        def writing() -> bool:
            assert not self.ended, f"it ended before it was seen writing:\n{self.text()}"
            jvm = self.jvm()
            return jvm is not None and bool(writes_below(jvm, staging))

        wait_until(writing, "a file that is being written", self.text)

    def wait_for_stage(self, out: Path) -> None:
        """Wait until Spark has made something in staging: with few records, that is all that can be seen."""
        known = set(out.glob("_staging/*/*"))

        def staged() -> bool:
            assert not self.ended, f"it ended before it was seen staging:\n{self.text()}"
            return bool(set(out.glob("_staging/*/*")) - known)

        wait_until(staged, "something staged", self.text)

    def kill_driver(self) -> None:
        """Kill -9 the Python driver alone; its JVM notices that by itself."""
        kill(self.pid)

    def kill_all(self) -> None:
        """Kill -9 the driver and its JVM. The driver is stopped first, so that neither sees the other's end."""
        os.kill(self.pid, signal.SIGSTOP)
        jvm = self.jvm()
        assert jvm is not None, f"it has no JVM:\n{self.text()}"
        kill(jvm)
        kill(self.pid)

    def clean_up(self) -> None:
        """Leave no process behind."""
        kill_group(self.pid)
        self.wait()


@dataclass
class Loads:
    """All runs that load one topic into one table for one group."""

    directory: Path
    topic: ProducedTopic
    daemon: Daemon
    master: str = "local[2]"
    format: TableFormat = TableFormat.PARQUET
    settings: dict[str, str] = field(default_factory=dict)
    out: Path = field(init=False)
    _runs: list[LoadRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out = self.directory / "table"

    @property
    def group(self) -> str:
        """The group whose position the table is."""
        return f"load.{self.topic.name}"

    @property
    def table(self) -> LoadedTable:
        """The table as it is now."""
        kind = LoadedDelta if self.format is TableFormat.DELTA else LoadedTable
        return kind(self.out, self.topic)

    def start(self, failpoints: str = "", *arguments: str) -> LoadRun:
        """Start a run and wait for nothing."""
        command = [sys.executable, "-m", "offsetd", "pipeline", "load", "--topic", self.topic.name, "--out"]
        command += [str(self.out), "--group", self.group, "--upstream", self.topic.bootstrap]
        command += ["--offsets", self.daemon.address, "--master", self.master, *arguments]
        command += ["--format", self.format.value]
        for key, value in {**_SETTINGS, **self.settings}.items():
            command += ["--spark-conf", f"{key}={value}"]
        run = LoadRun(command, self.directory / f"run-{len(self._runs)}.log", failpoints)
        self._runs.append(run)
        return run

    def run(self, failpoints: str = "", *arguments: str, code: int = 0) -> LoadRun:
        """Run to the end, which must be with this exit code."""
        run = self.start(failpoints, *arguments)
        assert run.wait() == code, run.text()
        return run

    def crash(self, window: str) -> None:
        """Run until a window, where the driver ends without another word."""
        self.run(f"{window}=exit", code=FAILPOINT_EXIT_CODE)

    def finish(self) -> LoadRun:
        """Run as on any day, and look at every row."""
        run = self.run()
        self.table.check_complete(self.daemon.address, self.group)
        return run

    def clean_up(self) -> None:
        """Leave no process behind."""
        for run in self._runs:
            run.clean_up()


@contextmanager
def loading(
    directory: Path,
    topic: ProducedTopic,
    daemon: Daemon,
    master: str = "local[2]",
    kind: TableFormat = TableFormat.PARQUET,
) -> Iterator[Loads]:
    """Give runs for the length of a block; no process outlives it."""
    loads = Loads(directory, topic, daemon, master, kind)
    try:
        yield loads
    finally:
        loads.clean_up()
