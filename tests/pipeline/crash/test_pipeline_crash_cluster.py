"""An executor of a real Spark cluster dies while it writes: the run goes on by itself, and no row is there twice."""

from pathlib import Path

import pytest

from tests.fakes.daemon import Daemon
from tests.pipeline.crash.conftest import MakeTopic
from tests.pipeline.crash.loads import LoadRun, loading
from tests.pipeline.crash.processes import kill, wait_until, writes_below
from tests.pipeline.crash.spark_cluster import SparkCluster

pytestmark = pytest.mark.crash


def writing_executor(cluster: SparkCluster, run: LoadRun, out: Path) -> int:
    """Wait until an executor has a file open in staging that is not empty, and return its process id."""
    found: list[int] = []

    def writing() -> bool:
        assert not run.ended, f"it ended before an executor was seen writing:\n{run.text()}"
        found.extend(pid for pid in cluster.executors() if writes_below(pid, out / "_staging"))
        return bool(found)

    wait_until(writing, "an executor that writes", run.text)
    return found[0]


def test_an_executor_killed_while_it_writes_is_replaced(
    tmp_path: Path, make_topic: MakeTopic, daemon: Daemon, cluster: SparkCluster
) -> None:
    topic = make_topic(partitions=6, value_bytes=400)
    topic.produce(*[8_000] * 6)
    with loading(tmp_path, topic, daemon, cluster.url) as loads:
        run = loads.start()
        victim = writing_executor(cluster, run, loads.out)

        kill(victim)

        # More partitions than cores: nothing can be complete by then.
        assert loads.table.numbers() == []
        assert run.wait() == 0, run.text()
        loads.table.check_complete(daemon.address, loads.group)
        assert loads.table.numbers() == [1]
