"""The rules of a load without any I/O: where it starts, what it refuses, what files must hold, what a group may say."""

from collections.abc import Mapping

import pytest

from offsetd.client.position import Committed, TopicPartition
from offsetd.pipeline.load.manifest import DataFile, Manifest, decode, encode
from offsetd.pipeline.load.plan import Check, Logs, Plan, Range, Reason, choose_starts, make_plan
from offsetd.pipeline.load.reconcile import Choice, reconcile
from offsetd.pipeline.load.refusal import BadRequest, GroupMoved, LoadRefused, NotVerified, RecordsGone
from offsetd.pipeline.load.share import share
from offsetd.pipeline.load.supersede import begin, refuse_missing, replaced
from offsetd.pipeline.load.verify import verify

P0, P1, P2, P3, P4 = (TopicPartition("orders", partition) for partition in range(5))


def a_range(start: int, end: int, *, partition: int = 0, reason: Reason = Reason.MANIFEST) -> Range:
    return Range(topic="orders", partition=partition, start=start, end=end, reason=reason)


def a_manifest(number: int = 3, *ranges: Range, positions: Mapping[TopicPartition, int] | None = None) -> Manifest:
    return Manifest(
        number=number,
        group="lake",
        writer="w",
        created_at="2026-01-31T00:00:00+00:00",
        value_format="raw",
        ranges=ranges,
        rows={item.key: item.records for item in ranges},
        positions=positions or {item.key: item.end for item in ranges},
        checks={"orders": Check.EXACT},
    )


def a_plan(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], *, low: int = 0, most: int | None = None
) -> Plan:
    logs = Logs(starts=dict.fromkeys(ends, low), ends=ends, highs=ends)
    begun = choose_starts(logs, positions=starts, committed={})
    return make_plan(group="lake", out="o", number=4, logs=logs, starts=begun, positions=starts, records_max=most)


def a_file(first: int, last: int, *, rows: int | None = None, partition: int = 0, path: str = "f") -> DataFile:
    count = last - first + 1 if rows is None else rows
    return DataFile(path=path, topic="orders", partition=partition, rows=count, bytes=1, first=first, last=last)


# --- where it starts ----------------------------------------------------------------------------------------------


def test_the_table_counts_before_the_group_the_group_before_a_time_and_a_time_before_the_logs_start() -> None:
    ends = dict.fromkeys((P0, P1, P2, P3, P4), 100)
    logs = Logs(starts=dict.fromkeys(ends, 5), ends=ends, highs=ends, times={P0: 40, P1: 40, P2: 40, P3: 40})

    starts = choose_starts(logs, positions={P0: 10, P1: 10}, committed={P0: 20, P1: 20, P2: 20}, accepted={P0: 30})

    assert {key: (start.offset, start.reason) for key, start in starts.items()} == {
        P0: (30, Reason.ACCEPTED),
        P1: (10, Reason.MANIFEST),
        P2: (20, Reason.COMMITTED),
        P3: (40, Reason.TIME),
        P4: (5, Reason.EARLIEST),
    }


def test_partitions_without_news_are_left_out_and_keep_their_position() -> None:
    plan = a_plan({P0: 100, P1: 90, P2: 7}, {P0: 100, P1: 100})

    assert [item.key for item in plan.ranges] == [P1]
    assert [item.key for item in plan.idle] == [P0]
    assert plan.positions == {P0: 100, P1: 100, P2: 7}, "a partition that was not asked for is not forgotten"


@pytest.mark.parametrize(
    ("start", "low", "words"),
    [(10, 25, "15 offsets in 1 partition are gone"), (101, 0, "would start behind the end of the log")],
)
def test_records_that_are_gone_are_refused_with_how_many(start: int, low: int, words: str) -> None:
    with pytest.raises(RecordsGone, match=words):
        a_plan({P0: start}, {P0: 100}, low=low)


def test_a_limit_is_shared_fairly() -> None:
    assert share({"a": 2, "b": 100, "c": 100}, 21) == {"a": 2, "b": 9, "c": 10}
    assert a_plan({P0: 0, P1: 0}, {P0: 2, P1: 100}, most=10).records == 10


