"""Real clients and a daemon that is killed, is away, and loads: they wait, and never take that for "no offset"."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import Code
from tests.clients.conftest import StartClient
from tests.clients.counters import refusals
from tests.clients.process import AIOKAFKA, CLIENTS, CONFLUENT, KAFKA_PYTHON, ClientProcess, ClientRefused
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon
from tests.fakes.ports import lasting_port

pytestmark = pytest.mark.integration

GROUP = "billing"
ORDERS = ("orders", 0)
#: So many refusals of one API show that the client asked again after one.
REFUSALS_SEEN = 4


class Lives:
    """A daemon whose lives all listen on one port, as clients expect of a broker that was restarted."""

    def __init__(self, directory: Path) -> None:
        self.daemon = Daemon(directory)
        self._listen = f"127.0.0.1:{lasting_port()}"
        self._hold = directory / "hold"

    def start(self) -> Daemon:
        """Start a life that serves."""
        self.daemon.failpoints = ""
        return self.daemon.start(listen=self._listen)

    def start_loading(self) -> Daemon:
        """Start a life that listens and goes on loading until it is let."""
        self._hold.touch()
        self.daemon.failpoints = f"load_slot=hold:{self._hold}"
        return self.daemon.start(listen=self._listen, ready=False)

    def let_load(self) -> None:
        """Let the load go on, and wait for its end."""
        self._hold.unlink()
        self.daemon.wait_until(lambda: self.daemon.readiness()[0] == 200)

    def wait_for_refusals(self, api: str) -> None:
        """Wait until clients have been told often enough that the broker loads."""
        refused = (api, int(Code.COORDINATOR_LOAD_IN_PROGRESS))
        self.daemon.wait_until(lambda: refusals(self.daemon)[refused] >= REFUSALS_SEEN)


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    """A daemon to be killed and started again, in its first life."""
    found = Lives(tmp_path / "daemon")
    try:
        found.start()
        yield found
    finally:
        found.daemon.clean_up()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, lives: Lives, start_client: StartClient) -> ClientProcess:
    """Each client library in turn; it may log that its connection is gone."""
    return start_client(request.param, lives.daemon.address, quiet=False)


def test_a_commit_is_there_after_a_kill(lives: Lives, client: ClientProcess, start_client: StartClient) -> None:
    """For the client that made it, which has to connect again, and for one that never knew the first life."""
    offsets = {("orders", number): number * 10 for number in range(20)}
    client.commit(GROUP, offsets)

    lives.daemon.kill()
    lives.start()

    assert client.committed(GROUP, offsets) == offsets
    assert start_client(client.name, lives.daemon.address).committed(GROUP, offsets) == offsets


def test_a_read_while_the_broker_loads_waits_for_the_offset(
    lives: Lives, client: ClientProcess, start_client: StartClient
) -> None:
    """A client that took the refusal for "no offset" would answer none, or start over."""
    client.commit(GROUP, {ORDERS: 42})
    lives.daemon.kill()
    lives.start_loading()
    fresh = start_client(client.name, lives.daemon.address, quiet=False)

    for each in (client, fresh):
        each.send("committed", GROUP, [ORDERS])
    lives.wait_for_refusals("OffsetFetch")
    answered_early = client.has_answered() or fresh.has_answered()
    lives.let_load()

    assert not answered_early
    assert client.receive() == [[*ORDERS, 42]]
    assert fresh.receive() == [[*ORDERS, 42]]


@pytest.mark.parametrize("name", [KAFKA_PYTHON, AIOKAFKA])
def test_a_consumer_that_starts_while_the_broker_loads_starts_at_its_offset(
    name: str, lives: Lives, start_client: StartClient
) -> None:
    """librdkafka tells its position only after a message."""
    start_client(name, lives.daemon.address, quiet=False).commit(GROUP, {ORDERS: 42})
    lives.daemon.kill()
    lives.start_loading()
    fresh = start_client(name, lives.daemon.address, quiet=False)

    fresh.send("position", GROUP, *ORDERS)
    lives.wait_for_refusals("OffsetFetch")
    answered_early = fresh.has_answered()
    lives.let_load()

    assert not answered_early
    assert fresh.receive() == 42


@pytest.mark.parametrize("name", [KAFKA_PYTHON, AIOKAFKA])
def test_a_commit_while_the_broker_loads_waits_for_it(name: str, lives: Lives, start_client: StartClient) -> None:
    lives.daemon.kill()
    lives.start_loading()
    client = start_client(name, lives.daemon.address, quiet=False)

    client.send("commit", GROUP, [(*ORDERS, 43, "")])
    lives.wait_for_refusals("OffsetCommit")
    answered_early = client.has_answered()
    lives.let_load()

    assert not answered_early
    assert client.receive() is None
    assert stored(lives.daemon, GROUP) == {ORDERS: (43, "")}


def test_librdkafka_gives_a_commit_up_while_the_broker_loads_and_says_so(
    lives: Lives, start_client: StartClient
) -> None:
    """It tries three times, within half a second; then the application must."""
    lives.daemon.kill()
    lives.start_loading()
    client = start_client(CONFLUENT, lives.daemon.address, quiet=False)

    with pytest.raises(ClientRefused, match="COORDINATOR_LOAD_IN_PROGRESS"):
        client.commit(GROUP, {ORDERS: 43})
    lives.let_load()
    client.commit(GROUP, {ORDERS: 44})

    assert client.committed(GROUP, [ORDERS]) == {ORDERS: 44}


def test_an_administrator_is_told_that_the_broker_loads(lives: Lives, client: ClientProcess) -> None:
    """An empty answer would be read as a group without offsets."""
    client.commit(GROUP, {ORDERS: 42})
    lives.daemon.kill()
    lives.start_loading()

    with pytest.raises(ClientRefused, match=r"(Coordinator|Group)LoadInProgress|COORDINATOR_LOAD_IN_PROGRESS"):
        client.group_offsets({GROUP: [ORDERS]})
    lives.let_load()

    assert client.group_offsets({GROUP: [ORDERS]})[GROUP][ORDERS][0] == 42
