"""`offsetd history`: what it prints and returns, without a daemon and beside one."""

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from offsetd.cli import commands
from offsetd.history.seal import alone
from tests.directories import DataDirectory, flip_byte, position_of
from tests.fakes.daemon import running
from tests.fakes.wire import connected
from tests.history.released import MIDNIGHT_MS, Released, everything

DAY_MS = 86_400_000


def run(*arguments: str, data: Path) -> Result:
    cleared = {name: None for name in os.environ if name.startswith("OFFSETD_")}
    return CliRunner().invoke(commands, ["history", *arguments, "--data", str(data)], env=cleared)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def released(data: Path) -> Released:
    """Batches 1 to 4 before midnight and 5 to 8 after it, in two segments."""
    made = Released(DataDirectory(data).broker.path)
    made.days(1, 6)
    made.write([MIDNIGHT_MS + 10, MIDNIGHT_MS + 11])
    return made


@pytest.fixture(autouse=True)
def _stay_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own process must not be left at the lowest priority."""
    monkeypatch.setattr("offsetd.cli.history.step_back", lambda: None)


def test_seal_says_file_by_file_what_it_did(released: Released, data: Path) -> None:
    before = everything(released.directory)

    result = run("seal", data=data)

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("sealed 2026-03-01 batches 1 to 3: 3 records, ")
    assert lines[1].startswith("sealed 2026-03-02 batches 4 to 8: 5 records, ")
    assert lines[2].startswith("2 segments of ")
    assert " became 2 files of " in lines[2]
    assert everything(released.directory) == before
    again = run("seal", data=data)
    assert (again.exit_code, again.stdout) == (0, "Nothing was sealed.\n")


def test_seal_stops_at_damage_and_says_where(released: Released, data: Path) -> None:
    harmed = released.files.paths[1]
    position = position_of(harmed, 8)
    flip_byte(harmed, position + 70)

    result = run("seal", data=data)

    assert result.exit_code == 1
    assert "1 segment of " in result.stdout
    assert f"Error: {harmed}: damaged at byte {position}: the checksum does not match" in result.stderr


def test_seal_does_not_disturb_another_one_at_work(released: Released, data: Path) -> None:
    released.directory.sealed.mkdir()
    with alone(released.directory.sealed):
        result = run("seal", data=data)

    assert result.exit_code == 1
    assert "another process is sealing" in result.stderr
    assert len(released.segments()) == 2


def test_seal_is_for_the_owner_of_the_data(released: Released, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = data.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    result = run("seal", data=data)

    assert result.exit_code == 1
    assert f"belongs to the user {owner}, and this is user {owner + 1}" in result.stderr
    assert len(released.segments()) == 2


def test_seal_says_what_it_needs(released: Released, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    result = run("seal", data=data)

    assert result.exit_code == 1
    assert "history cannot be sealed without pyarrow and numpy" in result.stderr


@pytest.mark.parametrize("command", ["seal", "list"])
def test_a_directory_that_is_none_is_one_sentence(command: str, tmp_path: Path) -> None:
    result = run(command, data=tmp_path)

    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path} is no data directory: it has no identity.json.\n"


def test_list_shows_days_what_waits_and_what_is_missing(released: Released, data: Path) -> None:
    run("seal", data=data)
    released.write([MIDNIGHT_MS + DAY_MS]).unlink()
    released.write([MIDNIGHT_MS + DAY_MS] * 2)
    run("seal", data=data)
    released.write([MIDNIGHT_MS + DAY_MS] * 3)

    result = run("list", data=data)

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{released.directory.path / 'history'}: cluster ")
    assert lines[1].startswith("  2026-03-01  batches 1 to 3, 1 file, ")
    assert lines[2].startswith("  2026-03-02  batches 4 to 8, 1 file, ")
    assert lines[3].startswith("  2026-03-03  batches 10 to 11, 1 file, ")
    assert lines[4].startswith("  not sealed  from batch 12 on, 1 segment, ")
    assert lines[5:] == ["  missing     batch 9"]


def test_list_of_nothing(data: Path) -> None:
    DataDirectory(data)

    result = run("list", data=data)

    assert (result.exit_code, result.stdout.splitlines()[1:]) == (0, ["There is no history."])


async def test_both_work_beside_a_running_daemon(tmp_path: Path) -> None:
    settings = {"log.segment.bytes": 4096, "log.cleaner.min.cleanable.ratio": 0, "log.cleaner.backoff.ms": 50}
    with running(tmp_path, settings) as daemon:
        async with connected(daemon.port) as client:
            for offset in range(60):
                assert await client.commit("billing", {("orders", 0): offset}, metadata="m" * 200) == {("orders", 0): 0}
        daemon.wait_until(lambda: daemon.metric("offsetd_history_segments") > 0)

        sealed = run("seal", data=daemon.data)
        listed = run("list", data=daemon.data)

        assert (sealed.exit_code, listed.exit_code) == (0, 0)
        assert "sealed 20" in sealed.stdout
        assert "batches 1 to " in listed.stdout
        assert daemon.metric("offsetd_history_sealed_files") >= 1
