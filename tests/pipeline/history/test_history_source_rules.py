"""What the source plans and reads, without Spark: options, places, the journal's end, batches that move meanwhile."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.history.columns import read_segment
from offsetd.journal.sealed import list_sealed
from offsetd.journal.segment import Damage, read_batches, segment_name
from offsetd.pipeline.history import reading
from offsetd.pipeline.history.ending import find_end
from offsetd.pipeline.history.listing import Lister
from offsetd.pipeline.history.live import split
from offsetd.pipeline.history.options import HistoryOptions, LiveOptions, check_batch_read, check_stream, read_options
from offsetd.pipeline.history.places import locate
from offsetd.pipeline.history.refusal import BatchesGone, HistoryRefused
from offsetd.pipeline.history.span import Span, format_spans, missing, parse_spans, segment_spans
from tests.directories import flip_byte, position_of
from tests.histories import Step, steps
from tests.pipeline.history.moving import History, ordered, read_sealed, read_span, spans


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "data")


# --- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs option directory"),
        ({"directori": "x"}, "no option 'directori'; it has batches, broker"),
        ({"directory": ""}, "directory is empty"),
        ({"directory": "a", "path": "b"}, "give one of them"),
        ({"directory": "s3a://bucket/history"}, "spark.read.parquet"),
        ({"directory": "a", "failOnDataLoss": "maybe"}, "want true or false"),
        ({"directory": "a", "brokerId": "one"}, "want a whole number from 0 on"),
        ({"directory": "a", "maxBatchesPerTrigger": "0"}, "want a whole number from 1 on"),
        ({"directory": "a", "startingBatch": "first"}, "want earliest, latest, or the number"),
        ({"directory": "a", "batches": "5-1"}, "'5-1' is no run of batches"),
        ({"broker": "nowhere"}, "want HOST:PORT"),
        ({"broker": "127.0.0.1:9092", "directory": "a"}, "broker reads the live state, and directory is for history"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_words(options: dict[str, str], words: str) -> None:
    with pytest.raises(HistoryRefused, match=words):
        read_options(options)


def test_options_are_read_whatever_their_case(tmp_path: Path) -> None:
    found = read_options(
        {"path": f"file:{tmp_path}", "brokerid": "3", "MAXBATCHESPERTRIGGER": "7", "batches": "1-4, 9"}
    )

    assert found == HistoryOptions(
        directory=tmp_path, broker_id=3, batches_max=7, spans=(Span(1, 4), Span(9, 9)), fail_on_data_loss=True
    )
    assert read_options({"broker": "a:1,b:2"}) == LiveOptions("a:1,b:2")


def test_options_of_streams_and_of_batch_reads_are_not_mixed() -> None:
    for name in ("startingBatch", "maxBatchesPerTrigger"):
        with pytest.raises(HistoryRefused, match=f"{name} is for spark.readStream only"):
            check_batch_read({name.lower(): "1"})
    for name in ("batches", "broker"):
        with pytest.raises(HistoryRefused, match=f"{name} is for spark.read only"):
            check_stream({name: "1"})


def test_runs_of_batches_are_written_as_they_are_read() -> None:
    found = parse_spans("1-500,501-812")
    assert parse_spans(format_spans(found)) == found == (Span(1, 500), Span(501, 812))
    assert missing([Span(8, 9), Span(1, 3), Span(4, 5)]) == [Span(6, 7)]
    assert segment_spans([1, 11, 21], 20) == [Span(1, 10), Span(11, 20)]


def test_groups_are_shared_evenly() -> None:
    parts = split([str(number) for number in range(10)], 4)
    assert sorted(map(len, parts)) == [3, 3, 4]
    assert sorted(name for part in parts for name in part) == sorted(map(str, range(10)))
    assert split([], 4) == []


# --- places -------------------------------------------------------------------------------------------------------


def test_history_is_found_in_a_data_directory_a_brokers_and_a_copy(history: History, tmp_path: Path) -> None:
    history.write(3)
    history.release(1)
    broker = history.data.broker

    assert locate(history.path, 1) == locate(history.path, None) == locate(broker.path, None)
    assert spans(locate(broker.history.parent, None)) == spans(history.places) == [Span(1, 3)]


def test_a_directory_without_history_is_refused_and_an_empty_one_is_not(history: History, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert spans(locate(tmp_path / "empty", None)) == []

    with pytest.raises(HistoryRefused, match="there is no directory"):
        locate(tmp_path / "nowhere", None)
    with pytest.raises(HistoryRefused, match="holds no history"):
        locate(tmp_path, None)
    with pytest.raises(HistoryRefused, match="holds nothing of broker 2, only of 1"):
        locate(history.path, 2)
    (history.path / "broker-2").mkdir()
    with pytest.raises(HistoryRefused, match="of the brokers 1, 2: say which one"):
        locate(history.path, None)


# --- the journal's end --------------------------------------------------------------------------------------------


def test_the_end_is_found_again_and_again_while_the_segment_grows(history: History) -> None:
    path = history.write(6)
    whole = path.read_bytes()
    ends = [batch.end for batch in read_batches(path)]
    lister = Lister(history.places)
    for size in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:size])
        expected = sum(end <= size for end in ends)
        assert lister.look().last == (expected or None)


def test_what_stands_whole_behind_a_defect_makes_it_damage(history: History) -> None:
    path = history.write(6)
    flip_byte(path, position_of(path, 4) + 60)

    with pytest.raises(Damage):
        find_end(path, growing=True)
    path.write_bytes(path.read_bytes()[: position_of_damage(path)])
    assert spans(history.places) == [Span(1, 3)]


def position_of_damage(path: Path) -> int:
    with pytest.raises(Damage) as damage:
        list(read_batches(path))
    return damage.value.position + 70


def test_a_released_segment_has_no_tail_that_may_be_torn(history: History) -> None:
    path = history.write(3)
    path.write_bytes(path.read_bytes()[:-4])
    assert spans(history.places) == [Span(1, 2)]

    history.release(1)
    with pytest.raises(Damage):
        spans(history.places)


def test_a_batch_that_nobody_calls_synced_yet_is_synced_before_it_is_shown(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = history.write(3)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    found = find_end(path, growing=True)
    assert found is not None
    assert (found.settled_number, len(synced)) == (3, 1)

    def refuse(_descriptor: int) -> None:
        raise OSError("no sync here")

    monkeypatch.setattr(os, "fdatasync", refuse)
    assert spans(history.places) == [Span(1, 2)]


# --- batches that move --------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    segments=st.lists(
        st.lists(st.lists(steps, min_size=1, max_size=3), min_size=1, max_size=3), min_size=1, max_size=4
    ),
    moves=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
)
def test_every_record_is_read_once_wherever_it_goes_meanwhile(
    segments: list[list[list[Step]]], moves: tuple[int, int, int, int]
) -> None:
    with TemporaryDirectory() as folder:
        history = History(Path(folder) / "data")
        for batches in segments:
            history.add_steps(batches)
        released, sealed = moves[:2]
        history.release(released)
        if sealed:
            history.seal()
        listing = Lister(history.places).look()
        files = [row for file in listing.sealed for row in read_sealed(file.path)]

        history.release(moves[2])
        if moves[3]:
            history.seal()
        rest = [row for span in listing.unsealed for row in read_span(history.places, span)]

        assert ordered([*files, *rest]) == ordered(history.rows)


def moved_at_the_last_moment(monkeypatch: pytest.MonkeyPatch, move: Callable[[], None]) -> None:
    """Let something move when a reader has listed and not yet opened."""
    moves = [move]

    def late(*args: Any, **kwargs: Any) -> Any:
        if moves:
            moves.pop()()
        return read_segment(*args, **kwargs)

    monkeypatch.setattr(reading, "read_segment", late)


def test_a_segment_that_is_sealed_between_looking_and_opening_is_read_from_its_file(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.write(4)
    history.write(4)

    def move() -> None:
        history.release(2)
        history.seal()

    moved_at_the_last_moment(monkeypatch, move)
    assert ordered(read_span(history.places, Span(1, 4))) == ordered(history.rows[:8])
    assert list_sealed(history.data.broker.sealed)


def test_a_part_of_a_sealed_file_is_read_where_a_part_is_asked_for(history: History) -> None:
    history.write(4)
    history.write(4)
    history.release(2)
    history.seal()

    assert ordered(read_span(history.places, Span(3, 6))) == ordered(history.rows[4:12])


def test_a_segment_that_is_sealed_in_part_is_read_behind_it(history: History) -> None:
    """Two days in one segment are two files; killed between them, the segment still holds both."""
    path = history.write(3)
    whole = path.read_bytes()
    history.release(1)
    history.seal()
    first = list_sealed(history.data.broker.sealed)[0]
    first.path.rename(first.path.with_name(first.path.name.replace("3.parquet", "2.parquet")))
    (history.data.broker.history / segment_name(1)).write_bytes(whole)

    assert spans(history.places) == [Span(3, 3)]
    assert read_span(history.places, Span(3, 3)) == history.rows[4:]


def test_what_retention_has_taken_is_said_and_passed_over_only_if_allowed(history: History) -> None:
    history.write(4)
    history.write(4)
    history.release(2)
    planned = spans(history.places)
    history.forget()

    with pytest.raises(BatchesGone, match="the batches 1-4 are neither"):
        read_span(history.places, planned[0])
    assert read_span(history.places, planned[0], strict=False) == []
    assert read_span(history.places, planned[1]) == history.rows[8:]


def test_a_hole_is_refused_and_read_around_if_allowed(history: History) -> None:
    for _ in range(3):
        history.write(4)
    history.release(3)
    (history.data.broker.history / segment_name(5)).unlink()
    listing = Lister(history.places).look()

    # The first one's name does not say where it ends, so the hole shows when it is read.
    assert listing.unsealed == [Span(1, 8), Span(9, 12)]
    with pytest.raises(BatchesGone, match="the batches 5-8"):
        read_span(history.places, listing.unsealed[0])
    assert read_span(history.places, listing.unsealed[0], strict=False) == history.rows[:8]
    history.seal()
    with pytest.raises(BatchesGone, match="the batches 5-8 are missing"):
        Lister(history.places).look().check_whole()


def test_damage_before_good_data_is_named_when_it_is_read(history: History) -> None:
    path = history.write(6)
    history.write(2)
    flip_byte(path, position_of(path, 4) + 60)

    with pytest.raises(Damage, match=path.name):
        read_span(history.places, spans(history.places)[0])
