"""`offsetd journal`: what it prints and returns, alone and beside a real daemon."""

import json
import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from offsetd.cli import commands, journal
from offsetd.journal.directory import DirectoryLock
from offsetd.journal.dump import Wanted
from offsetd.journal.sealed import sealed_path
from offsetd.journal.segment import segment_name
from tests.directories import SLOTS, DataDirectory, commit, flip_byte, position_of
from tests.fakes.daemon import Daemon, running
from tests.fakes.wire import connected
from tests.segments import TIME_MS


def run(*arguments: str, data: Path) -> Result:
    cleared = {name: None for name in os.environ if name.startswith("OFFSETD_")}
    return CliRunner().invoke(commands, ["journal", *arguments, "--data", str(data)], env=cleared)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    """Return a directory with batches 1 to 3 in checkpoint and history, and 4 to 9 in two segments."""
    made = DataDirectory(tmp_path / "data")
    for _ in range(3):
        made.write(3)
    made.compact(1)
    made.mark()
    return made


def damage(data: DataDirectory) -> Path:
    """Harm batch 5."""
    path = data.broker.journal / segment_name(4)
    flip_byte(path, position_of(path, 5) + 60)
    return path


def test_verify_says_what_is_whole(data: DataDirectory) -> None:
    result = run("verify", data=data.path)

    assert result.exit_code == 0
    assert "checkpoint: whole, holds the journal up to batch 3" in result.stdout
    assert "00000000000000000004.segment: whole, batches 4 to 6" in result.stdout
    assert "history: 1 segment; the checkpoint could be made anew from it, up to batch 3" in result.stdout
    assert result.stdout.endswith("a start would load 1 offset of 1 group and go on after batch 9\n")


def test_verify_says_where_damage_is_and_fails(data: DataDirectory) -> None:
    position = position_of(data.broker.journal / segment_name(4), 5)
    path = damage(data)

    result = run("verify", data=data.path)

    assert result.exit_code == 1
    assert f"{path.name}: not whole from byte {position} of {path.stat().st_size} on: the checksum" in result.stdout
    assert "before it batch 4 " in result.stdout
    assert "behind it 1 whole one (batch 6)" in result.stdout
    assert f"a start would be refused: {path}, byte {position}: the journal is damaged" in result.stdout


def test_verify_tells_of_a_torn_tail_and_of_a_segment_never_used(data: DataDirectory) -> None:
    with (data.broker.journal / segment_name(7)).open("ab") as file:
        file.write(bytes(60))
    torn = run("verify", data=data.path)
    with (data.broker.journal / segment_name(7)).open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 60)
    (data.broker.journal / segment_name(10)).write_bytes(bytes(60))
    rolled = run("verify", data=data.path)

    assert (torn.exit_code, rolled.exit_code) == (0, 0)
    assert "60 bytes that were never acknowledged" in torn.stdout
    assert "into quarantine, a segment that was never used" in rolled.stdout


