"""Compaction of loads: row by row the same, at every instant, wherever it is killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from offsetd.client.position import TopicPartition
from offsetd.failpoint import EXIT_CODE, VARIABLE
from offsetd.pipeline.compacting.compactor import Outcome, Wish, compact, sweep_replaced
from offsetd.pipeline.compacting.fold import plan_folds, sources_of
from offsetd.pipeline.compacting.merge import compare, merge
from offsetd.pipeline.compacting.readers import undisturbed
from offsetd.pipeline.load.footers import read_files
from offsetd.pipeline.load.manifest import DataFile, Manifest
from offsetd.pipeline.load.plan import Check, Range, Reason
from offsetd.pipeline.load.refusal import LoadRefused, NotVerified
from offsetd.pipeline.load.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
ROWS = 40
PARTITIONS = 5
POINTS = (
    "compact_staged",
    "compact_written",
    "compact_synced",
    "compact_before_exchange",
    "compact_exchanged",
    "compact_kept",
)


def publish(table: Table, number: int, topics: Sequence[str] = ("orders", "payments")) -> None:
    """Publish a load of small files, one for each partition, as the loader does."""
    start, end = (number - 1) * ROWS, number * ROWS
    keys = [TopicPartition(topic, partition) for topic in topics for partition in range(PARTITIONS)]
    with table.stage(number) as stage:
        for key in keys:
            offsets = range(start, end)
            data = {
                "key": [None if at % 3 else b"k%d" % at for at in offsets],
                "value": [b"%s-%d-%d" % (key.topic.encode(), key.partition, at) for at in offsets],
                "headers": [None if at % 2 else [{"key": "h", "value": b"%d" % at}] for at in offsets],
                "timestamp": [1_700_000_000_000_000 + at for at in offsets],
                "partition": [key.partition] * ROWS,
                "offset": list(offsets),
            }
            path = stage / f"topic={key.topic}" / "day=2026-11-18" / f"part-{key.partition:05d}-{number}.snappy.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(pa.table(data, schema=SCHEMA), path, row_group_size=16)
        (stage / "_SUCCESS").touch()
        files = read_files(stage)
        ranges = tuple(
            Range(topic=key.topic, partition=key.partition, start=start, end=end, reason=Reason.MANIFEST)
            for key in keys
        )
        table.publish(
            stage,
            Manifest(
                number=number,
                group="lake",
                writer="w",
                created_at="2026-11-18T14:05:00+00:00",
                value_format="raw",
                ranges=ranges,
                rows={item.key: item.records for item in ranges},
                positions={item.key: item.end for item in ranges},
                checks=dict.fromkeys(topics, Check.EXACT),
                files=files,
            ),
        )


def visible(out: Path) -> list[Path]:
    """List as readers do: names that begin with `_` or `.` are not seen."""
    return [
        path
        for path in sorted(out.rglob("*.parquet"))
        if not any(part.startswith(("_", ".")) for part in path.relative_to(out).parts)
    ]


def rows(out: Path) -> list[dict[str, Any]]:
    """Return every row that readers see, in order, with its topic."""
    found = []
    for path in visible(out):
        topic = path.parent.parent.name.partition("=")[2]
        found += [{**row, "topic": topic} for row in parquet.ParquetFile(path).read().to_pylist()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(str(tmp_path / "lake"))
    for number in (1, 2):
        publish(made, number)
    return made


def test_folding_leaves_every_row_and_one_file_for_each_topic_and_day(table: Table) -> None:
    before, manifest = rows(table.out), table.manifest(1)

    outcomes = list(compact(table, Wish()))

    assert [(outcome.number, outcome.files_before, outcome.files_after, outcome.done) for outcome in outcomes] == [
        (1, 10, 2, "folded"),
        (2, 10, 2, "folded"),
    ]
    assert len(before) == 2 * 2 * PARTITIONS * ROWS
    assert rows(table.out) == before
    assert len(visible(table.out)) == 4
    after = table.manifest(1)
    assert (after.ranges, after.rows, after.positions, after.writer) == (
        manifest.ranges,
        manifest.rows,
        manifest.positions,
        manifest.writer,
    )
    for source in sources_of(after.files):
        assert source.bytes == (table.directory(1) / source.path).stat().st_size
        assert [(entry.partition, entry.rows, entry.first, entry.last) for entry in source.entries] == [
            (partition, ROWS, 0, ROWS - 1) for partition in range(PARTITIONS)
        ]


def test_a_second_run_finds_nothing_to_fold_and_the_next_load_goes_on(table: Table) -> None:
    list(compact(table, Wish()))
    assert list(compact(table, Wish())) == []
    publish(table, 3)
    assert [outcome.number for outcome in compact(table, Wish())] == [3]
    assert len(rows(table.out)) == 3 * 2 * PARTITIONS * ROWS


def test_only_loads_before_the_number_are_folded_and_a_dry_run_changes_nothing(table: Table) -> None:
    listed = visible(table.out)
    assert [outcome.done for outcome in compact(table, Wish(dry_run=True))] == ["would be folded"] * 2
    assert visible(table.out) == listed
    assert [outcome.number for outcome in compact(table, Wish(before=2))] == [1]


def test_files_of_over_half_the_target_stay_and_others_fill_it_in_order() -> None:
    def file(partition: int, size: int) -> DataFile:
        return DataFile(
            path=f"topic=a/day=d/{partition}", topic="a", partition=partition, rows=1, bytes=size, first=0, last=0
        )

    files = [file(at, size) for at, size in enumerate((40, 30, 90, 30, 20, 51))]
    folds = plan_folds(sources_of(files), target_bytes=100)
    assert sorted([source.bytes for source in fold.sources] for fold in folds) == [[20], [40, 30, 30], [51], [90]]


def test_a_large_file_keeps_its_name_and_its_bytes(table: Table) -> None:
    largest = max((source.bytes for source in sources_of(table.manifest(1).files)), default=0)
    big = table.directory(1) / table.manifest(1).files[0].path
    inode = big.stat().st_ino
    # Half the target is below every file: all stay, and nothing is exchanged.
    assert list(compact(table, Wish(target_bytes=largest))) == []
    assert big.stat().st_ino == inode


@pytest.mark.parametrize("fault", ["missing", "extra", "resized"])
def test_a_load_that_is_not_what_its_manifest_says_is_refused_and_untouched(table: Table, fault: str) -> None:
    file = table.directory(1) / table.manifest(1).files[0].path
    if fault == "missing":
        file.unlink()
    elif fault == "extra":
        (file.parent / "stranger.parquet").write_bytes(file.read_bytes())
    else:
        file.write_bytes(file.read_bytes() + b"x")
    listed = visible(table.out)

    with pytest.raises(LoadRefused, match="does not hold what its manifest says"):
        list(compact(table, Wish()))

    assert visible(table.out) == listed


def test_a_folded_file_with_one_other_value_does_not_pass(tmp_path: Path) -> None:
    good = pa.table({"offset": [1, 2, 3], "value": ["a", "b", "c"]})
    parquet.write_table(good, tmp_path / "source")
    for name, data in {
        "changed": {"offset": [1, 2, 3], "value": ["a", "x", "c"]},
        "short": {"offset": [1, 2], "value": ["a", "b"]},
        "long": {"offset": [1, 2, 3, 3], "value": ["a", "b", "c", "c"]},
    }.items():
        parquet.write_table(pa.table(data), tmp_path / name)
        with pytest.raises(NotVerified):
            compare([tmp_path / "source"], tmp_path / name)
    compare([tmp_path / "source"], tmp_path / "source")


def run_killed(out: Path, failpoints: str) -> int:
    """Run the command in a process of its own, with failpoints; return its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "offsetd", "pipeline", "compact", "--out", str(out)],
        env={**os.environ, VARIABLE: failpoints},
        capture_output=True,
        timeout=120,
        check=False,
    ).returncode


