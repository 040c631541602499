"""kcat, an older librdkafka, where it is installed."""

import json
import shutil
import subprocess

import pytest

from tests.clients.conftest import StartClient
from tests.clients.process import CONFLUENT, WAIT_SECONDS
from tests.fakes.daemon import Daemon

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed"),
]


def kcat(daemon: Daemon, *arguments: str) -> str:
    """Run kcat and return what it prints."""
    command = ["kcat", "-b", daemon.address, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kcat_lists_broker_and_topics(daemon: Daemon, start_client: StartClient) -> None:
    start_client(CONFLUENT, daemon.address).commit("listed", {("listed", 2): 1})

    listed = json.loads(kcat(daemon, "-L", "-J"))

    assert listed["brokers"] == [{"id": 1, "name": daemon.address}]
    assert {topic["topic"]: len(topic["partitions"]) for topic in listed["topics"]}["listed"] == 3


def test_kcat_queries_the_ends(daemon: Daemon, start_client: StartClient) -> None:
    start_client(CONFLUENT, daemon.address).commit("queried", {("queried", 0): 42})

    assert kcat(daemon, "-Q", "-t", "queried:0:-1") == "queried [0] offset 42\n"
    assert kcat(daemon, "-Q", "-t", "queried:0:-2") == "queried [0] offset 0\n"
