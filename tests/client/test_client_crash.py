"""The three disciplines under kill -9, of the job and of the daemon: what is promised holds, and the check can fail."""

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from offsetd.client import BlockingClient
from tests.client.job import GROUP, PARTITIONS, RECORDS, TOPIC, record
from tests.fakes.daemon import WAIT_SECONDS, Daemon, running

pytestmark = [pytest.mark.integration, pytest.mark.crash]

ROOT = Path(__file__).parents[2]
LIVES = 9
#: Little enough that a few lives do not finish the work.
STEPS_MAX = 9
LATE_MS_MAX = 2.0
KILLED = -9

#: How often each record was written.
Written: TypeAlias = Counter[tuple[int, int]]


class Job:
    """A job through as many lives as it takes."""

    def __init__(self, directory: Path, daemon: Daemon, discipline: str) -> None:
        self._database = directory / "output.db"
        self._log = directory / "job.log"
        self._daemon = daemon
        self._discipline = discipline

    def live(self, *, seed: int = 0, die_at: int = 0, die_after_ms: float = 0, daemon_at: int = 0) -> int:
        """Run it to its end, at a step or some time behind it; return its exit code.

        Args:
            daemon_at: the step at which the daemon is killed and started again.
        """
        command = [
            sys.executable,
            "-m",
            "tests.client.job",
            self._daemon.address,
            str(self._database),
            self._discipline,
        ]
        command += ["--seed", str(seed), "--die-at", str(die_at), "--die-after-ms", str(die_after_ms)]
        with (
            self._log.open("ab") as log,
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, bufsize=0) as process,
        ):
            try:
                assert process.stdout is not None
                steps = 0
                while process.stdout.read(1):
                    steps += 1
                    if steps == daemon_at:
                        self._daemon.kill()
                        self._daemon.start(listen=self._daemon.address)
                return process.wait(WAIT_SECONDS)
            finally:
                process.kill()

    def finish(self) -> None:
        """Let it do what is left."""
        assert self.live() == 0, self._log.read_text()

    def written(self) -> Written:
        """Return how often each record was written."""
        with closing(sqlite3.connect(self._database)) as database:
            rows = database.execute("select number, offset, line from output").fetchall()
        assert all(line == record(number, offset) for number, offset, line in rows)
        return Counter((number, offset) for number, offset, _ in rows)


def everything() -> set[tuple[int, int]]:
    """Return all records there are."""
    return {(number, offset) for number in range(PARTITIONS) for offset in range(RECORDS)}


def lost(written: Written) -> list[tuple[int, int]]:
    """Return the records that were not written."""
    return sorted(everything() - written.keys())


def repeated(written: Written) -> list[tuple[int, int]]:
    """Return the records that were written more than once."""
    return sorted(each for each, count in written.items() if count > 1)


def committed(daemon: Daemon) -> list[int]:
    """Return what the broker holds in the end."""
    with BlockingClient(daemon.address) as client:
        held = client.fetch(GROUP)
    return [held[each].offset for each in sorted(held) if each.topic == TOPIC]


@pytest.mark.parametrize(
    ("discipline", "may_lose", "may_repeat"),
    [("AtMostOnce", True, False), ("AtLeastOnce", False, True), ("ExactlyOnce", False, False)],
)
def test_a_job_killed_at_random_points_keeps_its_promise(
    tmp_path: Path, discipline: str, may_lose: bool, may_repeat: bool
) -> None:
    random = Random(discipline)
    with running(tmp_path / "daemon") as daemon:
        job = Job(tmp_path, daemon, discipline)
        ends: Counter[int] = Counter()
        for life in range(LIVES):
            late_ms = random.uniform(0, LATE_MS_MAX) if life % 3 else 0
            daemon_at = random.randint(1, STEPS_MAX) if life % 4 == 1 else 0
            step = random.randint(1, STEPS_MAX)
            ends[job.live(seed=life, die_at=step, die_after_ms=late_ms, daemon_at=daemon_at)] += 1
        job.finish()
        written = job.written()

        assert may_lose or lost(written) == []
        assert may_repeat or repeated(written) == []
        assert committed(daemon) == [RECORDS] * PARTITIONS
        # Killed often enough for this to have meant something, and never ended in another way.
        assert ends[KILLED] > LIVES // 2
        assert set(ends) <= {KILLED, 0}


@pytest.mark.parametrize(
    ("turned_round", "promise_broken"),
    [("AtMostOnce", lost), ("AtLeastOnce", repeated), ("Apart", repeated)],
    ids=["commits too early", "commits too late", "stores the offset apart"],
)
def test_a_job_with_the_order_turned_round_is_caught(
    tmp_path: Path, turned_round: str, promise_broken: Callable[[Written], list[tuple[int, int]]]
) -> None:
    """The first promises to lose nothing, the others to repeat nothing; dying at each of the first steps shows it."""
    with running(tmp_path / "daemon") as daemon:
        for step in (3, 2, 4, 5, 6):
            directory = tmp_path / str(step)
            directory.mkdir()
            job = Job(directory, daemon, turned_round)
            with BlockingClient(daemon.address) as client:
                client.commit(GROUP, {(TOPIC, number): 0 for number in range(PARTITIONS)})
            assert job.live(seed=1, die_at=step) == KILLED
            job.finish()
            if promise_broken(job.written()):
                return
    pytest.fail("nobody noticed")
