"""Where groups stood, held against the model of a slot's table; and what of it grows too old."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from offsetd.history.columns import TIME_MS_MAX, TIME_MS_MIN
from offsetd.pipeline.history.line import KEY
from offsetd.pipeline.history.state import as_of, expiring
from tests.histories import Commit, Model, Row, Step, steps
from tests.pipeline.history.told import at, commit, deletion, expiry, generation, in_ms, rows, table, told, touch, who

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HISTORIES = 120
#: When the batches of each history were written: the clock is once set back.
TIMES_MS = [1_000, 2_000, 1_500, 3_000, 4_000]


def drawn_histories() -> list[list[list[Step]]]:
    """Return histories of as many batches as there are times, some of them without a step."""
    drawn: list[list[list[Step]]] = []

    @settings(
        max_examples=HISTORIES, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(st.lists(st.lists(steps, max_size=3), min_size=len(TIMES_MS), max_size=len(TIMES_MS)))
    def draw(history: list[list[Step]]) -> None:
        drawn.append(history)

    draw()
    return drawn


def one_table(histories: list[list[list[Step]]]) -> pa.Table:
    """Return all histories in one table, the groups of each with its number before their names."""
    tables = []
    for number, history in enumerate(histories):
        single = told(list(zip(TIMES_MS, history, strict=True)))
        place = single.schema.get_field_index("group")
        named = pc.binary_join_element_wise(f"{number}/", single.column("group"), "")
        tables.append(single.set_column(place, single.schema.field("group"), named))
    return pa.concat_tables(tables)


def shown_ms(time_ms: int | None) -> int | None:
    return time_ms if time_ms is not None and TIME_MS_MIN <= time_ms <= TIME_MS_MAX else None


def modelled(histories: list[list[list[Step]]], batches: int) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """Return what the model holds after so many batches of each history."""
    found = {}
    for number, history in enumerate(histories):
        model = Model()
        for step in (step for batch in history[:batches] for step in batch):
            model.apply(step)
        for group, held in model.groups.items():
            for (topic, partition), offset in held.items():
                epoch = offset.leader_epoch if offset.leader_epoch >= 0 else None
                found[f"{number}/{group}", topic, partition] = (
                    offset.offset, epoch, offset.metadata, shown_ms(offset.time_ms), shown_ms(offset.expiry_ms),
                )  # fmt: skip
    return found


def held(frame: "DataFrame") -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """Return what a state holds; through Arrow, as Python's calendar begins later in some places of the world."""
    state = frame.toArrow()
    columns = [state.column(name).to_pylist() for name in ("offset", "leader_epoch", "metadata")]
    times = [state.column(name).cast("int64").to_pylist() for name in ("commit_time", "expiry_time")]
    columns += [[None if time is None else time // 1000 for time in moments] for moments in times]
    keys = zip(*(state.column(name).to_pylist() for name in KEY), strict=True)
    return dict(zip(keys, zip(*columns, strict=True), strict=True))


def test_the_state_of_every_moment_is_what_the_table_held_then(spark: "SparkSession") -> None:
    histories = drawn_histories()
    records = spark.createDataFrame(one_table(histories)).cache()
    whole = modelled(histories, len(TIMES_MS))

    assert len(whole) > HISTORIES
    assert held(as_of(records)) == whole
    # Where the clock was set back, a moment is the last one at which it showed that time.
    for moment_ms, batches in ((999, 0), (1_000, 1), (1_499, 1), (1_500, 3), (2_999, 3), (3_500, 4), (9_000, 5)):
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
        assert held(as_of(records, moment)) == modelled(histories, batches), moment_ms
    records.unpersist()


def test_a_state_says_who_put_each_offset_there_and_when(spark: "SparkSession") -> None:
    records = table(spark, commit(5, 0, own_time=-50, metadata="x"), touch(90, by="b"), generation(100, "b"))

    found = rows(as_of(records), "offset", "client_id", "member", "since", "commit_time", "metadata")
    assert found == [(5, "a", "m-a", 0, 90, "x")]
    assert rows(as_of(records, at(89)), "since", "commit_time") == [(0, -50)]


def due(
    records: "DataFrame", now: float, within: float, *names: str, retention: float | None = 100
) -> list[tuple[Any, ...]]:
    span = None if retention is None else timedelta(seconds=retention)
    found = expiring(records, at(now), retention=span, within=timedelta(seconds=within))
    return rows(found, "group", *(names or ("expires", "offsets", "of")))


def test_offsets_expire_each_by_its_own_commit_or_repeat(spark: "SparkSession") -> None:
    records = table(
        spark, commit(1, 0), commit(1, 5, group="gone"), expiry(6, group="gone"), commit(1, 10, group="audit"),
        commit(1, 20, partition=2), touch(30, partition=2), commit(1, 50, partition=1), deletion(55, 1),
    )  # fmt: skip

    assert due(records, 60, 39) == []
    assert due(records, 60, 40) == [("billing", 100, 1, 2)]
    assert due(records, 60, 70) == [("billing", 100, 2, 2), ("audit", 110, 1, 1)]
    assert due(records, 60, 70, retention=None) == []


def test_an_offset_with_an_expiry_of_its_own_goes_by_that_alone(spark: "SparkSession") -> None:
    records = table(
        spark, commit(1, 0, expires=500), commit(1, 0, expires=20, partition=1), touch(10, partition=1),
        commit(1, 0, expires=20, partition=2), commit(2, 11, partition=2),
    )  # fmt: skip

    assert due(records, 15, 85) == [("billing", 20, 1, 3)]
    assert due(records, 15, 96) == [("billing", 20, 2, 3)]
    assert due(records, 15, 500, retention=None) == [("billing", 20, 2, 3)]


def test_in_a_group_with_members_nothing_grows_old_and_behind_them_all_of_it(spark: "SparkSession") -> None:
    records = table(
        spark, commit(1, 0), generation(10, "a"), commit(1, 20, partition=1), generation(40),
        commit(1, 60, partition=2),
    )  # fmt: skip

    assert due(records, 5, 95) == [("billing", 100, 1, 1)]
    assert due(records, 30, 1000) == []
    assert due(records, 70, 69) == []
    assert due(records, 70, 70, "expires", "offsets", "newest_commit", "left") == [("billing", 140, 3, 60, 40)]


def test_a_group_that_was_removed_and_begins_anew_has_no_members_behind_it(spark: "SparkSession") -> None:
    records = table(spark, commit(1, 0), generation(10, "a"), expiry(20), commit(1, 30))

    assert due(records, 40, 90) == [("billing", 130, 1, 1)]


def test_a_time_that_no_calendar_has_expires_nothing_here(spark: "SparkSession") -> None:
    far = Row(1, 5, -1, (1 << 63) - 1, "")
    records = table(
        spark, commit(1, 0, own_time=-1000), Commit("billing", in_ms(1), who("a"), (("orders", (far,), None),)),
        Commit("for ever", in_ms(2), who("a"), (("orders", (Row(0, 5, -1, None, ""),), (1 << 63) - 1),)),
    )  # fmt: skip

    assert due(records, 10, 5000) == [("billing", -900, 1, 2)]
