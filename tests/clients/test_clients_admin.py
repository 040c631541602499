"""Admin clients: the cluster, its topics, and groups' offsets read and set from outside."""

import pytest

from tests.clients.conftest import StartClient
from tests.clients.kafka_admin import kafka_admin
from tests.clients.process import CONFLUENT, KAFKA_PYTHON, ClientProcess
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon

pytestmark = pytest.mark.integration

BROKER_ID = 1


def test_the_cluster_is_this_broker(client: ClientProcess, daemon: Daemon) -> None:
    cluster = client.call("cluster")

    assert cluster["id"] == daemon.wait_for_event("broker_started")["cluster_id"]
    assert len(cluster["id"]) == 22
    assert cluster["controller"] == BROKER_ID
    assert cluster["brokers"] == [[BROKER_ID, "127.0.0.1", daemon.port]]


def test_topics_are_listed_with_the_partitions_that_commits_named(client: ClientProcess) -> None:
    one, many = f"one-{client.name}", f"many-{client.name}"
    client.commit(f"topics-{client.name}", {(one, 0): 1, (many, 6): 1})

    topics = client.call("topics")

    assert {name: topics.get(name) for name in (one, many)} == {one: 1, many: 7}


def test_the_offsets_of_groups_are_listed(client: ClientProcess) -> None:
    """All topics of a group, named partitions, several groups, and a group that never committed."""
    first, second, nobody = (f"{word}-{client.name}" for word in ("first", "second", "nobody"))
    client.commit(first, {("orders", 0): (1, "a"), ("orders", 1): 2, ("payments", 3): 3})
    client.commit(second, {("orders", 0): 4})

    all_of_one = client.group_offsets({first: None})
    some_of_one = client.group_offsets({first: [("orders", 1), ("payments", 3)]})
    all_of_all = client.group_offsets({first: None, second: None, nobody: None})

    # librdkafka says of empty metadata that there is none.
    none = None if client.name == CONFLUENT else ""
    whole = {("orders", 0): (1, "a"), ("orders", 1): (2, none), ("payments", 3): (3, none)}
    assert all_of_one == {first: whole}
    assert some_of_one == {first: {("orders", 1): (2, none), ("payments", 3): (3, none)}}
    assert all_of_all == {first: whole, second: {("orders", 0): (4, none)}, nobody: {}}


def test_a_partition_without_a_commit_is_listed_as_such(client: ClientProcess) -> None:
    group = f"partly-{client.name}"
    client.commit(group, {("orders", 0): 1})

    found = client.group_offsets({group: [("orders", 0), ("orders", 9), ("nothing", 0)]})[group]

    absent = -1001 if client.name == CONFLUENT else -1
    assert {place: offset for place, (offset, _) in found.items()} == {
        ("orders", 0): 1,
        ("orders", 9): absent,
        ("nothing", 0): absent,
    }


@pytest.mark.parametrize("name", [KAFKA_PYTHON, CONFLUENT])
def test_an_administrator_sets_offsets(name: str, daemon: Daemon, start_client: StartClient) -> None:
    """Of a group that has some, and of one that has none yet. aiokafka cannot."""
    client = start_client(name, daemon.address)
    old, new = f"old-{name}", f"new-{name}"
    client.commit(old, {("orders", 0): 100, ("orders", 1): 100})

    client.alter(old, {("orders", 0): 7, ("payments", 2): 8})
    client.alter(new, {("orders", 0): 9})

    assert client.committed(old, [("orders", 0), ("orders", 1)]) == {("orders", 0): 7, ("orders", 1): 100}
    assert {place: offset for place, (offset, _) in stored(daemon, old).items()} == {
        ("orders", 0): 7,
        ("orders", 1): 100,
        ("payments", 2): 8,
    }
    assert {place: offset for place, (offset, _) in stored(daemon, new).items()} == {("orders", 0): 9}


def test_a_reset_stays_between_the_ends(daemon: Daemon, start_client: StartClient) -> None:
    """The tool itself clips to what ListOffsets answers."""
    client = start_client(KAFKA_PYTHON, daemon.address)
    client.commit("reset", {("reset", number): 50 for number in range(4)})

    results = client.call(
        "reset", "reset", [["reset", 0, 20], ["reset", 1, 90], ["reset", 2, "earliest"], ["reset", 3, "latest"]]
    )

    assert sorted(results) == [["reset", 0, 20], ["reset", 1, 50], ["reset", 2, 0], ["reset", 3, 50]]
    assert [offset for offset, _ in stored(daemon, "reset").values()] == [20, 50, 0, 50]


def test_kafka_pythons_command_line_sets_and_lists_offsets(daemon: Daemon) -> None:
    altered = kafka_admin(daemon, "groups", "alter-offsets", "-g", "by-hand", "-o", "shell:0:30", "-o", "shell:1:40")
    listed = kafka_admin(daemon, "groups", "list-offsets", "-g", "by-hand")
    ends = kafka_admin(daemon, "partitions", "list-offsets", "-t", "shell", "-s", "latest")

    assert altered == {"shell:0": "NoError", "shell:1": "NoError"}
    assert {partition: (row["offset"], row["lag"]) for partition, row in listed["shell"].items()} == {
        "0": (30, 0),
        "1": (40, 0),
    }
    assert {partition: row["offset"] for partition, row in ends["shell"].items()} == {"0": 30, "1": 40}


def test_kafka_pythons_command_line_describes_cluster_and_topics(daemon: Daemon, start_client: StartClient) -> None:
    start_client(KAFKA_PYTHON, daemon.address).commit("described", {("described", 1): 1})

    cluster = kafka_admin(daemon, "cluster", "describe")
    topics = kafka_admin(daemon, "topics", "list")

    assert [broker["port"] for broker in cluster["brokers"]] == [daemon.port]
    assert "described" in topics
