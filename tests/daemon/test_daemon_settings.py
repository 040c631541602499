"""Where `offsetd serve` takes its settings from, as the line that it starts with tells."""

from pathlib import Path

from tests.fakes.daemon import Daemon

FILE_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
ENVIRONMENT_CLUSTER = "AAECAwQFBgcICQoLDA0ODw"


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    """Each source is alone once, and all three at once: what a flag says, no other source may."""
    file = tmp_path / "offsetd.toml"
    file.write_text(
        f'broker.id = 5\ncluster.id = "{FILE_CLUSTER}"\nlisteners = "127.0.0.1:1"\nhttp.listeners = "127.0.0.1:2"\n'
        'advertised.listeners = "file.example:3"\ndata.dir = "/nowhere/file"\n'
    )
    daemon = Daemon(
        tmp_path,
        {
            "config": file,
            "cluster.id": ENVIRONMENT_CLUSTER,
            "listeners": "127.0.0.1:4",
            "http.listeners": "127.0.0.1:5",
            "data.dir": "/nowhere/environment",
        },
    )
    try:
        # The flags ask for free ports and for a directory of the test's own.
        daemon.start()
        (started,) = daemon.events("broker_started")
        assert daemon.terminate() == 0
    finally:
        daemon.clean_up()

    assert started["broker_id"] == 5
    assert started["advertised"] == "file.example:3"
    assert started["cluster_id"] == ENVIRONMENT_CLUSTER
    assert started["listen"] not in ("127.0.0.1:1", "127.0.0.1:4")
    assert started["http_port"] not in (2, 5)
    assert started["data"] == str(daemon.data)
    assert (daemon.data / "broker-5").is_dir()


def test_nothing_given_listens_where_kafka_clients_look(tmp_path: Path) -> None:
    """What is advertised is where it listens, with the port that was free."""
    daemon = Daemon(tmp_path)
    try:
        daemon.start()
        (started,) = daemon.events("broker_started")
    finally:
        daemon.clean_up()

    assert (started["broker_id"], started["advertised"]) == (1, started["listen"])
    assert len(started["cluster_id"]) == 22
