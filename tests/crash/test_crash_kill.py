"""kill -9 of a real daemon under checked load: nothing acknowledged is lost, nothing goes back, nothing is half there.

`OFFSETD_CRASH_CYCLES` sets the number of cycles, `OFFSETD_CRASH_SEED` a seed (a number, or `fresh`). What a process can
be doing when it is killed differs from run to run also with the same seed; the seed fixes the load and the moments.
"""

from pathlib import Path
from random import Random

import pytest

from tests.crash.cycles import Cycles, cycles_of, seed_of
from tests.fakes.daemon import WAIT_SECONDS

pytestmark = pytest.mark.crash

RANDOM_RUNS = 2
#: Places in the daemon's own process, with how often each may be passed before it ends there.
PLACES = {
    "before_write": 300,
    "after_write": 300,
    "before_sync_request": 300,
    "after_settled": 300,
    "before_roll": 4,
    "after_seal": 4,
    "after_segment_created": 4,
}
#: Places in compaction, a process that may die without its daemon. One run folds once, and releases several segments.
COMPACTION_PLACES = {
    "fold_before_write": 1,
    "fold_after_write": 1,
    "release_before_rename": 2,
    "release_after_rename": 2,
}


@pytest.mark.parametrize("number", range(RANDOM_RUNS))
async def test_a_kill_at_any_moment_loses_nothing_acknowledged(number: int, tmp_path: Path) -> None:
    seed = seed_of(number)
    print(f"seed {seed}")
    cycles = Cycles(tmp_path, Random(seed))

    await cycles.run(cycles_of(0.4 / RANDOM_RUNS, 6))

    counts = cycles.record.counts
    print(f"{dict(cycles.ends)} {dict(counts)}")
    assert counts["commit 0"] > 100
    assert counts["fetch 0"] > 100


@pytest.mark.parametrize("place", PLACES)
async def test_an_end_at_a_named_place_loses_nothing_acknowledged(place: str, tmp_path: Path) -> None:
    seed = seed_of(sorted(PLACES).index(place))
    print(f"seed {seed}")
    cycles = Cycles(tmp_path, Random(seed))

    await cycles.run(
        cycles_of(0.4 / len(PLACES), 2),
        lambda random: f"{place}=exit@{random.randint(1, PLACES[place])}",
        seconds=lambda _: WAIT_SECONDS,
    )

    print(f"{dict(cycles.ends)} {dict(cycles.record.counts)}")
    assert cycles.ends["failpoint"] > 0, "the place was never passed"


async def test_an_end_in_recovery_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """A torn tail is cut at the start; being ended before or after that, again and again, changes nothing."""
    seed = seed_of(99)
    print(f"seed {seed}")
    cycles = Cycles(tmp_path, Random(seed))

    await cycles.run(
        cycles_of(0.1, 3),
        lambda random: random.choice(("recovery_before_truncate=exit", "recovery_after_truncate=exit", "")),
    )

    assert cycles.record.counts["commit 0"] > 0


@pytest.mark.parametrize("place", COMPACTION_PLACES)
async def test_an_end_of_compaction_loses_nothing_acknowledged(place: str, tmp_path: Path) -> None:
    seed = seed_of(100 + sorted(COMPACTION_PLACES).index(place))
    print(f"seed {seed}")
    cycles = Cycles(tmp_path, Random(seed))

    await cycles.run(
        cycles_of(0.1 / len(COMPACTION_PLACES), 2),
        lambda random: f"{place}=exit@{random.randint(1, COMPACTION_PLACES[place])}",
        seconds=lambda _: WAIT_SECONDS,
        enough=lambda daemon: bool(daemon.events("compaction_failed")),
    )

    assert cycles.record.counts["commit 0"] > 0
    assert cycles.compactions["ended"] > 0, "the place was never passed"
