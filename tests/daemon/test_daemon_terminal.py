"""Ctrl-C on a terminal goes to every process of the daemon's group: its children must not be in it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.children import COMPACTOR, SYNC_HELPER, child, wait_for_end
from tests.fakes.daemon import Daemon
from tests.fakes.wire import connected

ORDERS = ("orders", 0)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    started = Daemon(tmp_path, {"log.segment.bytes": 4096, "log.cleaner.min.cleanable.ratio": 0.0})
    # So long that the compactor is at work until it is ended.
    started.failpoints = "fold_after_write=sleep:600000"
    try:
        yield started.start()
    finally:
        started.clean_up()


async def test_a_compaction_under_way_is_stopped_and_has_not_failed(daemon: Daemon) -> None:
    async with connected(daemon.port) as client:
        while not daemon.metric("offsetd_compaction_lag_bytes"):
            for offset in range(50):
                await client.commit("billing", {ORDERS: offset})
    compactor, helper = child(daemon, COMPACTOR), child(daemon, SYNC_HELPER)

    groups = {os.getpgid(compactor), os.getpgid(helper)}
    os.killpg(daemon.pid, signal.SIGINT)

    assert daemon.pid not in groups
    assert daemon.wait() == 0
    assert (len(daemon.events("compaction_stopped")), daemon.events("compaction_failed")) == (1, [])
    wait_for_end(compactor)
