"""Starts that must not be: each ends with code 1 and one line that says why and what to do, and changes nothing."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemon.volume import make_read_only, volume
from tests.fakes.daemon import WAIT_SECONDS, Daemon, running
from tests.fakes.engine import leave
from tests.fakes.wire import connected

OTHER_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
ORDERS = ("orders", 0)


def refusal_of(data: Path, *flags: str, **environment: str) -> str:
    """Try to start a daemon; see it end with code 1 and one line, and return that line."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OFFSETD_")}
    command = [sys.executable, "-m", "offsetd", "serve", "--data", str(data)]
    if "--listen" not in flags:
        command += ["--listen", "127.0.0.1:0"]
    if "--http" not in flags:
        command += ["--http", "127.0.0.1:0"]
    ended = subprocess.run(
        [*command, *flags],
        env={**kept, "OFFSETD_DISK_RESERVE_BYTES": "0", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.rstrip("\n")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with seven slots, as a clean stop leaves it."""
    asyncio.run(leave(tmp_path / "data", [], slots=7))
    return tmp_path / "data"


def contents(directory: Path) -> dict[Path, bytes | None]:
    """Return every file below a directory."""
    return {path: path.read_bytes() if path.is_file() else None for path in directory.rglob("*")}


def test_one_daemon_per_data_directory_and_the_first_is_not_disturbed(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        line = refusal_of(first.data)

        assert line.startswith(f"offsetd: {first.data}/broker-1 is in use by the process {first.pid}")
        assert line.endswith("Stop that one, or give this one another --data.")

        async def use() -> None:
            async with connected(first.port) as client:
                assert await client.commit("billing", {ORDERS: 42}) == {ORDERS: 0}
                assert await client.committed("billing", [ORDERS]) == {ORDERS: 42}

        asyncio.run(use())
        assert first.terminate() == 0


def test_a_killed_daemon_leaves_no_lock(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.restart()

        assert daemon.readiness()[0] == 200


def test_another_number_of_slots_is_refused(data: Path) -> None:
    before = contents(data)

    line = refusal_of(data, OFFSETD_OFFSETS_TOPIC_NUM_PARTITIONS="8")

    assert line.startswith(f"offsetd: {data} was made with 7 slots (offsets.topic.num.partitions), the settings say 8.")
    assert contents(data) == before


def test_another_cluster_is_refused(data: Path) -> None:
    before = contents(data)

    line = refusal_of(data, OFFSETD_OFFSETS_TOPIC_NUM_PARTITIONS="7", OFFSETD_CLUSTER_ID=OTHER_CLUSTER_ID)

    cluster_id = json.loads((data / "identity.json").read_text())["cluster_id"]
    assert line.startswith(f"offsetd: {data} holds data of the cluster {cluster_id}, ")
    assert f"the settings say {OTHER_CLUSTER_ID}. Correct the setting" in line
    assert contents(data) == before


@pytest.mark.parametrize("below", ["", "broker-1"])
def test_a_newer_format_is_refused(data: Path, below: str) -> None:
    path = data / below / "identity.json"
    identity = json.loads(path.read_text())
    path.write_text(json.dumps({**identity, "format": 2}))

    line = refusal_of(data, OFFSETD_OFFSETS_TOPIC_NUM_PARTITIONS="7")

    assert line.startswith(f"offsetd: {path} is of format 2, this offsetd knows format 1.")


def test_an_identity_that_cannot_be_read_is_refused(data: Path) -> None:
    (data / "identity.json").write_text("{")

    line = refusal_of(data, OFFSETD_OFFSETS_TOPIC_NUM_PARTITIONS="7")

    assert line.startswith(f"offsetd: {data}/identity.json cannot be read as JSON.")


def test_a_lost_identity_is_no_new_beginning(data: Path) -> None:
    (data / "identity.json").unlink()

    line = refusal_of(data, OFFSETD_OFFSETS_TOPIC_NUM_PARTITIONS="7")

    assert line.startswith(f"offsetd: {data} is not empty (it holds 'broker-1') and has no identity.json")


def test_a_foreign_directory_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "letters").write_text("dear all")

    line = refusal_of(home)

    assert line.startswith(f"offsetd: {home} is not empty (it holds 'letters') and has no identity.json")
    assert [path.name for path in home.iterdir()] == ["letters"]


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert refusal_of(tmp_path / "file").startswith(f"offsetd: the data directory {tmp_path}/file cannot be used:")


def test_a_read_only_directory_is_refused(tmp_path: Path) -> None:
    """New or not."""
    with volume(tmp_path / "volume", 16 << 20) as path:
        daemon = Daemon(tmp_path)
        daemon.data = path / "data"
        try:
            daemon.start()
            assert daemon.terminate() == 0
        finally:
            daemon.clean_up()
        make_read_only(path)

        for data in (path / "data", path / "new"):
            line = refusal_of(data)

            assert line.startswith(f"offsetd: the data directory {data} cannot be used: Read-only file system")
            assert "It must be on a writable file system" in line


@pytest.mark.parametrize(("flag", "setting"), [("--listen", "listeners"), ("--http", "http.listeners")])
def test_a_port_in_use_is_named(tmp_path: Path, flag: str, setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        line = refusal_of(tmp_path / "data", flag, address)

    assert line == f"offsetd: cannot listen on {address} ({setting}, {flag}): address already in use"


def test_a_host_that_is_not_ours_is_named(tmp_path: Path) -> None:
    # Of the documentation's own addresses: no machine has it.
    line = refusal_of(tmp_path / "data", "--listen", "192.0.2.1:0")

    assert line == "offsetd: cannot listen on 192.0.2.1:0 (listeners, --listen): cannot assign requested address"


def test_a_wrong_setting_is_one_sentence(tmp_path: Path) -> None:
    line = refusal_of(tmp_path / "data", OFFSETD_LISTENER="127.0.0.1:1")

    assert line.startswith("Error: OFFSETD_LISTENER (from the environment) is not a setting; did you mean ")
    assert not (tmp_path / "data").exists()
