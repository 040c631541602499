"""Views of the history on small tables: each is asked what a person would ask, of every kind of record."""

from datetime import timedelta
from typing import TYPE_CHECKING

from offsetd.pipeline.history import views
from offsetd.pipeline.history.lag import lag
from tests.histories import Commit, Row
from tests.pipeline.history.told import (
    NOON,
    at,
    commit,
    deletion,
    expiry,
    generation,
    in_ms,
    rows,
    table,
    told,
    touch,
    who,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = "time timestamp, topic string, partition int, log_start bigint, log_end bigint"
INT64_MAX = (1 << 63) - 1


def test_commits_are_counted_by_window_and_group_and_repeats_aside(spark: "SparkSession") -> None:
    records = table(
        spark, commit(1, 0, own_time=-900), commit(2, 9.9), touch(9.92), deletion(9.95), generation(9.97, "a"),
        commit(3, 10), expiry(11), commit(1, 1, group="audit"),
    )  # fmt: skip

    counted = rows(
        views.commit_rate(records, timedelta(seconds=10)), "from", "group", "commits", "repeats", "per_second"
    )
    assert counted == [(0, "audit", 1, 0, 0.1), (0, "billing", 2, 1, 0.2), (10, "billing", 1, 0, 0.1)]


def test_a_rewind_and_a_jump_are_told_with_who_made_them(spark: "SparkSession") -> None:
    records = table(
        spark, commit(50, 0), touch(0.5), commit(20, 1, by="b", metadata="reset"), generation(1.5, "a"), commit(29, 2),
        commit(39, 3),
    )  # fmt: skip

    found = rows(
        views.moves(records, jump_min=10),
        "time", "kind", "from_offset", "to_offset", "records", "client_id", "from_client_id", "metadata",
    )  # fmt: skip
    assert found == [(1, "rewind", 50, 20, 30, "b", "a", "reset"), (3, "jump", 29, 39, 10, "a", "a", "")]


def test_a_partition_that_was_removed_between_has_not_moved(spark: "SparkSession") -> None:
    by_itself = table(spark, commit(50, 0), deletion(1), commit(0, 2))
    with_its_group = table(spark, commit(50, 0), expiry(1), commit(0, 2))

    assert views.moves(by_itself, jump_min=1).collect() == []
    assert views.moves(with_its_group, jump_min=1).collect() == []


def test_a_partition_that_is_named_twice_in_a_request_moves_within_it(spark: "SparkSession") -> None:
    pair = (Row(0, 7, -1, None, ""), Row(0, 4, -1, None, ""))
    records = table(spark, commit(5, 0), Commit("billing", in_ms(1), who("a"), (("orders", pair, None),)))

    assert rows(views.moves(records, jump_min=100), "from_offset", "to_offset") == [(7, 4)]


def test_the_farthest_moves_are_told_as_far_as_numbers_go(spark: "SparkSession") -> None:
    records = table(spark, commit(INT64_MAX, 0), commit(-INT64_MAX - 1, 1), commit(INT64_MAX, 2))

    found = rows(views.moves(records, jump_min=1), "kind", "records")
    assert found == [("rewind", INT64_MAX), ("jump", INT64_MAX)]


def test_owners_are_told_when_they_change_and_not_before(spark: "SparkSession") -> None:
    records = table(
        spark, commit(1, 0), commit(2, 1), commit(3, 2, by="b"), generation(2.5, "a", "b"), touch(3, by="a"),
        commit(3, 4),
    )  # fmt: skip

    found = rows(views.owners(records), "time", "offset", "from_member", "member", "from_host", "host")
    assert found == [(2, 3, "m-a", "m-b", "/a", "/b"), (3, 3, "m-b", "m-a", "/b", "/a")]


def test_who_comes_after_a_removal_took_nothing_over(spark: "SparkSession") -> None:
    records = table(spark, commit(1, 0), deletion(1), touch(2, by="b"), commit(2, 3, by="b"), expiry(4), commit(3, 5))

    assert views.owners(records).collect() == []


def test_what_was_removed_is_told_with_where_it_stood(spark: "SparkSession") -> None:
    records = table(
        spark, commit(7, 0), commit(8, 0, partition=1), commit(9, 0, partition=2), touch(1, partition=2),
        deletion(2, 1, 5), deletion(3, 1), expiry(4), expiry(5), commit(1, 6, group="audit"),
    )  # fmt: skip

    found = rows(views.removals(records), "time", "partition", "offset", "reason", "whole", "client_id")
    assert found == [
        (2, 1, 8, "deleted", False, "admin"),
        (4, 0, 7, "expired", True, "offsetd"),
        (4, 2, 9, "expired", True, "offsetd"),
    ]


def test_gaps_are_longer_than_asked_and_the_last_one_has_no_end(spark: "SparkSession") -> None:
    records = table(
        spark, commit(1, 0), touch(60), generation(90, "a"), commit(3, 121, own_time=70), commit(3, 121, partition=1)
    )

    closed = rows(views.gaps(records, timedelta(seconds=60)), "from", "to", "seconds", "ended")
    opened = rows(views.gaps(records, timedelta(seconds=60), until=at(300)), "from", "to", "seconds", "ended")
    assert closed == [(60, 121, 61, "commit")]
    assert opened == [(121, None, 179, None), (60, 121, 61, "commit")]


def test_a_group_without_offsets_has_no_gap(spark: "SparkSession") -> None:
    single = table(
        spark, commit(1, 0), commit(1, 0, partition=1), deletion(10, 0), deletion(20, 1), touch(25), commit(1, 100)
    )
    together = table(spark, commit(1, 0), commit(1, 0, partition=1), expiry(20), commit(1, 100), deletion(110))

    for records in (single, together):
        found = rows(views.gaps(records, timedelta(seconds=5)), "from", "to", "ended")
        assert (0, 20, "removal") in found
        assert all(start == 0 or start >= 100 for start, _, _ in found)
    assert rows(views.gaps(together, timedelta(seconds=30), until=at(900)), "from") == []


def test_lag_is_taken_from_the_last_record_before_each_sample(spark: "SparkSession") -> None:
    records = table(
        spark, commit(0, 0, partition=1), commit(10, 10, own_time=99), generation(12, "a"), commit(30, 20), touch(22),
        deletion(40), commit(7, 50), expiry(60),
    )  # fmt: skip
    ends = ((5, 0, 10), (15, 0, 25), (20, 12, 35), (30, 40, 45), (35, 0, 20), (45, 0, 50), (55, 0, 50), (65, 0, 50))
    samples = spark.createDataFrame([(at(second), "orders", 0, start, end) for second, start, end in ends], SAMPLES)

    found = rows(lag(records, samples), "time", "partition", "offset", "log_end", "lag", "lost", "state")
    assert found == [
        (15, 0, 10, 25, 15, 0, "ok"),
        (20, 0, 30, 35, 5, 0, "ok"),
        (30, 0, 30, 45, 5, 10, "before the log's start"),
        (35, 0, 30, 20, 0, 0, "beyond the log's end"),
        (55, 0, 7, 50, 43, 0, "ok"),
    ]


def test_lag_knows_the_order_of_records_when_the_clock_was_set_back(spark: "SparkSession") -> None:
    records = spark.createDataFrame(told([(in_ms(100), [commit(10, 100)]), (in_ms(50), [commit(30, 50)])]))
    samples = spark.createDataFrame([(at(120), "orders", 0, 0, 40)], SAMPLES)

    assert rows(lag(records, samples), "offset", "lag") == [(30, 10)]


def test_columns_that_need_a_word_have_one(spark: "SparkSession") -> None:
    fields = {field.name: field for field in views.moves(table(spark, commit(1, 0)), jump_min=1).schema}

    assert fields["kind"].metadata == {"comment": "rewind or jump"}
    assert at(0) == NOON
