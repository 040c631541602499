"""Import, export and reconcile with a real Spark, a real offsetd and a real Kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from offsetd.bench.kafka import KafkaProcess
from offsetd.cli import commands
from offsetd.client import BlockingClient, Committed, TopicPartition
from offsetd.pipeline import session
from offsetd.pipeline.bulk.exporting import read_broker, write_file
from offsetd.pipeline.bulk.importing import import_offsets
from offsetd.pipeline.bulk.reading import read_dump
from offsetd.pipeline.bulk.row import COLUMNS
from tests.fakes.daemon import Daemon, running

# pyspark leaves the socket over which it has collected rows to the garbage collector.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

NASTY = 'a,"b"\n c\\d\r\n é'


@pytest.fixture
def prefix() -> str:
    """Return what the groups of one test begin with."""
    return f"bulk-{uuid4().hex[:8]}"


@pytest.fixture
def client(offsets_daemon: Daemon) -> Iterator[BlockingClient]:
    with BlockingClient(offsets_daemon.address) as made:
        yield made


@pytest.fixture
def run(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a way to run commands in the session of the tests, which must not be stopped."""

    @contextmanager
    def shared(*_args: object, **_options: object) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(session, "spark_session", shared)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(commands, ["pipeline", *arguments])

    return invoke


def test_an_import_accounts_for_every_row(
    run: Any, offsets_daemon: Daemon, client: BlockingClient, prefix: str, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    g = prefix
    file.write_text(
        "topic,group,partition,offset,metadata\n"
        f"t,{g}-a,0,5,hello\nt,{g}-a,1,6,\nt,{g}-b,0,7,\nt,{g}-b,0,7,\n"  # the last two are the same
        f"t,{g}-b,x,7,\nt,{g}-c,0,1,\nt,{g}-c,0,2,\nt,{g}-d,0\n"  # no number; a contradiction; too short
        f"t,{g}-e,0,9,{'m' * 5000}\n"  # more metadata than a broker takes
    )
    refused = tmp_path / "refused.csv"

    result = run("import", str(file), "--to", offsets_daemon.address, "--refused", str(refused))

    assert result.exit_code == 1, result.output
    assert "9 rows: 4 committed, 1 refused, 4 malformed" in result.output
    assert client.fetch(f"{g}-a") == {("t", 0): Committed(5, "hello"), ("t", 1): Committed(6)}
    assert client.fetch(f"{g}-b") == {("t", 0): Committed(7)}
    assert client.fetch(f"{g}-c") == client.fetch(f"{g}-e") == {}
    lines = refused.read_text().splitlines()
    assert len(lines) == 6
    assert any(f'"{g}-e","t",0,9,12,"OFFSET_METADATA_TOO_LARGE' in line for line in lines)
    assert sum("offsets 1 and 2" in line for line in lines) == 2


def test_a_dry_run_commits_nothing(
    run: Any, offsets_daemon: Daemon, client: BlockingClient, prefix: str, tmp_path: Path
) -> None:
    file = tmp_path / "one.csv"
    file.write_text("t,0,5\n")

    result = run("import", str(file), "--to", offsets_daemon.address, "--group", prefix, "--dry-run")

    assert (result.exit_code, result.output) == (0, "1 rows, 1 groups, 0 malformed. Nothing was committed.\n")
    assert client.fetch(prefix) == {}
    assert run("import", str(file), "--to", offsets_daemon.address, "--group", prefix).exit_code == 0
    assert run("import", str(file), "--to", offsets_daemon.address, "--group", prefix).exit_code == 0
    assert client.fetch(prefix) == {("t", 0): Committed(5)}


def test_what_cannot_be_used_is_exit_code_3(run: Any, offsets_daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    file.write_text("t,0,5\n")

    assert run("import", str(tmp_path / "none.csv"), "--to", offsets_daemon.address).exit_code == 3
    assert run("import", str(file), "--to", offsets_daemon.address).exit_code == 3
    assert run("import", str(file), "--to", "127.0.0.1:1", "--group", "g").exit_code == 3
    assert run("import", str(file), "--to", "nowhere").exit_code == 2
    assert run("export", "--from", "127.0.0.1:1", "--out", str(tmp_path / "x.csv")).exit_code == 3
    assert run("export", "--from", "127.0.0.1:1", "--out", str(tmp_path / "x.txt")).exit_code == 2
    assert run("reconcile", "127.0.0.1:1", str(file)).exit_code == 3


@pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
def test_an_export_imports_back_identical(spark: Any, tmp_path: Path, name: str) -> None:
    stored = {
        "plain": {TopicPartition("t", n): Committed(n * 10) for n in range(3)},
        'odd "name", with\ncomma': {TopicPartition("t", 0): Committed(2**62, NASTY, 4)},
        " spaces ": {TopicPartition("u", 9): Committed(0, "", 0)},
    }
    with running(tmp_path / "one") as one, BlockingClient(one.address) as client:
        for group, offsets in stored.items():
            client.commit(group, offsets)
        assert write_file(read_broker(spark, one.address).select(*COLUMNS), tmp_path / name) == 5
    with running(tmp_path / "two") as two, BlockingClient(two.address) as client:
        summary, refused = import_offsets(spark, read_dump(spark, str(tmp_path / name)), two.address)
        assert (summary.rows, summary.committed, refused.count()) == (5, 5, 0)
        assert client.fetch_groups(dict.fromkeys(stored)) == stored


def test_a_large_group_travels_in_several_requests(
    spark: Any, offsets_daemon: Daemon, client: BlockingClient, prefix: str
) -> None:
    rows = spark.range(3_000).selectExpr(
        f"'{prefix}' AS group", "'t' AS topic", "int(id) AS partition", "id AS offset", "repeat('m', 400) AS metadata"
    )

    summary, _ = import_offsets(spark, rows, offsets_daemon.address)

    assert (summary.rows, summary.committed) == (3_000, 3_000)
    assert summary.requests >= 3
    found = client.fetch(prefix)
    assert len(found) == 3_000
    assert found[TopicPartition("t", 2_999)] == Committed(2_999, "m" * 400)


def test_rows_that_no_broker_takes_are_refused_and_counted(spark: Any) -> None:
    rows = spark.range(50).selectExpr("'g' || id AS group", "'t' AS topic", "0 AS partition", "id AS offset")

    summary, refused = import_offsets(spark, rows, "127.0.0.1:1")

    assert (summary.rows, summary.refused) == (50, 50)
    assert all("no answer" in row["why"] for row in refused.collect())


def test_two_brokers_and_a_dump_are_reconciled(
    run: Any, offsets_daemon: Daemon, kafka: KafkaProcess, client: BlockingClient, prefix: str, tmp_path: Path
) -> None:
    """Kafka's groups of other tests are there too, so only one group is asked for."""
    dump = tmp_path / "zookeeper.txt"
    dump.write_text(f"/consumers/{prefix}/offsets/t/0:5\n/consumers/{prefix}/offsets/t/1:9\n/controller 1\n")
    client.commit(prefix, {("t", 0): Committed(5, "x"), ("t", 1): Committed(9)})
    same = run("reconcile", offsets_daemon.address, str(dump), "--group", prefix)
    assert same.exit_code == 0, same.output

    client.commit(prefix, {("t", 1): 12, ("t", 2): 1})
    out = tmp_path / "rows.csv"
    other = run("reconcile", offsets_daemon.address, str(dump), "--group", prefix, "--out", str(out))
    assert other.exit_code == 1, other.output
    assert f"{prefix} t/1: left ahead by 3 (12, 9)" in other.output
    assert f"{prefix} t/2: only left (1, None)" in other.output
    assert len(out.read_text().splitlines()) == 4

    dump.write_text(f"/consumers/{prefix}/offsets/t/0:5\n/consumers/{prefix}/offsets/t/1:oops\n")
    broken = run("reconcile", offsets_daemon.address, str(dump), "--group", prefix)
    assert broken.exit_code == 3, broken.output
    assert "oops" in broken.output