# --- the group and the table --------------------------------------------------------------------------------------


def test_our_own_unfinished_commit_is_owed_and_nobody_is_asked() -> None:
    newest = a_manifest(3, a_range(10, 20), positions={P0: 20, P1: 5})

    found = reconcile(newest, {P0: Committed(10, "load:2")}, asked={P0})

    assert found.owed == {P0: 20, P1: 5}
    assert not found.accepted


@pytest.mark.parametrize("offset", [7, 30])
def test_a_group_that_somebody_moved_stops_the_load_unless_it_is_to_be_repaired(offset: int) -> None:
    newest, committed = a_manifest(3, a_range(10, 20)), {P0: Committed(offset, "by hand")}

    with pytest.raises(GroupMoved, match=f"the table ends at 20, the group is at {offset}"):
        reconcile(newest, committed, asked={P0})

    assert reconcile(newest, committed, asked={P0}, choice=Choice.REPAIR).owed == {P0: 20}


def test_a_move_forward_can_be_accepted_and_one_back_over_records_of_the_table_cannot() -> None:
    newest = a_manifest(3, a_range(10, 20))

    assert reconcile(newest, {P0: Committed(30, "x")}, asked={P0}, choice=Choice.ACCEPT).accepted == {P0: 30}
    with pytest.raises(GroupMoved, match="a second time"):
        reconcile(newest, {P0: Committed(7, "x")}, asked={P0}, choice=Choice.ACCEPT)


# --- what was written ---------------------------------------------------------------------------------------------


def test_files_that_hold_the_plan_pass_and_empty_offsets_are_counted() -> None:
    plan = a_plan({P0: 10, P1: 0}, {P0: 20, P1: 5})
    files = [a_file(10, 14), a_file(15, 19), a_file(0, 4, rows=3, partition=1)]

    found = verify(plan, files)

    assert found.rows == {P0: 10, P1: 3}
    assert found.checks == {"orders": Check.BOUNDS}
    with pytest.raises(NotVerified, match="2 of 5 offsets brought no row"):
        verify(plan, files, exact=True)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([a_file(9, 19)], id="before the plan"),
        pytest.param([a_file(10, 20)], id="behind the plan"),
        pytest.param([a_file(10, 15), a_file(15, 19)], id="an offset in two files"),
        pytest.param([a_file(10, 19, rows=11)], id="more rows than offsets"),
        pytest.param([a_file(10, 19), a_file(0, 1, partition=1)], id="a partition that was not planned"),
    ],
)
def test_files_that_do_not_hold_the_plan_are_refused(files: list[DataFile]) -> None:
    with pytest.raises(NotVerified):
        verify(a_plan({P0: 10}, {P0: 20}), files)


# --- loads anew ---------------------------------------------------------------------------------------------------


def test_a_reload_replaces_from_the_oldest_load_that_holds_the_time_and_begins_where_that_began() -> None:
    live = [a_manifest(1, a_range(0, 10)), a_manifest(2, a_range(10, 20)), a_manifest(3, a_range(20, 30))]

    numbers = replaced(live, {P0: 15})

    assert numbers == (2, 3)
    assert {key: start.offset for key, start in begin(live, numbers).items()} == {P0: 10}
    assert replaced(live, {P0: 30}) == ()
    with pytest.raises(BadRequest, match="Name their topics too"):
        refuse_missing(begin(live, numbers), {P1: 9})


# --- manifests ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [1, None])
def test_a_manifest_is_read_back_as_it_was_written(indent: int | None) -> None:
    manifest = a_manifest(3, a_range(10, 20))

    assert decode(encode(manifest, indent=indent), "there") == manifest


def test_what_is_no_manifest_or_a_newer_one_is_refused() -> None:
    with pytest.raises(LoadRefused, match="there is no manifest"):
        decode("{}", "there")
    with pytest.raises(LoadRefused, match="a newer one wrote it"):
        decode('{"format": 99}', "there")
