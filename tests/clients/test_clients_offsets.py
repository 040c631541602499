"""Real clients commit and read back."""

import pytest

from tests.clients.conftest import StartClient
from tests.clients.process import AIOKAFKA, CLIENTS, CONFLUENT, KAFKA_PYTHON, ClientProcess, ClientRefused
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon

pytestmark = pytest.mark.integration

OFFSET_MAX = 2**63 - 1


def test_a_committed_offset_is_read_back(client: ClientProcess) -> None:
    group = f"one-{client.name}"

    client.commit(group, {("orders", 0): 42})

    assert client.committed(group, [("orders", 0)]) == {("orders", 0): 42}


def test_many_partitions_of_many_topics_are_committed_together(client: ClientProcess, daemon: Daemon) -> None:
    group = f"many-{client.name}"
    offsets = {(f"topic-{number % 7}", number): number * 1000 for number in range(50)}

    client.commit(group, offsets)

    assert client.committed(group, offsets) == offsets
    assert {place: offset for place, (offset, _) in stored(daemon, group).items()} == offsets


def test_the_last_of_two_commits_is_read_back(client: ClientProcess) -> None:
    group = f"twice-{client.name}"

    client.commit(group, {("orders", 0): 42, ("orders", 1): 7})
    client.commit(group, {("orders", 0): 41})
    client.commit(group, {("orders", 0): 41})

    assert client.committed(group, [("orders", 0), ("orders", 1)]) == {("orders", 0): 41, ("orders", 1): 7}


def test_metadata_is_kept_as_it_was_sent(client: ClientProcess, daemon: Daemon) -> None:
    """librdkafka sends a NUL behind its metadata; it is not ours to take away."""
    group = f"metadata-{client.name}"
    nul = "\0" if client.name == CONFLUENT else ""

    client.commit(group, {("orders", 0): (42, "host-7 \N{SNOWMAN}"), ("orders", 1): 43})

    assert stored(daemon, group) == {("orders", 0): (42, "host-7 \N{SNOWMAN}" + nul), ("orders", 1): (43, "")}


def test_a_group_without_a_commit_has_no_offset(client: ClientProcess) -> None:
    assert client.committed(f"none-{client.name}", [("orders", 0)]) == {("orders", 0): None}


def test_a_topic_that_nobody_knew_is_committed_to(client: ClientProcess) -> None:
    """Kafka refuses with a code that two of the libraries would retry for ever."""
    group, topic = f"unknown-{client.name}", f"never-seen-{client.name}"

    client.commit(group, {(topic, 3): 5})

    assert client.committed(group, [(topic, 3), (topic, 4)]) == {(topic, 3): 5, (topic, 4): None}


def test_groups_do_not_see_each_other(client: ClientProcess) -> None:
    groups = {f"group-{number}-{client.name}": number for number in range(5)}

    for group, offset in groups.items():
        client.commit(group, {("orders", 0): offset})

    for group, offset in groups.items():
        assert client.committed(group, [("orders", 0)]) == {("orders", 0): offset}


def test_where_a_consumer_stands_is_committed(client: ClientProcess) -> None:
    group = f"position-{client.name}"

    client.call("commit_position", group, "orders", 0, 17)

    assert client.committed(group, [("orders", 0)]) == {("orders", 0): 17}


@pytest.mark.parametrize("reader", CLIENTS)
@pytest.mark.parametrize("writer", CLIENTS)
def test_another_process_reads_what_was_committed(
    writer: str, reader: str, daemon: Daemon, start_client: StartClient
) -> None:
    group = f"from-{writer}-to-{reader}"
    offsets = {("orders", 0): 42, ("orders", 1): 0, ("payments", 9): OFFSET_MAX - 1}

    start_client(writer, daemon.address).commit(group, offsets)

    assert start_client(reader, daemon.address).committed(group, offsets) == offsets


def test_the_greatest_offset_is_kept_as_it_is(client: ClientProcess) -> None:
    group = f"greatest-{client.name}"

    client.commit(group, {("orders", 0): OFFSET_MAX})

    assert client.committed(group, [("orders", 0)]) == {("orders", 0): OFFSET_MAX}


@pytest.mark.parametrize("offset", [-1, -2])
@pytest.mark.parametrize("name", [KAFKA_PYTHON, AIOKAFKA])
def test_a_negative_offset_is_kept_as_it_is(name: str, offset: int, daemon: Daemon, start_client: StartClient) -> None:
    """Some tools commit -1 and -2 to mean the end and the start of a log."""
    group = f"negative{offset}-{name}"
    client = start_client(name, daemon.address)

    client.commit(group, {("orders", 0): (offset, "reset")})

    assert stored(daemon, group) == {("orders", 0): (offset, "reset")}
    assert client.group_offsets({group: None}) == {group: {("orders", 0): (offset, "reset")}}


def test_librdkafka_itself_refuses_a_negative_offset(daemon: Daemon, start_client: StartClient) -> None:
    client = start_client(CONFLUENT, daemon.address)

    with pytest.raises(ClientRefused, match="_NO_OFFSET"):
        client.commit("negative-confluent", {("orders", 0): -2})

    assert stored(daemon, "negative-confluent") == {}


def test_metadata_that_is_too_long_fails_only_its_partition(client: ClientProcess, daemon: Daemon) -> None:
    group = f"too-long-{client.name}"

    with pytest.raises(ClientRefused, match=r"OffsetMetadataTooLarge|OFFSET_METADATA_TOO_LARGE"):
        client.commit(group, {("orders", 0): (1, "x" * 5000), ("orders", 1): 2})

    assert stored(daemon, group) == {("orders", 1): (2, "")}
