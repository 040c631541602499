"""The real sync helper: a process that answers, survives the daemon's signals, and leaves with it."""

import asyncio
import errno
import os
import select
import signal
import time
from pathlib import Path

import pytest

from offsetd.journal.directory import BrokerDirectory, open_directory
from offsetd.journal.files import OsFiles
from offsetd.journal.syncer import Syncer, SyncerGone
from offsetd.journal.writer import EXIT_CODE
from tests.fakes.journal import SLOTS, Bench, recover_all


def answer_of(syncer: Syncer) -> int:
    """Wait for an answer."""
    assert select.select([syncer], [], [], 20)[0]
    return syncer.read_answer()


def new_file(path: Path) -> int:
    """Return a descriptor of a new file with a little in it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"something")
    return descriptor


def test_it_syncs_the_file_that_it_was_given(tmp_path: Path) -> None:
    """And changes to another, with the directory synced."""
    syncer = Syncer()
    syncer.start()
    first, second = new_file(tmp_path / "a"), new_file(tmp_path / "b")
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        syncer.use(first)
        syncer.request()
        assert answer_of(syncer) == 0
        syncer.request_roll(second, [directory])
        assert answer_of(syncer) == 0
        syncer.request()
        assert answer_of(syncer) == 0
        with pytest.raises(BlockingIOError):
            syncer.read_answer()
        opened = Path(f"/proc/{syncer.process_id}/fd")
        if opened.is_dir():
            names = {str(link.readlink()) for link in opened.iterdir()}
            assert str(tmp_path / "b") in names
            assert str(tmp_path / "a") not in names
            assert str(tmp_path) not in names
    finally:
        syncer.close()
        for descriptor in (first, second, directory):
            os.close(descriptor)


def test_it_ignores_the_signals_that_stop_the_daemon(tmp_path: Path) -> None:
    """The daemon's last sync comes after them; a terminal's Ctrl-C does not even reach it."""
    syncer = Syncer()
    syncer.start()
    descriptor = new_file(tmp_path / "a")
    try:
        assert os.getsid(syncer.process_id) == syncer.process_id
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(syncer.process_id, number)
        syncer.use(descriptor)
        syncer.request()
        assert answer_of(syncer) == 0
    finally:
        syncer.close()
        os.close(descriptor)


def test_its_end_is_noticed(tmp_path: Path) -> None:
    """At the next answer and at the next request."""
    syncer = Syncer()
    syncer.start()
    os.kill(syncer.process_id, signal.SIGKILL)

    with pytest.raises(SyncerGone):
        answer_of(syncer)
    with pytest.raises(SyncerGone):
        syncer.request()
    syncer.close()


def test_an_error_is_answered_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a failing disk would make it."""
    monkeypatch.setenv("OFFSETD_FAILPOINTS", "sync=error:EIO@2")
    syncer = Syncer()
    syncer.start()
    descriptor = new_file(tmp_path / "a")
    try:
        syncer.use(descriptor)
        syncer.request()
        assert answer_of(syncer) == 0
        syncer.request()
        assert answer_of(syncer) == errno.EIO
        with pytest.raises(SyncerGone):
            answer_of(syncer)
    finally:
        syncer.close()
        os.close(descriptor)


def broker_of(tmp_path: Path) -> BrokerDirectory:
    """Return a fresh broker directory, unlocked."""
    _, broker, lock = open_directory(tmp_path / "data", broker_id=1, slots=SLOTS, random_bytes=bytes)
    lock.release()
    return broker


async def test_a_real_journal_is_written_rolled_and_recovered(tmp_path: Path) -> None:
    """Writer, helper, files and recovery together."""
    broker = broker_of(tmp_path)
    syncer = Syncer()
    syncer.start()
    bench = Bench(OsFiles(), syncer, directory=broker.journal, reserve_bytes=100_000, segment_bytes=5_000)
    bench.writer.open()
    async with asyncio.timeout(60):
        for value in range(1, 101):
            bench.append(value, size=300)
            if value % 5 == 0:
                await asyncio.sleep(0)
        while len(bench.settled) < 100:
            await asyncio.sleep(0.001)
        await bench.writer.close()

    recovered, values = recover_all(OsFiles(), journal=broker.journal, quarantine=broker.quarantine)

    assert values == list(range(1, 101))
    assert recovered.clean
    assert bench.sealed == [segment.path for segment in recovered.segments[:-1]]
    assert broker.reserve.stat().st_size == 100_000


async def test_a_real_failed_sync_ends_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a second, and nothing is settled afterwards."""
    monkeypatch.setenv("OFFSETD_FAILPOINTS", "sync=error:EIO@2")
    broker = broker_of(tmp_path)
    syncer = Syncer()
    syncer.start()
    bench = Bench(OsFiles(), syncer, directory=broker.journal)
    bench.writer.open()
    deadline = time.monotonic() + 20
    bench.append(1)
    while not bench.settled and time.monotonic() < deadline:
        await asyncio.sleep(0)
    bench.append(2)
    while not bench.exits and time.monotonic() < deadline:
        await asyncio.sleep(0)

    assert (bench.exits, bench.settled) == ([EXIT_CODE], [1])
    syncer.close()
    os.close(bench.writer._segment.descriptor)
    assert recover_all(OsFiles(), journal=broker.journal, quarantine=broker.quarantine)[1] == [1, 2]
