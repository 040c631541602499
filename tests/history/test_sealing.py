"""When the daemon seals: enough bytes or enough waiting, one run at a time, and longer rests after failures."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from offsetd.history import sealing
from offsetd.history.seal import alone
from offsetd.history.sealing import Sealing
from offsetd.observed import Observed
from tests.directories import DataDirectory, flip_byte
from tests.history.released import MIDNIGHT_MS, Released
from tests.segments import TIME_MS

LAG_MS = 1000
REST_MS = 100


class Scene:
    """A broker's history, and the daemon's view of sealing it."""

    def __init__(self, data: Path) -> None:
        self.now_ms = TIME_MS
        self.observed = Observed()
        self.released = Released(DataDirectory(data).broker.path)
        self.sealing = Sealing(
            data=data,
            broker_id=1,
            history=self.released.directory.history,
            observed=self.observed,
            clock=lambda: self.now_ms,
            max_lag_ms=LAG_MS,
            rest_ms=REST_MS,
        )

    def consider(self, *, disk_full: bool = False) -> bool:
        return self.sealing.consider(self.now_ms, disk_full=disk_full)

    async def run(self) -> None:
        """Let the run end that has begun."""
        assert self.sealing._task is not None
        await asyncio.wait([self.sealing._task])
        await asyncio.sleep(0)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(tmp_path / "data")
    yield scene
    await scene.sealing.stop()


async def test_a_segment_waits_for_others_to_be_sealed_with_it_but_not_for_long(scene: Scene) -> None:
    assert not scene.consider()
    # Segments of these tests were created at TIME_MS.
    scene.released.write([MIDNIGHT_MS])
    assert not scene.consider(), "released by nothing that is known of"
    scene.observed.compaction_runs += 1
    assert not scene.consider()
    scene.now_ms += LAG_MS - 1
    assert not scene.consider()
    scene.now_ms += 1
    assert not scene.consider(disk_full=True)
    assert scene.consider()
    assert not scene.consider(), "one is under way"
    await scene.run()

    assert scene.released.segments() == []
    assert len(scene.released.sealed()) == 1
    observed = scene.observed
    assert (observed.sealing_runs, observed.sealing_failures, observed.sealing_files) == (1, 0, 1)
    assert (observed.sealing_records, observed.sealing_last_success_ms) == (1, scene.now_ms)
    assert observed.sealing_bytes > 0
    assert observed.sealing_seconds > 0
    assert not scene.consider()


async def test_much_is_sealed_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    size = scene.released.write([MIDNIGHT_MS] * 10).stat().st_size
    monkeypatch.setattr(sealing, "_WORTH_BYTES", size)

    assert scene.consider()


async def test_a_clock_that_was_far_ahead_delays_nothing(scene: Scene) -> None:
    scene.now_ms = 1_000
    scene.released.write([MIDNIGHT_MS])

    assert not scene.consider()
    scene.now_ms += LAG_MS
    assert scene.consider()


async def test_each_failure_makes_the_rest_twice_as_long(scene: Scene) -> None:
    harmed = scene.released.write([MIDNIGHT_MS] * 2)
    flip_byte(harmed, -20)
    scene.now_ms += LAG_MS
    for failures in (1, 2):
        assert scene.consider()
        await scene.run()
        assert scene.observed.sealing_failures == failures
        scene.now_ms += failures * REST_MS - 1
        assert not scene.consider()
        scene.now_ms += 1
    # What was whole is sealed all the same, and counted.
    assert (scene.observed.sealing_files, scene.observed.sealing_runs) == (1, 0)
    harmed.unlink()
    assert not scene.consider(), "nothing is left to seal"


async def test_another_one_at_work_is_waited_for_and_no_failure(scene: Scene) -> None:
    scene.released.write([MIDNIGHT_MS])
    scene.now_ms += LAG_MS
    scene.released.directory.sealed.mkdir()
    with alone(scene.released.directory.sealed):
        assert scene.consider()
        await scene.run()
    assert (scene.observed.sealing_failures, scene.observed.sealing_runs) == (0, 0)
    assert not scene.consider()
    scene.now_ms += REST_MS
    assert scene.consider()
    await scene.run()
    assert scene.observed.sealing_runs == 1


async def test_a_stop_ends_a_run_and_none_begins_after_it(scene: Scene) -> None:
    scene.released.write([MIDNIGHT_MS])
    scene.now_ms += LAG_MS
    assert scene.consider()

    await scene.sealing.stop()

    assert scene.observed.sealing_failures == 0
    assert not scene.consider()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sealing.missing() is None
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert sealing.missing() == "pyarrow"
