"""The sealer as a real process: killed at every named place and at any moment, and then each record is there once."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from offsetd.history.seal import Done, alone, seal
from offsetd.history.sealer import BUSY
from offsetd.journal.directory import BrokerDirectory
from tests.daemon.volume import fill, volume
from tests.directories import DataDirectory, flip_byte
from tests.history.released import IDENTITY, MIDNIGHT_MS, Released, everything

COMMAND = (sys.executable, "-m", "offsetd.history.sealer")
FAILPOINTS = ("seal_before_write", "seal_after_write", "seal_after_rename", "seal_after_sync", "seal_after_unlink")


class Broker(Released):
    """A data directory of broker 1 whose segments have all been released."""

    def __init__(self, data: Path) -> None:
        self.data = data
        super().__init__(DataDirectory(data).broker.path)

    def command(self, *options: str) -> list[str]:
        return [*COMMAND, "--data", str(self.data), "--broker-id", "1", *options]

    def run(self, *options: str, failpoints: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*options),
            env={**os.environ, "OFFSETD_FAILPOINTS": failpoints},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    """Four segments over five days."""
    broker = Broker(tmp_path / "data")
    broker.days(4, 6)
    return broker


def finish(directory: BrokerDirectory) -> Done:
    """Seal what is left, in this process, because that is quicker."""
    done = Done()
    seal(directory, IDENTITY, done=done, file_rows=4)
    return done


def test_it_says_what_it_did(broker: Broker) -> None:
    size = sum(path.stat().st_size for path in broker.files.paths)
    before = everything(broker.directory)

    ended = broker.run()

    assert (ended.returncode, ended.stderr) == (0, "")
    told = json.loads(ended.stdout)
    assert (told["files"], told["batches"], told["records"]) == (5, 24, 24)
    assert (told["segments"], told["segment_bytes"]) == (4, size)
    assert told["bytes"] == sum((broker.directory.sealed / name).stat().st_size for name in broker.sealed())
    assert told["seconds"] > 0
    assert everything(broker.directory) == before


@pytest.mark.parametrize(
    ("name", "turn"), [*((name, 1) for name in FAILPOINTS), ("seal_after_write", 3), ("seal_after_unlink", 3)]
)
def test_killed_anywhere_and_run_again_every_record_is_there_once(broker: Broker, name: str, turn: int) -> None:
    before = everything(broker.directory)

    killed = broker.run("--file-rows=4", failpoints=f"{name}=exit@{turn}")

    assert (killed.returncode, killed.stdout) == (86, "")
    assert everything(broker.directory) == before
    finish(broker.directory)
    assert everything(broker.directory) == before
    assert (broker.segments(), broker.strays()) == ([], [])
    assert finish(broker.directory) == Done()


def test_killed_at_any_moment_and_run_again_every_record_is_there_once(tmp_path: Path) -> None:
    """Slowed down, so that moments fall between its steps and not into its start."""
    broker = Broker(tmp_path / "data")
    broker.days(2, 4)
    before = everything(broker.directory)
    slowly = ",".join(f"{name}=sleep:20" for name in FAILPOINTS)
    chance = random.Random(6)
    kills = 0
    while broker.segments():
        with subprocess.Popen(
            broker.command("--file-rows=1"),
            env={**os.environ, "OFFSETD_FAILPOINTS": slowly},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ) as process:
            deadline, files = time.monotonic() + 60, len(broker.sealed())
            while process.poll() is None and len(broker.sealed()) < files + 3 and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.1)
            kills += process.poll() is None
            process.kill()
        assert everything(broker.directory) == before
    finish(broker.directory)
    assert kills > 1
    assert everything(broker.directory) == before
    assert broker.strays() == []


def test_damage_is_a_sentence_and_what_was_sealed_before_it_is_told(broker: Broker) -> None:
    flip_byte(broker.files.paths[1], -20)

    ended = broker.run()

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"{broker.files.paths[1]}: damaged at byte ")
    assert json.loads(ended.stdout)["segments"] == 1
    assert broker.segments() == [path.name for path in broker.files.paths[1:]]


def test_another_one_at_work_is_no_failure(broker: Broker) -> None:
    broker.directory.sealed.mkdir()
    with alone(broker.directory.sealed):
        ended = broker.run()

    assert ended.returncode == BUSY
    assert "another process is sealing" in ended.stderr
    assert len(broker.segments()) == 4


def test_without_pyarrow_it_says_what_it_needs(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('libarrow.so: cannot be opened')")

    ended = subprocess.run(
        broker.command(), env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert ended.stderr == "history cannot be sealed without pyarrow and numpy: libarrow.so: cannot be opened\n"


def test_a_full_disk_loses_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with volume(tmp_path / "volume", 8 << 20) as path:
        broker = Broker(path / "data")
        broker.write([MIDNIGHT_MS] * 200)
        before = everything(broker.directory)
        filler = fill(path)

        ended = broker.run()

        assert ended.returncode == 1
        assert "No space left on device" in ended.stderr
        assert (len(broker.segments()), broker.sealed(), broker.strays()) == (1, [], [])
        filler.unlink()
        finish(broker.directory)
        assert everything(broker.directory) == before


def test_it_ends_when_its_parent_s_end_of_stdin_closes(broker: Broker) -> None:
    before = everything(broker.directory)
    with subprocess.Popen(
        broker.command("--parent", str(os.getpid())),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OFFSETD_FAILPOINTS": "seal_after_write=sleep:60000"},
    ) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 3
    assert everything(broker.directory) == before


def test_it_does_not_begin_under_a_stranger(broker: Broker) -> None:
    assert broker.run("--parent", "1").returncode == 3
    assert len(broker.segments()) == 4
