"""A load that fails: it never says "no offset", it names what is wrong and what to do, and the daemon ends."""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import msgpack
import pytest

from offsetd.coordinator.slot import slot_of
from offsetd.journal.engine import EngineSettings
from protocol.errors import Code
from protocol.offset_commit import OffsetCommitResponse
from protocol.offset_fetch import OffsetFetchResponse
from tests.fakes.daemon import WAIT_SECONDS, Daemon
from tests.fakes.engine import commit_entry, leave
from tests.fakes.wire import commit_codes, commit_request, connected, fetch_request

SLOTS = 3
GROUPS = tuple(next(f"g{n}" for n in range(100) if slot_of(f"g{n}", SLOTS) == slot) for slot in range(SLOTS))
LOADING = int(Code.COORDINATOR_LOAD_IN_PROGRESS)
#: A few batches per segment, and nothing is compacted by itself.
SMALL = EngineSettings(segment_bytes=1000, cleanable_ratio=1.0, compaction_lag_ms=10**12, reserve_bytes=0)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon, not started."""
    daemon = Daemon(
        tmp_path,
        {
            "offsets.topic.num.partitions": SLOTS,
            "log.cleaner.min.cleanable.ratio": 1,
            "log.cleaner.max.compaction.lag.ms": 10**12,
        },
    )
    yield daemon
    daemon.clean_up()


def _entries(count: int = 30, first: int = 0) -> list[bytes]:
    now_ms = time.time_ns() // 1_000_000
    return [commit_entry(f"g{n % 7}", {("orders", 0): n}, time_ms=now_ms) for n in range(first, first + count)]


def _broker(daemon: Daemon) -> Path:
    return daemon.data / "broker-1"


def _segments(daemon: Daemon) -> list[Path]:
    return sorted((_broker(daemon) / "journal").glob("*.segment"))


def _refused(daemon: Daemon) -> str:
    """Start it, see it end with code 1, and return what it says is wrong."""
    daemon.launch()
    code = daemon.wait()
    failures = daemon.events("load_failed")

    assert code == 1, daemon.log_text()
    assert len(failures) == 1
    assert failures[0]["level"] == "error"
    assert not daemon.events("slots_loaded")
    return str(failures[0]["reason"])


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_a_damaged_sealed_segment_is_named_with_its_place(daemon: Daemon) -> None:
    """And nothing is cut, moved or written over."""
    asyncio.run(leave(daemon.data, _entries(), settings=SMALL))
    sealed = _segments(daemon)
    assert len(sealed) > 3
    _flip(sealed[1], 400)
    before = {path: path.read_bytes() for path in sealed}

    reason = _refused(daemon)

    assert reason.startswith(f"{sealed[1]}, byte ")
    assert 0 < int(reason.partition(", byte ")[2].partition(":")[0]) <= 400
    assert "the journal is damaged" in reason
    assert "`offsetd journal verify`" in reason
    assert {path: path.read_bytes() for path in _segments(daemon)} == before
    assert not list((_broker(daemon) / "quarantine").iterdir())
    assert "Traceback" not in daemon.log_text()


def test_a_missing_segment_is_noticed(daemon: Daemon) -> None:
    asyncio.run(leave(daemon.data, _entries(), settings=SMALL))
    missing = _segments(daemon)[1]
    missing.unlink()

    reason = _refused(daemon)

    assert reason.startswith(f"{_segments(daemon)[1]}, byte 0: ")
    assert "the segment before ends with batch" in reason


def test_an_unknown_kind_of_entry_is_named_with_its_place(daemon: Daemon) -> None:
    unknown: bytes = msgpack.packb((99, 1, 0, "g0", 0))
    asyncio.run(leave(daemon.data, [*_entries(), unknown], settings=SMALL))
    last = _segments(daemon)[-1]

    reason = _refused(daemon)

    assert reason.startswith(f"{last}, byte ")
    assert 0 < int(reason.partition(", byte ")[2].partition(":")[0]) < last.stat().st_size
    assert "an entry of kind 99 version 1, which this release does not know" in reason
    assert "start that release, or a later one" in reason
    assert "Traceback" not in daemon.log_text()


def test_an_entry_that_makes_no_sense_is_refused_too(daemon: Daemon) -> None:
    """Its checksum is right, so it is a fault of the one who wrote it; guessing would be another one."""
    senseless: bytes = msgpack.packb((2, 1, 0, "g0"))
    asyncio.run(leave(daemon.data, [*_entries(3), senseless], settings=SMALL))

    reason = _refused(daemon)

    assert "ValueError" in reason
    assert "Traceback" in daemon.log_text()


def _missing(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)


def _no_current(checkpoint: Path) -> None:
    (checkpoint / "CURRENT").unlink()


def _no_table(checkpoint: Path) -> None:
    for table in checkpoint.glob("*.ldb"):
        table.unlink()


def _harmed_manifest(checkpoint: Path) -> None:
    for manifest in checkpoint.glob("MANIFEST-*"):
        manifest.write_bytes(b"\xff" * manifest.stat().st_size)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_missing, "is missing. "),
        (_no_current, "is damaged: it has no file CURRENT. "),
        (_no_table, "is damaged: "),
        (_harmed_manifest, "is damaged: "),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused(daemon: Daemon, harm: Callable[[Path], None], words: str) -> None:
    asyncio.run(leave(daemon.data, _entries(), settings=SMALL, compacted=True))
    checkpoint = _broker(daemon) / "checkpoint"
    harm(checkpoint)

    reason = _refused(daemon)

    assert reason.startswith(f"the checkpoint {checkpoint} {words}")
    assert "`offsetd journal repair` can rebuild it" in reason
    assert "Traceback" not in daemon.log_text()


def test_losing_checkpoint_and_journal_is_no_new_beginning(daemon: Daemon) -> None:
    """The history shows that there were offsets."""
    asyncio.run(leave(daemon.data, _entries(), settings=SMALL, compacted=True))
    for name in ("checkpoint", "journal"):
        shutil.rmtree(_broker(daemon) / name)

    assert "is missing" in _refused(daemon)
    assert not (_broker(daemon) / "checkpoint").exists()


def test_a_checkpoint_of_another_cluster_is_refused(daemon: Daemon, tmp_path: Path) -> None:
    asyncio.run(leave(daemon.data, _entries(), settings=SMALL, compacted=True))
    asyncio.run(leave(tmp_path / "other", _entries(), settings=SMALL, compacted=True))
    checkpoint = _broker(daemon) / "checkpoint"
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "other" / "broker-1" / "checkpoint", checkpoint)

    reason = _refused(daemon)

    assert reason.startswith(f"the checkpoint {checkpoint} belongs to the cluster ")
    assert "Bring back the checkpoint of this cluster" in reason


def test_a_checkpoint_of_another_past_is_refused(daemon: Daemon, tmp_path: Path) -> None:
    """Two copies of one data directory went their own ways, and then were mixed."""
    asyncio.run(leave(daemon.data, _entries(), settings=SMALL))
    shutil.copytree(daemon.data, tmp_path / "copy")
    asyncio.run(leave(tmp_path / "copy", _entries(20, first=100), settings=SMALL, compacted=True))
    asyncio.run(leave(daemon.data, _entries(40, first=200), settings=SMALL))
    checkpoint = _broker(daemon) / "checkpoint"
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "copy" / "broker-1" / "checkpoint", checkpoint)

    reason = _refused(daemon)

    assert ", byte " in reason
    assert "does not follow the checkpoint" in reason
    assert "Bring back the checkpoint and the journal that belong together" in reason


def test_until_its_end_a_slot_that_failed_refuses(daemon: Daemon, tmp_path: Path) -> None:
    """A client that asks all the time sees COORDINATOR_LOAD_IN_PROGRESS, then the end; never an offset that is none."""
    now_ms = time.time_ns() // 1_000_000
    rows = {("orders", partition): 7 for partition in range(2000)}
    entries = [commit_entry(group, rows, time_ms=now_ms) for group in GROUPS]
    asyncio.run(leave(daemon.data, [*entries, *_entries(1)], settings=SMALL, compacted=True))
    # The last place that looks like offsets is in the last slot's row.
    offsets = (7).to_bytes(8, "big") * 100
    tables = [path for path in (_broker(daemon) / "checkpoint").glob("*.ldb") if offsets in path.read_bytes()]
    assert len(tables) == 1
    _flip(tables[0], tables[0].read_bytes().rindex(offsets))
    hold = tmp_path / "hold"
    hold.touch()
    # Before the slot in front of the harmed one, whose reading may look a step ahead.
    daemon.failpoints = f"load_slot=hold:{hold}@2"
    daemon.start(ready=False)
    daemon.wait_until(lambda: daemon.metric('offsetd_slots{state="ready"}') == 1)

    async def ask() -> tuple[set[int], set[int]]:
        fetched, committed = set(), set()
        async with asyncio.timeout(WAIT_SECONDS), connected(daemon.port) as client:
            assert set((await client.committed(GROUPS[0], [("orders", 0)])).values()) == {7}
            asked = 0
            try:
                while True:
                    request = fetch_request(GROUPS[2], [("orders", 0)])
                    found = cast("OffsetFetchResponse", await client.call(request)).groups[0]
                    fetched |= {found.error_code, found.topics[0].partitions[0].error_code}
                    answer = await client.call(commit_request(GROUPS[2], {("orders", 0): 8}))
                    committed |= set(commit_codes(cast("OffsetCommitResponse", answer)).values())
                    asked += 1
                    if asked == 10:
                        hold.unlink()
            except (ConnectionError, asyncio.IncompleteReadError):
                assert asked >= 10
        return fetched, committed

    codes = asyncio.run(ask())

    assert codes == ({LOADING}, {LOADING})
    assert daemon.wait() == 1
    assert "is damaged: Corruption" in daemon.events("load_failed")[0]["reason"]