@pytest.mark.crash
@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_each_row_is_there_once_and_the_next_run_goes_on(table: Table, point: str) -> None:
    before = rows(table.out)

    assert run_killed(table.out, f"{point}=exit") == EXIT_CODE

    assert rows(table.out) == before
    publish(table, 3)
    assert {outcome.number for outcome in compact(table, Wish())} >= {2, 3}
    assert len(rows(table.out)) == len(before) * 3 // 2
    assert rows(table.out)[:ROWS] == before[:ROWS]


def test_a_full_disk_leaves_the_load_as_it_was(table: Table) -> None:
    listed = visible(table.out)
    assert run_killed(table.out, "compact_written=error:ENOSPC") == 1
    assert visible(table.out) == listed
    assert [path for path in table.staging.iterdir() if path.is_dir()] == []


def count_once(out: Path) -> int:
    """Count as a query does: list everything, then read; begin anew if a listed file was folded meanwhile."""
    while True:
        try:
            return sum(parquet.read_metadata(path).num_rows for path in visible(out))
        except FileNotFoundError:
            continue


def test_a_reader_that_lists_and_reads_all_the_time_counts_the_same_always(tmp_path: Path) -> None:
    table = Table(str(tmp_path / "lake"))
    for number in range(1, 9):
        publish(table, number, topics=("orders",))
    counts: list[int] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            counts.append(count_once(table.out))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        folded = list(compact(table, Wish()))
    finally:
        ended.set()
        reader.join()

    assert len(folded) == 8
    assert counts
    assert set(counts) == {8 * PARTITIONS * ROWS}


