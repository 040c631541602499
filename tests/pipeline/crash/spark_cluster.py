"""A standalone Spark cluster from the wheel alone: a master and two workers on this machine, stopped by process id."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.pipeline.crash.processes import children, kill_group, wait_until

WORKERS: Final = 2
_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")


class SparkCluster:
    """A master and its workers, each in a session of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = ""
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> "SparkCluster":
        """Start all and wait until every worker is registered."""
        self._master = self._launch("master", _MASTER)
        wait_until(lambda: _URL.search(self._log("master")) is not None, "the master", lambda: self._log("master"))
        found = _URL.search(self._log("master"))
        assert found is not None
        self.url = found[1]
        for number in range(WORKERS):
            name = f"worker-{number}"
            work = str(self.directory / name)
            self._workers.append(
                self._launch(name, _WORKER, "--cores", "1", "--memory", "1g", "--work-dir", work, self.url)
            )
        wait_until(
            lambda: self._log("master").count("Registering worker") == WORKERS,
            "the workers",
            lambda: self._log("master") + self._log("worker-0"),
        )
        return self

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now, of all workers."""
        return [pid for worker in self._workers for pid in children(worker.pid, _EXECUTOR)]

    def stop(self) -> None:
        """End everything that was started, executors too."""
        for process in (*self._workers, self._master):
            if process is not None:
                kill_group(process.pid)
                process.wait()

    def _launch(self, name: str, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        command = [str(home / "bin" / "spark-class"), program, "--host", "127.0.0.1", "--port", "0"]
        with self._log_path(name).open("wb") as log:
            # spark-class becomes the JVM, so this is its process id.
            return subprocess.Popen(
                [*command, "--webui-port", "0", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**_environment(), "SPARK_HOME": str(home)},
                start_new_session=True,
            )

    def _log_path(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _log(self, name: str) -> str:
        return self._log_path(name).read_text("utf-8", "replace")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OFFSETD_", "SPARK_"))}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}


@contextmanager
def spark_cluster(directory: Path) -> Iterator[SparkCluster]:
    """Run a cluster for the length of a block; no process outlives it."""
    cluster = SparkCluster(directory)
    try:
        yield cluster.start()
    finally:
        cluster.stop()
