"""The compactor as a real process: killed at every named place, run again, and no answer changes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.load import Loader
from offsetd.journal.sealed import sealed_path
from offsetd.journal.segment import read_batches
from tests.histories import (
    SLOTS,
    WHOS,
    Commit,
    GroupTombstone,
    Model,
    Row,
    Step,
    Tombstone,
    check_slot,
    encode,
    slot_of,
)
from tests.segments import CLUSTER_ID, OTHER_CLUSTER_ID, JournalFiles, fresh_tables

TIME_MS = 1 << 32
COMMAND = (sys.executable, "-m", "offsetd.journal.compactor")
FAILPOINTS = ("fold_before_write", "fold_after_write", "release_before_rename", "release_after_rename")


class Broker:
    """A broker's directory with a journal of known history."""

    def __init__(self, directory: Path, segments: int = 4) -> None:
        self.directory = directory
        self.history = directory / "history" / "segments"
        self.history.mkdir(parents=True)
        self.journal = JournalFiles(directory / "journal")
        self.models = [Model() for _ in range(SLOTS)]
        Checkpoint.create(directory / "checkpoint", cluster_id=CLUSTER_ID, made_by="test").close()
        for number in range(segments):
            self.write(number)

    def write(self, number: int) -> None:
        """Add a segment in which groups come, change and go."""
        batches: list[list[Step]] = [[self._commit(f"group-{n}", number, n)] for n in range(12)]
        batches.append([Tombstone(f"group-{number}", TIME_MS, WHOS[0], (("orders", (0, 2)),))])
        batches.append([GroupTombstone(f"group-{number + 6}", TIME_MS, WHOS[0])])
        for step in (step for batch in batches for step in batch):
            self.models[slot_of(step.group)].apply(step)
        self.journal.segment([[encode(step) for step in batch] for batch in batches])

    def _commit(self, group: str, number: int, n: int) -> Commit:
        rows = tuple(Row(partition, 100 * number + n, -1, None, f"{number}") for partition in range(3))
        return Commit(group, TIME_MS + number, WHOS[number % 2], (("orders", rows, None), (f"t{n}", rows, None)))

    def run(
        self, *options: str, failpoints: str = "", segments: Sequence[Path] | None = None, cluster_id: str = CLUSTER_ID
    ) -> "subprocess.CompletedProcess[str]":
        paths = self.journal.paths if segments is None else segments
        return subprocess.run(
            [*COMMAND, "--checkpoint", str(self.directory / "checkpoint"), f"--cluster-id={cluster_id}", *options]
            + [str(path) for path in paths],
            env={**os.environ, "OFFSETD_FAILPOINTS": failpoints},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def check(self) -> None:
        """Load as a start would, from what is left in checkpoint and journal."""
        loader = Loader(Checkpoint.open(self.directory / "checkpoint", cluster_id=CLUSTER_ID))
        try:
            for path in sorted(self.journal.directory.iterdir()):
                for batch in read_batches(path):
                    loader.add_batch(batch)
            assert loader.last_number == self.journal.number
            _, tables = fresh_tables()
            for table, model in zip(tables, self.models, strict=True):
                list(loader.load(table))
                check_slot(table, model)
        finally:
            loader.close()

    def names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in directory.iterdir())


def test_sealed_segments_are_folded_and_moved_to_history(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    names = broker.names(broker.journal.directory)
    size = sum(path.stat().st_size for path in broker.journal.paths)

    ended = broker.run("--history", str(broker.history))

    assert (ended.returncode, ended.stderr) == (0, "")
    told = json.loads(ended.stdout)
    assert (told["segments"], told["batches"], told["bytes"]) == (4, 56, size)
    assert told["records"] == sum(model.sequence for model in broker.models)
    assert told["keys_written"] > 0
    assert told["seconds"] > 0
    assert told["folded_number"] == 56
    assert broker.names(broker.journal.directory) == []
    assert broker.names(broker.history) == names
    broker.check()


def test_without_history_released_segments_are_deleted(tmp_path: Path) -> None:
    broker = Broker(tmp_path)

    assert broker.run(segments=broker.journal.paths[:3]).returncode == 0

    assert broker.names(broker.journal.directory) == [broker.journal.paths[3].name]
    assert broker.names(broker.history) == []
    broker.check()


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("name", FAILPOINTS)
@pytest.mark.parametrize("kept", [True, False])
def test_killed_anywhere_and_run_again_no_answer_changes(tmp_path: Path, name: str, turn: int, kept: bool) -> None:
    broker = Broker(tmp_path, segments=3)
    keep = ("--history", str(broker.history)) if kept else ()
    names = broker.names(broker.journal.directory)

    killed = broker.run(*keep, "--run-bytes-max=2500", failpoints=f"{name}=exit@{turn}")

    assert killed.returncode == 86
    assert killed.stdout == ""
    broker.check()
    again = broker.run(*keep)
    assert (again.returncode, again.stderr) == (0, "")
    assert broker.names(broker.journal.directory) == []
    assert broker.names(broker.history) == (names if kept else [])
    broker.check()
    once_more = broker.run(*keep)
    assert once_more.returncode == 0
    assert json.loads(once_more.stdout)["batches"] == 0


def test_a_failing_rename_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    broker = Broker(tmp_path)

    ended = broker.run("--history", str(broker.history), failpoints="release_before_rename=error:ENOSPC")

    assert ended.returncode == 1
    assert "No space left on device" in ended.stderr
    broker.check()
    assert broker.run("--history", str(broker.history)).returncode == 0
    broker.check()


def test_a_damaged_segment_stops_the_run_before_it(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    harmed = broker.journal.paths[2]
    data = bytearray(harmed.read_bytes())
    data[-20] ^= 1
    harmed.write_bytes(data)

    ended = broker.run("--history", str(broker.history), "--run-bytes-max=2500")

    assert ended.returncode == 1
    assert f"{harmed}: damaged at byte" in ended.stderr
    assert set(broker.names(broker.journal.directory)) >= {path.name for path in broker.journal.paths[2:]}


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        (slice(1, None), "ends with batch 0, and batch 15 of the journal stands where batch 1 should"),
        (slice(0, None, 2), "ends with batch 0, and batch 29 of the journal stands where batch 15 should"),
    ],
)
def test_a_gap_is_refused(tmp_path: Path, segments: slice, words: str) -> None:
    broker = Broker(tmp_path)

    ended = broker.run(segments=broker.journal.paths[segments])

    assert ended.returncode == 1
    assert words.split(", and ")[1] in ended.stderr
    assert len(broker.names(broker.journal.directory)) == 4
    broker.check()


