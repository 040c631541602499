"""kill -9 of a real daemon that seals its history: every record it ever settled stands in it, once and in order.

Cycles and seeds as in `test_crash_kill`. A running number of a slot that is missing or there twice is a record lost or
doubled.
"""

from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from offsetd.history.seal import TEMPORARY
from offsetd.journal.directory import broker_directory
from offsetd.journal.sealed import list_sealed
from tests.crash.cycles import Cycles, cycles_of, seed_of
from tests.fakes.daemon import WAIT_SECONDS, Daemon
from tests.history.released import everything, segment_rows

pytestmark = pytest.mark.crash

SETTINGS: dict[str, object] = {
    "history.seal.enabled": True,
    "history.seal.max.lag.ms": 1,
    "history.retention.bytes": 1 << 30,
}
PLACES = ("seal_before_write", "seal_after_write", "seal_after_rename", "seal_after_sync", "seal_after_unlink")
SLOT, SEQUENCE = 0, 1


def check_history(daemon: Daemon) -> int:
    """Hold what history and journal have against the running numbers of the slots; return how many records it is."""
    directory = broker_directory(daemon.data, 1)
    rows = everything(directory)
    for path in sorted(directory.journal.glob("*.segment")):
        rows += segment_rows(directory, path)
    sequences: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if row[SEQUENCE] is not None:
            sequences[row[SLOT]].append(row[SEQUENCE])
    for slot, found in sequences.items():
        assert sorted(found) == list(range(len(found))), f"slot {slot}"
    return len(rows)


class AtWork:
    """Tells when a sealer is in the middle of it: a file is being written, or has just got its name."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._seen: tuple[int, int] = (0, 0)

    def __call__(self, daemon: Daemon) -> bool:
        sealed = broker_directory(daemon.data, 1).sealed
        written_ns = 0
        with suppress(FileNotFoundError):
            written_ns = (sealed / TEMPORARY).stat().st_mtime_ns
        before, self._seen = self._seen, (len(list_sealed(sealed)), written_ns)
        # What a killed sealer left is there still and has not changed.
        begun = written_ns not in (0, before[1])
        return self._seen[0] > before[0] or (begun and self._random.random() < 0.3)


async def test_a_kill_while_history_is_sealed_loses_and_doubles_no_record(tmp_path: Path) -> None:
    seed = seed_of(200)
    print(f"seed {seed}")
    cycles = Cycles(tmp_path, Random(seed), SETTINGS)

    await cycles.run(cycles_of(0.05, 3), seconds=lambda _: WAIT_SECONDS, enough=AtWork(cycles.random))

    assert check_history(cycles.daemon) > 100
    assert list_sealed(broker_directory(cycles.daemon.data, 1).sealed)
    print(f"{dict(cycles.ends)} {dict(cycles.sealings)}")


async def test_an_end_of_sealing_loses_and_doubles_no_record(tmp_path: Path) -> None:
    seed = seed_of(201)
    print(f"seed {seed}")
    cycles = Cycles(tmp_path, Random(seed), SETTINGS)

    await cycles.run(
        cycles_of(0.05, 3),
        lambda random: f"{random.choice(PLACES)}=exit@{random.randint(1, 2)}",
        seconds=lambda _: 20,
        enough=lambda daemon: bool(daemon.events("sealing_failed")),
    )

    assert check_history(cycles.daemon) > 100
    assert cycles.sealings["ended"] > 0, "no place was ever passed"
    print(f"{dict(cycles.ends)} {dict(cycles.sealings)}")
