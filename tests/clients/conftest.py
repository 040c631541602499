"""A daemon for a file of tests, and client processes that leave in order and have nothing to complain of."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.clients.process import CLIENTS, ClientProcess
from tests.fakes.daemon import Daemon, running

#: Starts a client library against an address. `quiet`: it must log no warning until its end.
StartClient = Callable[..., ClientProcess]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that nothing bad happens to; each test has groups and topics of its own there."""
    with running(tmp_path_factory.mktemp("daemon")) as found:
        yield found
        assert [event for event in found.events() if event["level"] != "info"] == []


@pytest.fixture
def start_client(tmp_path: Path) -> Iterator[StartClient]:
    """Start clients that end with the test."""
    started: list[tuple[ClientProcess, bool]] = []
    numbers = count(1)

    def start(name: str, address: str, *, quiet: bool = True) -> ClientProcess:
        client = ClientProcess(name, address, tmp_path / f"{name}-{next(numbers)}.log")
        started.append((client, quiet))
        return client

    try:
        yield start
        for client, quiet in started:
            assert client.close() == 0, f"{client.name} did not leave in order; its log:\n{client.log_text()}"
            assert not quiet or client.complaints() == [], f"{client.name} complains"
    finally:
        for client, _ in started:
            client.clean_up()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, daemon: Daemon, start_client: StartClient) -> ClientProcess:
    """Each client library in turn, against the daemon."""
    return start_client(request.param, daemon.address)
