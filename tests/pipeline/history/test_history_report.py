"""The report of a time: what is found in a history, and how the page tells it."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from offsetd.pipeline.history.report import CURVES, ROWS_MAX, Findings, Question, Rows, find
from offsetd.pipeline.history.report_page import render
from offsetd.record import Who
from tests.histories import Commit, Row, Step
from tests.pipeline.history.told import at, commit, deletion, expiry, generation, in_ms, table, told, touch
from tests.pipeline.show.test_load_report import Reader, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = "time timestamp, topic string, partition int, log_start bigint, log_end bigint"
HOSTILE = "<script>alert('$x$')</script>\n\x1b[2J&amp;"
NOTHING = Findings(
    first=None, commits=0, repeats=0, groups=0, held_groups=0, held_offsets=0, rate={}, rest=[], moves=Rows(),
    rewinds=0, jumps=0, gaps=Rows(), owners=Rows(), takeovers=0, removals=Rows(), removed=0, expiring=Rows(),
    lag=None, lags=Rows(),
)  # fmt: skip


def question(start: float, end: float, **changes: Any) -> Question:
    asked = {
        "start": at(start), "end": at(end), "jump_min": 100, "silence": timedelta(seconds=60),
        "retention": timedelta(days=7), "ahead": timedelta(days=1), **changes,
    }  # fmt: skip
    return Question(**asked)


def words(found: Findings, asked: Question | None = None) -> Reader:
    return read(render(found, asked or question(0, 600), Path("data")))


def test_all_that_happened_in_a_window_is_found_and_nothing_else(spark: "SparkSession") -> None:
    pair = (Row(0, 3, -1, None, ""), Row(1, 30, -1, None, "replay"))
    steps: list[Step] = [
        commit(50, 0), commit(50, 1, partition=1), commit(10, 5), commit(7, 20, group="audit"),
        commit(20, 110, by="b"), touch(111, by="b"), commit(220, 115),
        Commit("billing", in_ms(120), Who("support", "/laptop", ""), (("orders", pair, None),)),
        deletion(130, 1), generation(140, group="audit"), expiry(150, group="audit"), commit(99, 300),
    ]  # fmt: skip
    taken = [(at(second), "orders", 0, 5, end) for second, end in ((50, 90), (116, 230), (125, 240), (250, 240))]
    samples = spark.createDataFrame(taken, SAMPLES)

    found = find(table(spark, *steps), question(100, 200), samples)

    assert (found.first, found.commits, found.repeats, found.groups) == (at(0), 4, 1, 1)
    assert (found.held_groups, found.held_offsets) == (1, 1)
    assert (found.rewinds, found.jumps, found.takeovers, found.removed) == (1, 1, 4, 2)
    assert found.moves.shown == (
        (at(115), "billing", "jump", 1, 200, ("orders", 0, 20, 220), "a", "/a", ""),
        (at(120), "billing", "rewind", 2, 237, ("orders", 0, 220, 3), "support", "/laptop", "replay"),
    )
    assert [row[:3] for row in found.gaps.shown] == [
        ("audit", at(20), at(150)), ("billing", at(5), at(110)), ("billing", at(120), None),
    ]  # fmt: skip
    assert found.owners.shown == (("billing", "orders", 2, 4, 1, 3, at(120)),)
    assert found.removals.shown == (
        (at(150), "audit", "orders", 1, "expired", True, "offsetd", ""),
        (at(130), "billing", "orders", 1, "deleted", False, "admin", "/admin"),
    )
    assert found.expiring.total == 0
    assert found.lag == {
        "billing": [(at(116), 10.0), (at(125), 235.0)],
        "audit": [(at(116), 223.0), (at(125), 233.0)],
    }
    assert (found.lags.shown, found.samples) == ((("billing", 10, 235, 235, 2), ("audit", 223, 233, 233, 0)), 2)
    (curve,) = found.rate.values()
    assert sum(value for _, value in curve) == 4
    assert {at(100), at(199)} <= {moment for moment, _ in curve}


def test_groups_without_a_curve_of_their_own_are_drawn_together(spark: "SparkSession") -> None:
    steps = [commit(1, 10 + at, group=f"g{number}") for number in range(CURVES + 2) for at in range(20 - number)]

    found = find(table(spark, *steps), question(0, 60, retention=timedelta(seconds=10)))

    assert list(found.rate) == [f"g{number}" for number in range(CURVES)]
    assert sum(value for _, value in found.rest) == (20 - CURVES) + (20 - CURVES - 1)
    assert found.lag is None
    assert found.expiring.total == CURVES + 2
    assert "all others" in words(found).words


def test_a_history_of_nothing_is_told_in_sentences(spark: "SparkSession") -> None:
    found = find(spark.createDataFrame(told([])), question(0, 60))

    assert found == NOTHING
    said = words(found).words
    assert {
        "The history holds no record before the end of this time.", "Nothing was committed in this time.",
        "No group went back, and none jumped ahead.", "No group was silent for so long.", "Nothing was removed.",
        "Every partition was committed by one owner all the time.", "Nothing expires by then.",
    } <= set(said)  # fmt: skip
    assert any(sentence.startswith("No samples were given") for sentence in said)


@pytest.mark.parametrize("name", [HOSTILE, "", "_underscore", "g" * 300, "Заказы 訂單 🐌", "$x^{2}"])
def test_names_from_clients_stay_words(name: str) -> None:
    curve = [(at(0), 1.0), (at(60), 2.0)]
    found = Findings(
        first=at(0), commits=1, repeats=1, groups=1, held_groups=1, held_offsets=1, rate={name: curve, "b": curve},
        rest=curve, moves=Rows(((at(5), name, "rewind", 1, 9, (name, 0, 10, 1), name, name, name),), 1),
        rewinds=1, jumps=0, gaps=Rows(((name, at(0), None, 700.0, None),), 1),
        owners=Rows(((name, name, 1, 2, 1, 2, at(3)),), 1),
        takeovers=2, removals=Rows(((at(5), name, name, 1, "deleted", True, name, name),), 1), removed=1,
        expiring=Rows(((name, at(9), 1, 1, at(0), None),), 1), lag={name: curve, "b": curve},
        lags=Rows(((name, 1, 2, 2, 0),), 1), samples=2,
    )  # fmt: skip

    reader = words(found)

    assert "script" not in reader.tags
    assert reader.tags.count("svg") == 2
    assert not name or name in reader.words


def test_long_names_stay_different_in_a_legend() -> None:
    curve = [(at(0), 1.0), (at(60), 2.0)]
    long = "a" * 100
    found = words(Findings(**{**as_dict(NOTHING), "rate": {f"{long}{each}{long}": curve for each in "xyz"}}))

    entries = [word for word in found.words if word.startswith("aaaa")]
    assert len(entries) == len(set(entries)) == 3
    assert all(len(entry) < 40 for entry in entries)


def as_dict(found: Findings) -> dict[str, Any]:
    return {name: getattr(found, name) for name in Findings.__slots__}


def test_what_is_left_off_is_counted() -> None:
    rows = Rows(tuple((f"g{number}", at(0), at(700), 700.0, "commit") for number in range(ROWS_MAX)), ROWS_MAX + 17)

    assert (
        "17 more are left off; `offsetd pipeline history` tells all."
        in words(Findings(**{**as_dict(NOTHING), "gaps": rows})).words
    )


@pytest.mark.parametrize(
    ("seconds", "width"), [(60, 1), (600, 5), (3600, 30), (86_400, 900), (7 * 86_400, 7200), (365 * 86_400, 86_400)]
)
def test_curves_have_about_a_hundred_points(seconds: int, width: int) -> None:
    assert question(0, seconds).width == timedelta(seconds=width)
