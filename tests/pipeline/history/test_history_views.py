"""Views of the history on small tables: each is asked what a person would ask, and gives its rows in one order."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from offsetd.pipeline.history import views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# pyspark leaves the socket that brings rows to the driver to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]

SCHEMA = (
    "slot int, sequence bigint, type tinyint, `group` string, topic string, partition int, offset bigint, "
    "commit_time timestamp, client_id string, host string, member string"
)
SAMPLES = "time timestamp, topic string, partition int, log_end bigint"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def commit(
    sequence: int, offset: int, seconds: float, *, group: str = "billing", partition: int = 0, who: str = "a"
) -> tuple[Any, ...]:
    return (0, sequence, 1, group, "orders", partition, offset, at(seconds), who, f"/{who}", f"m-{who}")


def removal(sequence: int, seconds: float, *, topic: str | None = "orders", group: str = "billing") -> tuple[Any, ...]:
    return (0, sequence, 0, group, topic, None if topic is None else 0, None, at(seconds), "admin", "/admin", "")


def table(spark: "SparkSession", *rows: tuple[Any, ...]) -> "DataFrame":
    return spark.createDataFrame(list(rows), SCHEMA)


def rows(frame: "DataFrame", *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns; times as seconds after noon."""
    shown = []
    for row in frame.select(*columns).collect():
        values = (each.astimezone(UTC) - NOON if isinstance(each, datetime) else each for each in row)
        shown.append(tuple(each.total_seconds() if isinstance(each, timedelta) else each for each in values))
    return shown


def test_the_state_of_a_moment_is_the_newest_record_up_to_it(spark: "SparkSession") -> None:
    records = table(
        spark, commit(0, 5, 0), commit(1, 9, 10), commit(2, 3, 10), commit(3, 7, 20), commit(4, 1, 5, partition=1)
    )

    assert rows(views.as_of(records, at(10)), "partition", "offset", "commit_time") == [(0, 3, 10), (1, 1, 5)]


def test_what_was_removed_is_not_shown_until_it_is_committed_anew(spark: "SparkSession") -> None:
    records = table(
        spark, commit(0, 5, 0), removal(1, 1), commit(2, 6, 2), removal(3, 3, topic=None), commit(4, 8, 4, partition=1)
    )

    states = {moment: rows(views.as_of(records, at(moment)), "partition", "offset") for moment in range(5)}
    assert states == {0: [(0, 5)], 1: [], 2: [(0, 6)], 3: [], 4: [(1, 8)]}


def test_commits_are_counted_by_window_and_group(spark: "SparkSession") -> None:
    records = table(
        spark, commit(0, 1, 0), commit(1, 2, 9.9), removal(2, 9.95), commit(3, 3, 10), commit(0, 1, 1, group="audit")
    )

    counted = rows(views.commit_rate(records, timedelta(seconds=10)), "from", "group", "commits", "per_second")
    assert counted == [(0, "audit", 1, 0.1), (0, "billing", 2, 0.2), (10, "billing", 1, 0.1)]


def test_a_rewind_and_a_jump_are_told_with_who_made_them(spark: "SparkSession") -> None:
    records = table(spark, commit(0, 50, 0), commit(1, 20, 1, who="b"), commit(2, 29, 2), commit(3, 39, 3))

    found = rows(views.moves(records, jump_min=10), "time", "kind", "from_offset", "to_offset", "records", "client_id")
    assert found == [(1, "rewind", 50, 20, 30, "b"), (3, "jump", 29, 39, 10, "a")]


def test_a_partition_that_was_removed_between_has_not_moved(spark: "SparkSession") -> None:
    by_itself = table(spark, commit(0, 50, 0), removal(1, 1), commit(2, 0, 2))
    with_its_group = table(spark, commit(0, 50, 0), removal(1, 1, topic=None), commit(2, 0, 2))

    assert views.moves(by_itself, jump_min=1).collect() == []
    assert views.moves(with_its_group, jump_min=1).collect() == []


def test_gaps_are_longer_than_asked_and_the_last_one_has_no_end(spark: "SparkSession") -> None:
    records = table(spark, commit(0, 1, 0), commit(1, 2, 60), commit(2, 3, 121), commit(3, 3, 121, partition=1))

    closed = rows(views.gaps(records, timedelta(seconds=60)), "from", "to", "seconds")
    opened = rows(views.gaps(records, timedelta(seconds=60), until=at(300)), "from", "to", "seconds")
    assert closed == [(60, 121, 61)]
    assert opened == [(121, None, 179), (60, 121, 61)]


def test_groups_expire_by_their_newest_commit(spark: "SparkSession") -> None:
    records = table(
        spark, commit(0, 1, 0), commit(1, 1, 50, partition=1), commit(0, 1, 10, group="audit"),
        commit(0, 1, 5, group="gone"), removal(1, 6, topic=None, group="gone"),
    )  # fmt: skip

    def due(within: float) -> list[tuple[Any, ...]]:
        retention, span = timedelta(seconds=100), timedelta(seconds=within)
        found = views.expiring(records, at(60), retention=retention, within=span)
        return rows(found, "group", "newest_commit", "partitions", "expires")

    assert due(49) == []
    assert due(50) == [("audit", 10, 1, 110)]
    assert due(90) == [("audit", 10, 1, 110), ("billing", 50, 2, 150)]


def test_owners_are_told_when_they_change_and_not_before(spark: "SparkSession") -> None:
    records = table(spark, commit(0, 1, 0), commit(1, 2, 1), commit(2, 3, 2, who="b"), commit(3, 4, 3))

    found = rows(views.owners(records), "time", "offset", "from_member", "member", "from_host", "host")
    assert found == [(2, 3, "m-a", "m-b", "/a", "/b"), (3, 4, "m-b", "m-a", "/b", "/a")]


def test_lag_is_taken_from_the_last_commit_before_each_sample(spark: "SparkSession") -> None:
    records = table(spark, commit(0, 10, 10), commit(1, 30, 20), removal(2, 40), commit(0, 5, 0, partition=1))
    taken = [(at(second), "orders", 0, end) for second, end in ((5, 10), (15, 25), (20, 35), (30, 20), (45, 50))]
    samples = spark.createDataFrame(taken, SAMPLES)

    found = rows(views.lag(records, samples), "time", "partition", "offset", "log_end", "lag")
    assert found == [(15, 0, 10, 25, 15), (20, 0, 30, 35, 5), (30, 0, 30, 20, 0)]


def test_columns_that_need_a_word_have_one(spark: "SparkSession") -> None:
    fields = {field.name: field for field in views.moves(table(spark, commit(0, 1, 0)), jump_min=1).schema}

    assert fields["kind"].metadata == {"comment": "rewind or jump"}
