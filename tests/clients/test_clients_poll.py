"""Real clients that also poll: offsetd holds no messages, and must not make them err or spin."""

import time

import pytest

from tests.clients.conftest import StartClient
from tests.clients.counters import requests
from tests.clients.process import AIOKAFKA, KAFKA_PYTHON, ClientProcess
from tests.fakes.daemon import Daemon

pytestmark = pytest.mark.integration

#: What the client processes ask Fetch to wait.
FETCH_WAIT_SECONDS = 0.1
#: Finding the broker, the topic, the coordinator and the position takes a handful of requests, once.
SET_UP_REQUESTS_MAX = 20
#: One may come at the very start, and one is under way at the end.
FETCHES_MORE_MAX = 2
POLL_SECONDS = 0.5


def test_polling_a_partition_with_an_offset_is_quiet(
    client: ClientProcess, daemon: Daemon, start_client: StartClient
) -> None:
    """A client that is answered wrongly asks thousands of times in a second, or raises."""
    group, place = f"poll-{client.name}", (f"polled-{client.name}", 5)
    # Another process, because librdkafka remembers for a while that it was asked for a topic before there was one.
    writer = start_client(client.name, daemon.address)
    writer.commit(group, {place: 42})
    writer.close()
    before, began = requests(daemon), time.monotonic()

    polled = client.poll(group, [place], POLL_SECONDS)

    asked, took = requests(daemon) - before, time.monotonic() - began
    assert (polled.records, polled.errors) == (0, [])
    assert 0 < asked.pop("Fetch") <= took / FETCH_WAIT_SECONDS + FETCHES_MORE_MAX
    assert asked.total() <= SET_UP_REQUESTS_MAX, asked


def test_polling_a_topic_that_nobody_knew_is_quiet(client: ClientProcess, daemon: Daemon) -> None:
    before, began = requests(daemon), time.monotonic()

    polled = client.poll(f"poll-unknown-{client.name}", [(f"unknown-{client.name}", 0)], POLL_SECONDS)

    asked, took = requests(daemon) - before, time.monotonic() - began
    assert (polled.records, polled.errors) == (0, [])
    # librdkafka alone does not ask for the topic to be made, and waits for it without a Fetch.
    assert asked.pop("Fetch", 0) <= took / FETCH_WAIT_SECONDS + FETCHES_MORE_MAX
    assert asked.total() <= SET_UP_REQUESTS_MAX, asked


def test_the_ends_of_a_partition_are_what_was_committed(
    client: ClientProcess, daemon: Daemon, start_client: StartClient
) -> None:
    """The end is the highest offset of any group; what only means an end is left out of it."""
    topic = f"ends-{client.name}"
    writer = start_client(client.name, daemon.address)
    for group, offset in {"low": 5, "high": 900, "far": 2**63 - 1}.items():
        writer.commit(f"{group}-{client.name}", {(topic, 0): offset, (topic, 1): 0})

    ends = client.ends(f"low-{client.name}", [(topic, 0), (topic, 1)])

    assert ends == {(topic, 0): (0, 900), (topic, 1): (0, 0)}


def test_a_time_is_found_in_no_message(client: ClientProcess, daemon: Daemon, start_client: StartClient) -> None:
    group, topic = f"times-{client.name}", f"times-{client.name}"
    start_client(client.name, daemon.address).commit(group, {(topic, 0): 42})

    assert client.call("offset_at", group, topic, 0, 1_700_000_000_000) is None


@pytest.mark.parametrize("name", [KAFKA_PYTHON, AIOKAFKA])
def test_a_consumer_starts_at_its_committed_offset(name: str, daemon: Daemon, start_client: StartClient) -> None:
    """librdkafka tells its position only after a message."""
    topic = f"started-{name}"
    client = start_client(name, daemon.address)
    client.commit(f"behind-{name}", {(topic, 0): 41})
    client.commit(f"ahead-{name}", {(topic, 0): 43})

    assert client.call("position", f"behind-{name}", topic, 0) == 41
    assert client.call("position", f"new-{name}", topic, 0) == 0
    assert client.call("start_at", f"behind-{name}", topic, 0, "end") == 43
    assert client.call("start_at", f"behind-{name}", topic, 0, "beginning") == 0
