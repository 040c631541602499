"""`offsetd pipeline history`, `report` and `sample`: what they print, what they refuse, what they leave behind."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from offsetd.cli import commands
from offsetd.cli.pipeline import reading
from offsetd.cli.pipeline.answer import printed
from offsetd.cli.pipeline.moments import Moment, Span
from offsetd.cli.pipeline.reading import said
from offsetd.journal.files import OsFiles
from offsetd.pipeline.history.samples import LogEnds, append_sample
from tests.histories import Step, encode
from tests.pipeline.history.told import at, commit, deletion, touch
from tests.pipeline.show.test_load_report import read
from tests.segments import JournalFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NASTY = "évil\x1b[2J,group"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["pipeline", *arguments], catch_exceptions=False)


@pytest.fixture
def one_session(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use the session of all tests, which takes seconds to start; all else is as it is."""

    @contextmanager
    def shared(*_: Any, **__: Any) -> "Iterator[SparkSession]":
        yield spark

    monkeypatch.setattr(reading, "spark_session", shared)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of a history, a batch for each step."""
    steps: list[Step] = [
        commit(500, 0), commit(9, 1, group=NASTY, topic="other"), commit(20, 10, by="b"), touch(80, by="b"),
        commit(7, 90, partition=1), deletion(100, 1),
    ]  # fmt: skip
    times_ms = [step.time_ms for step in steps]
    JournalFiles(tmp_path / "data" / "segments").segment([[encode(step)] for step in steps], time_ms=times_ms)
    return tmp_path / "data"


def test_every_view_answers(one_session: None, data: Path, tmp_path: Path) -> None:
    append_sample(OsFiles(), tmp_path / "samples", at(50), [LogEnds("orders", 0, 0, 25)])
    window = ("--from", at(5).isoformat(), "--to", at(95).isoformat())
    asked: dict[tuple[str, ...], list[tuple[Any, ...]]] = {
        ("as-of", "--at", at(9).isoformat(), "--group", "bil*"): [("billing", 0, 500)],
        ("rate", "--every", "1m", *window): [("billing", 1, 0), ("billing", 1, 1)],
        ("moves", *window): [("billing", "rewind", 500, 20, "b")],
        ("gaps", "--longer-than", "1m", *window, "--topic", "ord?rs"): [("billing", 70.0, "commit")],
        ("expiring", "--retention", "1m", "--within", "1s", "--at", at(60).isoformat()): [(NASTY, 1, 1)],
        ("owners", *window): [("billing", "a", "b")],
        ("removals",): [("billing", 7, "deleted", "admin")],
        ("lag", "--samples", str(tmp_path / "samples")): [("billing", 20, 25, 5, "ok")],
    }
    columns = {
        "as-of": ("group", "partition", "offset"),
        "rate": ("group", "commits", "repeats"),
        "moves": ("group", "kind", "from_offset", "to_offset", "client_id"),
        "gaps": ("group", "seconds", "ended"),
        "expiring": ("group", "offsets", "of"),
        "owners": ("group", "from_client_id", "client_id"),
        "removals": ("group", "offset", "reason", "client_id"),
        "lag": ("group", "offset", "log_end", "lag", "state"),
    }
    for call, expected in asked.items():
        result = run("history", *call, "--data", str(data), "--format", "jsonl", "--limit", "9")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert result.exit_code == 0, result.output
        assert [tuple(row[name] for name in columns[call[0]]) for row in rows] == expected, call
        assert set(columns) == set(commands_of_history())


def commands_of_history() -> list[str]:
    from offsetd.cli.pipeline.history import command  # noqa: PLC0415

    assert isinstance(command, click.Group)
    return list(command.commands)


def test_answers_are_for_people_or_for_programs(one_session: None, data: Path, tmp_path: Path) -> None:
    for_people = run("history", "as-of", "--data", str(data), "--limit", "1").stdout
    assert for_people.splitlines()[0].split() == [
        "group", "topic", "partition", "offset", "commit_time", "client_id", "host", "member", "since",
    ]  # fmt: skip
    assert "2026-01-01 12:01:20" in for_people
    assert for_people.splitlines()[-1].startswith("There are more rows than these 1:")

    for_programs = run("history", "as-of", "--data", str(data), "--format", "csv").stdout
    rows = list(csv.DictReader(for_programs.splitlines()))
    assert [(row["group"], row["offset"], row["since"]) for row in rows] == [
        ("billing", "20", "2026-01-01T12:00:10.000000Z"), (NASTY, "9", "2026-01-01T12:00:01.000000Z"),
    ]  # fmt: skip

    out = tmp_path / "parquet"
    assert run("history", "as-of", "--data", str(data), "--out", str(out)).stdout == f"The rows are in {out}.\n"
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in out.glob("part-*.parquet")) == 2
    again = run("history", "as-of", "--data", str(data), "--out", str(out))
    assert (again.exit_code, "is there already" in again.output) == (2, True)

    nothing = run("history", "as-of", "--data", str(data), "--group", "nobody")
    assert nothing.stdout == "No group had an offset then.\n"


def test_a_report_is_written_whole(one_session: None, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    result = run(
        "report", "--data", str(data), "--out", str(out), "--from", at(0).isoformat(), "--to", at(200).isoformat()
    )

    assert result.stdout == f"The report is in {out}.\n"
    words = read(out.read_text(encoding="utf-8")).words
    assert {"rewind", "orders/0: 500 → 20", "b /b"} <= set(words)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("history", "moves", "--data", "missing"), 1, "there is no directory"),
        (("history", "moves", "--data", "full"), 1, "holds no history"),
        (("history", "lag", "--data", "empty", "--samples", "missing"), 1, "holds no samples"),
        (("history", "rate", "--every", "5 apples"), 2, "is not a span of time"),
        (("history", "rate", "--every", "0s"), 2, "is not a span of time"),
        (("history", "as-of", "--at", "yesterday"), 2, "is no time"),
        (("history", "nonsense"), 2, "No such command"),
        (
            ("report", "--out", "r.html", "--data", "empty", "--from", "1h", "--to", "2h"),
            2,
            "--from is not before --to",
        ),
        (("sample", "--upstream", "127.0.0.1:1", "--out", "s", "--every", "1s"), 2, "give both"),
        (("sample", "--upstream", "127.0.0.1:1", "--out", "s", "--topic", "a", "--pattern", "b"), 2, "not both"),
        (("sample", "--upstream", "127.0.0.1:1", "--out", "s"), 1, "cannot be asked"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence(
    one_session: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    sentence: str,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "photo.png").touch()
    monkeypatch.chdir(tmp_path)

    result = run(*arguments)

    assert (result.exit_code, sentence in result.output) == (code, True), result.output
    assert "Traceback" not in result.output


def test_without_java_it_says_so_in_a_line(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    environment.pop("JAVA_HOME", None)
    for call in (["history", "moves"], ["report", "--out", "r.html"]):
        command = [sys.executable, "-m", "offsetd", "pipeline", *call, "--data", str(tmp_path)]
        result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

        assert result.returncode == 1
        assert result.stderr == "Error: java is not installed: Spark needs Java 17 or newer\n"


def test_names_do_not_steer_the_terminal() -> None:
    assert printed(NASTY) == "évil\\x1b[2J,group"
    assert printed("a\nb") == "a\\nb"
    assert (printed(None), printed(True), printed(1234567), printed(0.5)) == ("–", "yes", "1,234,567", "0.50")  # noqa: RUF001


def test_times_are_read_as_people_write_them() -> None:
    span, moment = Span(), Moment()
    assert span.convert("90s", None, None) == timedelta(seconds=90)
    assert span.convert("1.5h", None, None) == timedelta(minutes=90)
    assert moment.convert("2026-01-31T14:05:00+01:00", None, None) == datetime(2026, 1, 31, 13, 5, tzinfo=UTC)
    assert moment.convert("2026-01-31 14:05", None, None) == datetime(2026, 1, 31, 14, 5, tzinfo=UTC)
    assert moment.convert("1767268800000", None, None) == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert abs(datetime.now(UTC) - timedelta(hours=2) - moment.convert("2h", None, None)) < timedelta(minutes=1)


def test_of_what_a_worker_says_the_end_is_told() -> None:
    text = "Job aborted\nTraceback ...\n  offsetd.journal.segment.Damage: the batch at 60 is damaged\n\n\tat java"
    assert said(text) == "the batch at 60 is damaged"
    assert said("[PATH_NOT_FOUND] no such path\nmore") == "[PATH_NOT_FOUND] no such path"