def test_readers_with_the_lock_find_every_file_that_they_listed(table: Table) -> None:
    with undisturbed(table.out):
        listed = visible(table.out)
        outcomes = list(compact(table, Wish(wait_seconds=0)))
        assert all(path.exists() for path in listed)
    assert {outcome.done for outcome in outcomes} == {"left as it is: readers held the table for 0 s"}
    assert [outcome.done for outcome in compact(table, Wish())] == ["folded", "folded"]


def test_an_open_directory_still_has_the_old_files_until_they_are_swept(table: Table) -> None:
    leaf = table.directory(1) / "topic=orders" / "day=2026-11-18"
    names = sorted(path.name for path in leaf.iterdir())
    handle = os.open(leaf, os.O_RDONLY)
    try:
        list(compact(table, Wish()))
        assert sorted(os.listdir(handle)) == names  # noqa: PTH208  # a directory that has lost its name
        assert sweep_replaced(table, older_than=timedelta(hours=1)) == 0
        assert sweep_replaced(table, older_than=timedelta(0)) == 2
        assert os.listdir(handle) == []  # noqa: PTH208
    finally:
        os.close(handle)


def test_a_load_that_another_run_folded_meanwhile_is_left_alone(table: Table, tmp_path: Path) -> None:
    before = rows(table.out)
    hold = tmp_path / "paused"
    first = subprocess.Popen(
        [sys.executable, "-c", _PAUSED, str(table.out), str(hold)], stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    try:
        assert first.stdout.readline() == "written\n"
        assert [outcome.done for outcome in compact(table, Wish(before=2))] == ["folded"]
        first.send_signal(signal.SIGUSR1)
        assert first.stdout.read() == "left as it is: another run changed it meanwhile\n"
        assert first.wait(60) == 0
    finally:
        first.kill()
        first.wait()
        first.stdout.close()
    assert rows(table.out) == before


#: Folds load 1, and waits for a signal when its twin is written.
_PAUSED = """
import signal, sys
from offsetd.pipeline.compacting import compactor
from offsetd.pipeline.load.table import Table
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
def pause(name):
    if name == "compact_synced":
        print("written", flush=True)
        signal.sigwait([signal.SIGUSR1])
compactor.failpoint = pause
for outcome in compactor.compact(Table(sys.argv[1]), compactor.Wish(before=2)):
    print(outcome.done)
"""


@pytest.mark.integration
def test_spark_reads_a_load_that_it_wrote_the_same_after_folding(spark: "SparkSession", tmp_path: Path) -> None:
    table = Table(str(tmp_path / "lake"))
    publish(table, 1)
    # As Spark writes them itself, old timestamps and all.
    frame = spark.read.parquet(str(table.out))
    source, target = tmp_path / "spark", tmp_path / "merged.parquet"
    frame.drop("topic", "day", "load").repartition(4).write.parquet(str(source))
    paths = sorted(source.glob("*.parquet"))
    merge(paths, target)
    compare(paths, target)
    was, now = spark.read.parquet(str(source)), spark.read.parquet(str(target))
    assert was.schema == now.schema
    assert was.count() == now.count() == 2 * PARTITIONS * ROWS
    assert was.exceptAll(now).count() == 0

    columns = ("topic", "partition", "offset", "hex(value)", "timestamp")
    wanted = {tuple(row) for row in frame.selectExpr(*columns).collect()}
    outcomes: list[Outcome] = list(compact(table, Wish()))
    again = spark.read.parquet(str(table.out)).selectExpr(*columns).collect()
    assert len(outcomes) == 1
    assert len(again) == len(wanted)
    assert {tuple(row) for row in again} == wanted