def test_verify_tells_of_damage_that_only_compaction_would_meet(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.write(3)
    data.write(3)
    data.fold(3)
    flip_byte(data.broker.journal / segment_name(1), -9)

    result = run("verify", data=data.path)

    assert result.exit_code == 1
    assert "is held by the checkpoint, so a start would not miss it, but compaction stops there" in result.stdout


def test_verify_of_a_new_and_of_a_lost_directory(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    shutil.rmtree(data.broker.checkpoint)
    new = run("verify", data=data.path)
    data.write(1)
    flip_byte(data.broker.journal / segment_name(1), -9)
    data.mark()
    flip_byte(data.broker.journal / "durable", 3)
    lost = run("verify", data=data.path)

    assert (new.exit_code, lost.exit_code) == (0, 1)
    assert "checkpoint: none yet" in new.stdout
    assert "a start would begin a new journal" in new.stdout
    assert "checkpoint: not usable, see below" in lost.stdout
    assert "durable marker: not whole, so it is ignored" in lost.stdout
    assert "the journal itself reaches back to batch 1" in lost.stdout


def test_repair_shows_the_loss_and_changes_nothing(data: DataDirectory) -> None:
    path = damage(data)
    before = data.content()

    result = run("repair", data=data.path)

    assert result.exit_code == 1
    assert data.content() == before
    told = result.stdout.splitlines()
    assert any(line.startswith(f"repair: {path} is cut at byte") for line in told)
    assert "repair: the durable marker names batch 4 and no longer batch 9" in told
    assert "lost: batch 5, not readable any more, content not known" in told
    assert (
        "lost: group billing, topic orders, partition 0: offset 9 (of 1970-02-19T17:02:47.305Z) "
        "falls back to offset 4 (of 1970-02-19T17:02:47.300Z)"
    ) in told
    assert told[-1].startswith("Nothing was changed.")


def test_repair_does_it_when_told_to(data: DataDirectory) -> None:
    damage(data)

    result = run("repair", "--execute", data=data.path)

    assert result.exit_code == 0
    assert result.stdout.endswith("A daemon can be started.\n")
    assert run("verify", data=data.path).exit_code == 0
    assert run("repair", data=data.path).stdout == "Nothing is to be repaired: a daemon can be started.\n"
    assert data.start() == {("billing", "orders", 0): 4}


def test_repair_brings_the_checkpoint_back(data: DataDirectory) -> None:
    shutil.rmtree(data.broker.checkpoint)

    shown = run("repair", data=data.path)
    done = run("repair", "--execute", data=data.path)

    assert "repair: the checkpoint is made anew from 1 segment of history, up to batch 3" in shown.stdout
    assert "lost: nothing" in shown.stdout
    assert done.exit_code == 0
    assert data.start() == {("billing", "orders", 0): 9}


def test_repair_of_a_journal_that_is_gone_goes_on_from_the_checkpoint(data: DataDirectory) -> None:
    shutil.rmtree(data.broker.journal)

    shown = run("repair", data=data.path)
    done = run("repair", "--execute", data=data.path)

    assert "is begun right after the checkpoint" in shown.stdout
    assert "lost: the journal's end; whether more followed batch 3" in shown.stdout
    assert done.exit_code == 0
    assert data.start() == {("billing", "orders", 0): 3}


def test_only_the_owner_repairs(data: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that root has written would keep the daemon from starting."""
    damage(data)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    before = data.content()

    shown = run("repair", data=data.path)
    refused = run("repair", "--execute", data=data.path)

    assert "falls back to" in shown.stdout
    assert refused.exit_code == 1
    assert f"belongs to the user {owner}, and this is user {owner + 1}" in refused.stderr
    assert data.content() == before


def test_of_sealed_history_no_checkpoint_is_made_and_both_say_so(data: DataDirectory) -> None:
    (data.broker.history / segment_name(1)).unlink()
    path = sealed_path(data.broker.sealed, date(2026, 3, 1), 1, 3)
    path.parent.mkdir(parents=True)
    path.touch()

    verified = run("verify", data=data.path)
    shutil.rmtree(data.broker.checkpoint)
    repaired = run("repair", data=data.path)

    assert (verified.exit_code, repaired.exit_code) == (0, 1)
    assert "history: 0 segments and 1 sealed file; the checkpoint could not be made anew from it: " in verified.stdout
    for said in (verified.stdout, repaired.stderr):
        assert "batches 1 to 3 were sealed as Parquet, and a checkpoint is made of segments only" in said


def test_what_cannot_be_repaired_is_said_in_one_sentence_with_what_to_do(data: DataDirectory) -> None:
    shutil.rmtree(data.broker.checkpoint)
    (data.broker.history / segment_name(1)).unlink()

    result = run("repair", "--execute", data=data.path)

    assert result.exit_code == 1
    assert "bring back a copy of the whole data directory" in result.stderr
    assert "It cannot be repaired: history ends with batch 0, the journal begins with batch 4." in result.stderr


@pytest.mark.parametrize("arguments", [("verify",), ("repair",), ("repair", "--execute"), ("dump",)])
def test_a_directory_that_is_none_is_refused_and_not_made(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = run(*arguments, data=tmp_path / "none")

    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: {tmp_path / 'none'} is no data directory: it has no identity.json.\n",
    )
    assert not (tmp_path / "none").exists()


def test_dump_prints_the_journal_and_on_request_history_before_it(data: DataDirectory) -> None:
    before = data.content()

    short = lines(run("dump", data=data.path))
    long = lines(run("dump", "--history", data=data.path))

    assert [line["batch"] for line in short] == list(range(4, 10))
    assert [line["batch"] for line in long] == list(range(1, 10))
    assert data.content() == before


def test_dump_takes_times_as_iso_and_as_milliseconds(data: DataDirectory) -> None:
    by_ms = run("dump", "--since", str(TIME_MS + 5), "--until", str(TIME_MS + 7), data=data.path)
    by_iso = run(
        "dump", "--since", "1970-02-19T17:02:47.301", "--until", "1970-02-19T18:02:47.303+01:00", data=data.path
    )
    wrong = run("dump", "--since", "yesterday", data=data.path)

    assert [line["batch"] for line in lines(by_ms)] == [5, 6]
    assert by_iso.stdout == by_ms.stdout
    assert wrong.exit_code == 2
    assert "is neither ISO 8601" in wrong.stderr


def test_dump_of_the_checkpoint_prints_live_rows(data: DataDirectory) -> None:
    (row,) = lines(run("dump", "--checkpoint", data=data.path))
    nothing = run("dump", "--checkpoint", "--group", "other", data=data.path)

    assert (row["kind"], row["group"], row["topics"][0]["partitions"][0]["offset"]) == ("rows", "billing", 3)
    assert (nothing.exit_code, nothing.stdout) == (0, "")


def test_dump_filters_by_group_and_topic(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.journal.segment([[commit(1), commit(2, group="audit", slot=0), commit(3, topic="refunds")]])

    by_group = lines(run("dump", "--group", "audit", data=data.path))
    by_topic = lines(run("dump", "--topic", "refunds", data=data.path))

    assert [line["group"] for line in by_group] == ["audit"]
    assert [line["topics"][0]["topic"] for line in by_topic] == ["refunds"]


def test_dump_escapes_whatever_could_forge_a_line(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    evil = "a\nb\x1b[2J\x7f\u202e\u2028"
    data.journal.segment([[commit(1, group=evil)]])

    result = run("dump", data=data.path)

    assert result.stdout.count("\n") == 1
    assert result.stdout.strip().isprintable()
    assert result.stdout.isascii()
    assert lines(result)[0]["group"] == evil


def test_dump_goes_on_behind_a_damaged_segment_and_fails(data: DataDirectory) -> None:
    path = damage(data)

    result = run("dump", data=data.path)

    assert result.exit_code == 1
    assert [line["batch"] for line in lines(result)] == [4, 7, 8, 9]
    assert result.stderr.startswith(f"offsetd: {path}: damaged at byte")


def test_dump_leaves_out_what_a_daemon_is_just_writing(data: DataDirectory) -> None:
    with (data.broker.journal / segment_name(7)).open("ab") as file:
        file.write(b"OFDB on its way")
    daemon = DirectoryLock(data.broker.lock)
    daemon.take()
    beside = run("dump", data=data.path)
    daemon.release()
    alone = run("dump", data=data.path)

    assert beside.stdout == alone.stdout
    assert (beside.exit_code, beside.stderr) == (0, "")
    assert alone.exit_code == 1


def test_a_segment_that_compaction_takes_away_is_found_in_history(
    data: DataDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = data.broker.journal / segment_name(4)
    data.compact(1)

    found = journal._dump(listed, data.broker, Wanted())
    (data.broker.history / segment_name(4)).unlink()
    gone = journal._dump(listed, data.broker, Wanted())

    assert found is None
    assert capsys.readouterr().out.count("\n") == 3
    assert gone is not None
    assert "was compacted away or sealed meanwhile" in gone


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.journal.segment([[commit(number) for number in range(2000)]])
    command = [sys.executable, "-m", "offsetd", "journal", "dump", "--data", str(data.path)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()
        code = process.wait(60)

    assert json.loads(first)["batch"] == 1
    assert (code, complaint) == (0, b"")


async def _commit(daemon: Daemon, offset: int) -> None:
    async with connected(daemon.port) as client:
        assert await client.commit("billing", {("orders", 0): offset}) == {("orders", 0): 0}


async def _committed(daemon: Daemon) -> dict[tuple[str, int], int]:
    async with connected(daemon.port) as client:
        return await client.committed("billing", [("orders", 0)])


@pytest.mark.integration
async def test_beside_a_daemon_only_dump_works(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        await _commit(daemon, 42)

        dumped = run("dump", "--group", "billing", data=daemon.data)
        refused = [
            run(*arguments, data=daemon.data)
            for arguments in (("verify",), ("repair",), ("repair", "--execute"), ("dump", "--checkpoint"))
        ]

    assert dumped.exit_code == 0
    assert [line["topics"][0]["partitions"][0]["offset"] for line in lines(dumped)] == [42]
    for result in refused:
        assert result.exit_code == 1
        assert f"is in use by the process {daemon.pid}" in result.stderr


@pytest.mark.integration
def test_a_daemon_refuses_a_checkpoint_of_another_life_in_the_words_of_verify(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    data.write(4)
    other = DataDirectory(tmp_path / "other")
    other.journal.segment([[commit(100)]] * 4)
    other.compact(1)
    shutil.rmtree(data.broker.checkpoint)
    other.broker.checkpoint.rename(data.broker.checkpoint)
    verified = run("verify", data=data.path)
    daemon = Daemon(tmp_path, {"offsets.topic.num.partitions": SLOTS})
    try:
        daemon.launch()
        code = daemon.wait()
    finally:
        daemon.clean_up()

    assert code == 1
    refusal = daemon.events("load_failed")[0]["reason"]
    assert "batch 4 is not the one that the checkpoint ends with" in refusal
    assert f"a start would be refused: {refusal}" in verified.stdout


@pytest.mark.integration
async def test_a_daemon_refuses_a_damaged_journal_and_serves_it_after_a_repair(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    try:
        daemon.start()
        for offset in (1, 2, 3):
            await _commit(daemon, offset)
        daemon.terminate()
        path = daemon.data / "broker-1" / "journal" / segment_name(1)
        flip_byte(path, position_of(path, 3) + 60)
        daemon.launch()
        code = daemon.wait()
        refusal = daemon.events("load_failed")[0]["reason"]
        verified = run("verify", data=daemon.data)
        shown = run("repair", data=daemon.data)
        done = run("repair", "--execute", data=daemon.data)
        daemon.start()
        served = await _committed(daemon)
    finally:
        daemon.clean_up()

    assert code == 1
    assert "`offsetd journal repair` shows what would be lost" in refusal
    assert f"a start would be refused: {refusal}" in verified.stdout
    assert "falls back to offset 1" in shown.stdout
    assert done.exit_code == 0
    assert served == {("orders", 0): 1}
