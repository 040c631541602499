"""Records as Arrow columns: the same as the journal's own decoder shows, whatever was written."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.history.columns import TIME_MS_MAX, TIME_MS_MIN, read_segment, schema
from offsetd.journal.dump import Wanted, dump_segment
from offsetd.journal.segment import Damage
from offsetd.record import Who, encode_opening
from tests.directories import flip_byte
from tests.histories import Commit, Row, Step, encode, steps
from tests.segments import JournalFiles


def shown(time_ms: int | None) -> int | None:
    """Return a time as the columns have it: none that no calendar has."""
    return time_ms if time_ms is not None and TIME_MS_MIN <= time_ms <= TIME_MS_MAX else None


def expected(path: Path) -> list[tuple[Any, ...]]:
    """Return place, key and value of each record, from the decoder of `offsetd journal dump`."""
    rows: list[tuple[Any, ...]] = []
    for line in dump_segment(path, Wanted()):
        head = (line["batch"], line["kind"], line.get("slot", -1), line.get("group"))
        if "topics" not in line:
            sequence = None if line["kind"] == "opening" else line["sequence"]
            rows.append((*head, sequence, None, None, None, None, None, shown(line["time_ms"]), None))
        for topic in line.get("topics", ()):
            for row in topic["partitions"]:
                time_ms = shown(row.get("time_ms", line["time_ms"]))
                value = (row.get("offset"), row.get("leader_epoch"), row.get("metadata"))
                key = (row["sequence"], topic["topic"], row["partition"])
                rows.append((*head, *key, *value, time_ms, shown(row.get("expiry_ms"))))
    return rows


def found(path: Path, after_number: int = 0) -> list[tuple[Any, ...]]:
    """Return the same from the columns."""
    kinds = ("opening", "commit", "touch", "tombstone", "group", "group_tombstone")
    rows = []
    for batch in read_segment(path, after_number=after_number):
        assert batch.schema == schema()
        numbered = batch.to_pydict()
        for name in ("commit_time", "expiry_time"):
            moments = batch.column(name).cast("int64").to_pylist()
            numbered[name] = [None if moment is None else moment // 1000 for moment in moments]
        names = ("batch", "type", "slot", "group", "sequence", "topic", "partition", "offset", "leader_epoch")
        columns = [numbered[name] for name in (*names, "metadata", "commit_time", "expiry_time")]
        columns[1] = [kinds[kind] for kind in columns[1]]
        rows += list(zip(*columns, strict=True))
    return rows


@settings(deadline=None)  # the first example pays for a library's start
@given(history=st.lists(st.lists(steps, min_size=1, max_size=4), max_size=6), after=st.integers(0, 7))
def test_every_record_stands_in_the_columns_as_the_journal_has_it(history: list[list[Step]], after: int) -> None:
    with TemporaryDirectory() as folder:
        batches = [[encode(step) for step in batch] for batch in history]
        path = JournalFiles(Path(folder)).segment([[encode_opening(1, 1 << 32, "0.1.0")], *batches])

        assert found(path) == expected(path)
        assert found(path, after) == [row for row in expected(path) if row[0] > after]


def test_an_offset_that_is_kept_for_ever_is_kept_until_the_end_of_all_calendars(tmp_path: Path) -> None:
    for_ever = Commit("billing", 1 << 32, Who("a", "/a", ""), (("orders", (Row(0, 5, -1, None, ""),), (1 << 63) - 1),))
    path = JournalFiles(tmp_path).segment([[encode(for_ever)]])

    (batch,) = read_segment(path)
    assert batch.column("expiry_time").cast("int64").to_pylist() == [TIME_MS_MAX * 1000]


def test_what_stands_before_damage_is_given_and_then_the_damage_is_named(tmp_path: Path) -> None:
    path = JournalFiles(tmp_path).segment([[encode_opening(1, 1 << 32, "0.1.0")], [encode_opening(2, 1 << 32, "x")]])
    flip_byte(path, -1)
    batches = read_segment(path)

    assert next(batches).num_rows == 1
    with pytest.raises(Damage):
        next(batches)


def test_a_reader_may_stop_in_the_middle(tmp_path: Path) -> None:
    path = JournalFiles(tmp_path).segment([[encode_opening(1, 1 << 32, "0.1.0")]])
    batches = read_segment(path)

    assert next(batches).num_rows == 1
    batches.close()  # type: ignore[attr-defined]  # a generator
