"""A full disk under a real daemon: commits are refused, fetches go on, nothing acknowledged is lost, and it heals."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protocol.errors import Code
from tests.daemon.volume import fill, volume
from tests.fakes.daemon import Daemon
from tests.fakes.wire import RawClient, connected

ORDERS = ("orders", 0)
NO_ROOM = int(Code.COORDINATOR_NOT_AVAILABLE)
#: Large metadata, so that a disk is full after few commits.
METADATA = "m" * 4000
MIB = 1 << 20


@contextmanager
def daemon_on(directory: Path, size_bytes: int, **settings: object) -> Iterator[Daemon]:
    """Run a daemon whose data has a small file system of its own, next to the test's own files."""
    with volume(directory / "volume", size_bytes) as path:
        daemon = Daemon(directory, {"disk.reserve.bytes": MIB, "log.segment.bytes": 65_536, **settings})
        daemon.data = path / "data"
        try:
            yield daemon.start()
        finally:
            daemon.clean_up()


async def commit_until_refused(client: RawClient, first: int) -> int:
    """Commit one number after another until one is refused; return the last one acknowledged."""
    offset = first
    while True:
        code = (await client.commit("billing", {ORDERS: offset}, metadata=METADATA))[ORDERS]
        if code != 0:
            assert code == NO_ROOM
            return offset - 1
        offset += 1


async def commit_until_taken(client: RawClient, offset: int) -> None:
    """Try a commit, as clients do, until it is acknowledged."""
    async with asyncio.timeout(60):
        while (code := (await client.commit("billing", {ORDERS: offset}))[ORDERS]) != 0:
            assert code == NO_ROOM
            await asyncio.sleep(0.02)


async def test_a_full_disk_refuses_commits_and_answers_fetches(tmp_path: Path) -> None:
    """And after space returns it takes commits again, whether or not one tries."""
    with daemon_on(tmp_path, 16 * MIB) as daemon:
        async with connected(daemon.port) as client:
            assert await client.commit("billing", {ORDERS: 1}, metadata=METADATA) == {ORDERS: 0}
            assert daemon.metric("offsetd_disk_full") == 0
            filler = fill(tmp_path / "volume")

            last = await commit_until_refused(client, 2)

            assert daemon.events("disk_full")[0]["level"] == "error"
            for _ in range(20):
                assert await client.committed("billing", [ORDERS]) == {ORDERS: last}
                assert await client.commit("billing", {ORDERS: last + 1}) == {ORDERS: NO_ROOM}
            status, facts = daemon.readiness()
            assert (status, facts["ready"], facts["disk_full"]) == (200, True, True)
            assert daemon.metric("offsetd_disk_full") == 1
            assert daemon.metric("offsetd_journal_refused_commits_total") >= 21
            # What changes nothing needs no room.
            assert await client.commit("billing", {ORDERS: last}, metadata=METADATA) == {ORDERS: 0}

            filler.unlink()
            daemon.wait_until(lambda: daemon.metric("offsetd_disk_full") == 0)

            assert daemon.events("journal_writes_again")
            assert daemon.readiness()[1]["disk_full"] is False
            assert await client.commit("billing", {ORDERS: last + 7}) == {ORDERS: 0}
            fill(tmp_path / "volume")
            again = await commit_until_refused(client, last + 8)
        daemon.restart()
        async with connected(daemon.port) as client:
            assert await client.committed("billing", [ORDERS]) == {ORDERS: again}
        assert daemon.terminate() == 0


async def test_a_start_on_a_full_disk_lives_on_its_reserve(tmp_path: Path) -> None:
    """LevelDB cannot even be opened without a little room, and fetches must be answered."""
    with daemon_on(tmp_path, 16 * MIB) as daemon:
        async with connected(daemon.port) as client:
            assert await client.commit("billing", {ORDERS: 42}) == {ORDERS: 0}
        assert daemon.terminate() == 0
        filler = fill(tmp_path / "volume")

        daemon.start()

        async with connected(daemon.port) as client:
            assert daemon.events("disk_full")
            assert daemon.metric("offsetd_disk_full") == 1
            assert await client.committed("billing", [ORDERS]) == {ORDERS: 42}
            assert await client.commit("billing", {ORDERS: 43}) == {ORDERS: NO_ROOM}
            filler.unlink()
            await commit_until_taken(client, 44)
        daemon.restart()
        async with connected(daemon.port) as client:
            assert await client.committed("billing", [ORDERS]) == {ORDERS: 44}
        assert daemon.metric("offsetd_journal_epoch") == 3


def test_a_start_without_any_room_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    """The reserve is gone too."""
    with daemon_on(tmp_path, 4 * MIB, **{"disk.reserve.bytes": 0}) as daemon:
        assert daemon.terminate() == 0
        filler = fill(tmp_path / "volume")
        daemon.launch()

        assert daemon.wait() == 1
        assert "No space left on device" in daemon.events("load_failed")[0]["reason"]
        filler.unlink()
        daemon.start()
        assert daemon.terminate() == 0


async def test_on_a_full_disk_history_gives_way_to_commits(tmp_path: Path) -> None:
    """Much more is committed than fits: compaction folds, lets the oldest history go, and commits are taken again."""
    settings = {"log.cleaner.min.cleanable.ratio": 1, "log.cleaner.backoff.ms": 50, "disk.reserve.bytes": MIB // 2}
    with daemon_on(tmp_path, 4 * MIB, **settings) as daemon:
        async with connected(daemon.port) as client:
            offset = 0
            async with asyncio.timeout(60):
                while daemon.metric("offsetd_journal_written_bytes_total") < 6 * MIB:
                    offset = await commit_until_refused(client, offset + 1)
                    await commit_until_taken(client, offset + 1)
                    offset += 1

            compactions = [event for event in daemon.events("compaction_done") if event["disk_full"]]
            assert sum(event["segments"] for event in compactions) > 0
            assert sum(event["history_bytes_removed"] for event in compactions) > 0
            assert daemon.metric("offsetd_history_bytes") < 4 * MIB
        daemon.restart()
        async with connected(daemon.port) as client:
            assert await client.committed("billing", [ORDERS]) == {ORDERS: offset}
        assert daemon.terminate() == 0


def test_a_disk_that_is_full_at_the_first_start_is_a_sentence(tmp_path: Path) -> None:
    with volume(tmp_path / "volume", MIB) as path:
        fill(path)
        daemon = Daemon(tmp_path)
        daemon.data = path / "data"
        try:
            daemon.launch()

            assert daemon.wait() == 1
        finally:
            daemon.clean_up()
    assert "No space left on device" in daemon.log_text()
    assert "Traceback" not in daemon.log_text()