def test_a_segment_that_is_missing_is_named(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.journal.paths[0].rename(tmp_path / "elsewhere")

    ended = broker.run()

    assert ended.returncode == 1
    assert f"the segment {broker.journal.paths[0]} is missing" in ended.stderr


def test_a_segment_of_another_cluster_is_refused(tmp_path: Path) -> None:
    broker = Broker(tmp_path, segments=1)
    stranger = JournalFiles(tmp_path / "strange", cluster=bytes(16)).segment([[encode(broker._commit("b", 0, 0))]])

    ended = broker.run(segments=[stranger])

    assert ended.returncode == 1
    assert f"the segment {stranger} belongs to another cluster" in ended.stderr


def test_a_checkpoint_of_another_cluster_is_refused(tmp_path: Path) -> None:
    broker = Broker(tmp_path, segments=1)

    ended = broker.run(cluster_id=OTHER_CLUSTER_ID)

    assert ended.returncode == 1
    assert "belongs to the cluster" in ended.stderr
    broker.check()


def test_segments_without_batches_and_with_only_tombstones_are_released(tmp_path: Path) -> None:
    broker = Broker(tmp_path, segments=0)
    broker.journal.segment([[encode(GroupTombstone("b", TIME_MS, WHOS[0]))]])
    broker.models[slot_of("b")].apply(GroupTombstone("b", TIME_MS, WHOS[0]))
    broker.journal.segment([])

    assert broker.run().returncode == 0

    assert broker.names(broker.journal.directory) == []
    broker.check()


def test_history_gives_way_on_a_full_disk(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    keep = ("--history", str(broker.history))
    names = broker.names(broker.journal.directory)
    assert broker.run(*keep).returncode == 0

    ended = broker.run(*keep, "--disk-full", segments=[])

    assert json.loads(ended.stdout)["history_segments_removed"] == 2
    assert broker.names(broker.history) == names[2:]
    broker.check()


def test_on_a_full_disk_sealed_history_gives_way_before_segments_do(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    keep = ("--history", str(broker.history), "--sealed", str(tmp_path / "sealed"))
    assert broker.run(*keep).returncode == 0
    size = sum(path.stat().st_size for path in broker.history.iterdir())
    path = sealed_path(tmp_path / "sealed", date(2026, 3, 1), 1, 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(size))

    ended = broker.run(*keep, "--disk-full", segments=[])

    told = json.loads(ended.stdout)
    assert (told["history_files_removed"], told["history_segments_removed"]) == (1, 0)
    assert told["history_bytes_removed"] == size
    assert len(broker.names(broker.history)) == 4


def test_history_is_trimmed_by_the_logs_own_time(tmp_path: Path) -> None:
    broker = Broker(tmp_path)

    ended = broker.run("--history", str(broker.history), "--history-ms=14")

    # Each batch is a millisecond; the last of the third segment is 14 ms before the last of the fourth.
    assert json.loads(ended.stdout)["history_segments_removed"] == 2
    assert len(broker.names(broker.history)) == 2


_PARENT = """
import subprocess, sys, os
child = subprocess.Popen([*sys.argv[1:4], "--parent", str(os.getpid()), *sys.argv[4:]], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    broker = Broker(tmp_path, segments=2)
    options = ["--checkpoint", str(tmp_path / "checkpoint"), f"--cluster-id={CLUSTER_ID}"]
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, *COMMAND, *options, *map(str, broker.journal.paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OFFSETD_FAILPOINTS": "fold_before_write=sleep:60000"},
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not _gone(child)
        parent.send_signal(signal.SIGKILL)

    deadline = time.monotonic() + 20
    while not _gone(child):
        assert time.monotonic() < deadline, "the compactor outlived its parent"
        time.sleep(0.01)
    broker.check()


def test_it_ends_when_stdin_closes(tmp_path: Path) -> None:
    broker = Broker(tmp_path, segments=2)
    options = ["--checkpoint", str(tmp_path / "checkpoint"), f"--cluster-id={CLUSTER_ID}"]
    with subprocess.Popen(
        [*COMMAND, *options, "--parent", str(os.getpid()), *map(str, broker.journal.paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OFFSETD_FAILPOINTS": "fold_before_write=sleep:60000"},
    ) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=20) == 3
    broker.check()


def test_it_does_not_begin_under_a_stranger(tmp_path: Path) -> None:
    broker = Broker(tmp_path, segments=1)

    assert broker.run("--parent", "1").returncode == 3
    assert len(broker.names(broker.journal.directory)) == 1
