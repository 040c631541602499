"""Loads into a Delta table with a real Kafka, offsetd and Spark: data and positions are one commit of the table."""

from pathlib import Path
from typing import Any

import pytest

from offsetd.client import Committed, TopicPartition
from offsetd.failpoint import arm
from offsetd.pipeline.compacting.compactor import Wish, compact
from offsetd.pipeline.load.observer import Silent
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused, Outrun
from offsetd.pipeline.load.request import TableFormat
from offsetd.pipeline.load.summary import Summary
from offsetd.pipeline.load.table import Table
from tests.pipeline.load.cluster import Cluster, Row


class Delta:
    """One topic, one group, and the Delta table that they fill."""

    def __init__(self, cluster: Cluster, *partitions: int) -> None:
        self.cluster = cluster
        cluster.create(partitions=len(partitions), retention_ms="-1")
        self.bring(*partitions)

    def bring(self, *counts: int, time_ms: int = 1000) -> None:
        for partition, count in enumerate(counts):
            self.cluster.produce([b"v"] * count, partition=partition, time_ms=time_ms)

    def load(self, observer: Silent | None = None, **changes: Any) -> Summary:
        return self.cluster.load(observer, format=TableFormat.DELTA, **changes)

    def rows(self) -> list[Row]:
        frame = self.cluster.spark.read.format("delta").load(str(self.cluster.out))
        return sorted((row[0], row[1], row[2]) for row in frame.select("topic", "partition", "offset").collect())

    def sql(self, statement: str) -> list[Any]:
        return list(self.cluster.spark.sql(statement.format(table=f"delta.`{self.cluster.out}`")).collect())


def test_data_and_positions_are_one_commit_and_news_follow(cluster: Cluster) -> None:
    delta = Delta(cluster, 30, 20, 0)

    first = delta.load()
    delta.bring(0, 5, 0)
    second = delta.load()
    third = delta.load()

    assert (first.total_rows, second.total_rows, third.total_rows) == (50, 5, 0)
    assert delta.rows() == cluster.expected(p0=30, p1=25)
    assert cluster.committed() == {
        (cluster.topic, 0): Committed(30, "load:2"),
        (cluster.topic, 1): Committed(25, "load:2"),
        (cluster.topic, 2): Committed(0, "load:2"),
    }
    history = delta.sql("DESCRIBE HISTORY {table}")
    assert [row["userMetadata"] for row in history] == ["offsetd load 2", "offsetd load 1", None]
    assert list((cluster.out / "_staging").iterdir()) == []

    with pytest.raises(BadRequest, match="OPTIMIZE"):
        list(compact(Table(str(cluster.out)), Wish()))
    delta.sql("RESTORE TABLE {table} TO VERSION AS OF 1")
    with pytest.raises(LoadRefused, match="restored to a version before load 2"):
        delta.load()


def test_positions_outlive_the_commits_that_brought_them(cluster: Cluster) -> None:
    """A checkpoint replaces old commits, OPTIMIZE replaces files, and the next load still begins where it should."""
    delta = Delta(cluster, 30, 20)
    delta.load()
    delta.bring(1, 1)
    delta.load()
    delta.sql("OPTIMIZE {table}")
    log = cluster.out / "_delta_log"
    delta.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    delta.sql("OPTIMIZE {table}")
    for commit in sorted(log.glob("*.json"))[:-1]:
        commit.unlink()
        (log / f".{commit.name}.crc").unlink(missing_ok=True)

    delta.bring(2, 0)
    delta.load()

    assert delta.rows() == cluster.expected(p0=33, p1=21)
    assert cluster.committed()[TopicPartition(cluster.topic, 0)] == Committed(33, "load:3")


class Overtaken(Silent):
    """Lets another loader go by when it is about to publish."""

    def __init__(self, delta: Delta) -> None:
        self.delta = delta

    def stage(self, name: str, total_records: int | None) -> None:  # as it is told
        if name == "publish":
            self.delta.load()


def test_of_two_loaders_one_commits_and_the_other_is_refused(cluster: Cluster) -> None:
    """Both have begun their transactions and written: Delta's own check of the number refuses the second."""
    delta = Delta(cluster, 30, 20)

    with pytest.raises(Outrun, match="another loader was first: load 1"):
        delta.load(Overtaken(delta))

    assert delta.rows() == cluster.expected(p0=30, p1=20)
    assert len(list(cluster.out.glob("load-*"))) == 1, "what the loser wrote was not thrown away"


def test_an_end_before_the_commit_leaves_nothing_and_one_after_it_is_told_by_the_next_run(cluster: Cluster) -> None:
    delta = Delta(cluster, 30, 20)
    for place, ends in (("load_manifested", {}), ("load_published", {"p0": 30, "p1": 20})):
        arm(f"{place}=error:EIO")
        try:
            with pytest.raises(OSError, match=place):
                delta.load()
        finally:
            arm("")
        assert cluster.committed() == {}
        assert delta.rows() == cluster.expected(**ends)

    again = delta.load()

    assert again.total_rows == 0
    assert cluster.committed()[TopicPartition(cluster.topic, 0)] == Committed(30, "load:1")


def test_a_reload_replaces_loads_in_one_commit_unless_optimize_has_joined_them_with_others(cluster: Cluster) -> None:
    delta = Delta(cluster, 10)
    delta.load()
    delta.bring(10, time_ms=2000)
    delta.load()
    delta.bring(10, time_ms=3000)

    reload = delta.load(supersede=True, from_time_ms=2000)

    assert reload.plan.supersedes == (2,)
    assert delta.rows() == cluster.expected(p0=30)
    assert [tuple(row) for row in delta.sql("SELECT load, count(*) FROM {table} GROUP BY 1 ORDER BY 1")] == [
        (1, 10),
        (3, 20),
    ]

    delta.sql("OPTIMIZE {table}")
    with pytest.raises(BadRequest, match="OPTIMIZE has joined them"):
        delta.load(supersede=True, from_time_ms=2000)

    assert delta.rows() == cluster.expected(p0=30)


def test_tables_of_another_kind_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    delta = Delta(cluster, 10)
    foreign = tmp_path / "foreign"
    cluster.spark.range(3).write.format("delta").save(str(foreign))
    cluster.load()

    with pytest.raises(BadRequest, match="plain Parquet"):
        delta.load()
    with pytest.raises(BadRequest, match="no load has brought"):
        delta.load(out=str(foreign))
    with pytest.raises(BadRequest, match="say --format delta"):
        cluster.load(out=str(foreign))
