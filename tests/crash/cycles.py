"""Lives of one daemon under checked load, each ended without warning, and each followed by a look at what was kept."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.crash.load import CLIENTS, LoadClient, Record, held_by_all
from tests.fakes.daemon import WAIT_SECONDS, Daemon

#: Small segments and eager compaction, so that rolls and folds happen within a life of half a second.
SETTINGS: Final[dict[str, object]] = {
    "log.segment.bytes": 32_768,
    "log.cleaner.min.cleanable.ratio": 0,
    "log.cleaner.max.compaction.lag.ms": 1,
    "log.cleaner.backoff.ms": 50,
    "history.retention.bytes": 1_000_000,
}
FAILPOINT_EXIT_CODE: Final = 86
_CYCLES_VARIABLE: Final = "OFFSETD_CRASH_CYCLES"
_SEED_VARIABLE: Final = "OFFSETD_CRASH_SEED"


@dataclass
class Cycles:
    """A daemon, its clients' record, and how its lives ended."""

    directory: Path
    random: Random
    settings: dict[str, object] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    ends: Counter[str] = field(default_factory=Counter)
    # How the compactions of all lives went: done, or ended by a failpoint.
    compactions: Counter[str] = field(default_factory=Counter)
    # The same of what seals history.
    sealings: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.daemon = Daemon(self.directory, {**SETTINGS, **self.settings})

    async def run(
        self,
        count: int,
        failpoints: Callable[[Random], str] = lambda _: "",
        *,
        seconds: Callable[[Random], float] = lambda random: random.uniform(0.05, 0.4),
        enough: Callable[[Daemon], bool] = lambda _: False,
    ) -> None:
        """Live and die so many times; then start once more, look, and stop cleanly.

        Args:
            count: how many lives.
            failpoints: what is armed in a life.
            seconds: how long a life lasts at most; one that a failpoint ends lasts shorter.
            enough: ends a life before that.
        """
        try:
            for _ in range(count):
                await self._cycle(failpoints(self.random), seconds(self.random), enough)
            self.daemon.failpoints = ""
            await self._start_and_look()
            assert await asyncio.to_thread(self.daemon.terminate) == 0
        finally:
            self.daemon.clean_up()

    async def _cycle(self, failpoints: str, seconds: float, enough: Callable[[Daemon], bool]) -> None:
        self.daemon.failpoints = failpoints
        if not await self._start_and_look():
            return
        clients = [LoadClient(number, self.record, Random(self.random.random())) for number in range(CLIENTS)]
        loads = [asyncio.create_task(client.run(self.daemon.port)) for client in clients]
        try:
            await self._end(seconds, enough)
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.gather(*loads)
            self.compactions["done"] += len(self.daemon.events("compaction_done"))
            for event in self.daemon.events("compaction_failed"):
                assert event["exit_code"] == FAILPOINT_EXIT_CODE, event
                self.compactions["ended"] += 1
            self.sealings["done"] += len(self.daemon.events("sealing_done"))
            for event in self.daemon.events("sealing_failed"):
                assert event["exit_code"] == FAILPOINT_EXIT_CODE, event
                self.sealings["ended"] += 1
        finally:
            for load in loads:
                load.cancel()
            await asyncio.gather(*loads, return_exceptions=True)

    async def _start_and_look(self) -> bool:
        """Start a life; tell whether it lasted long enough to be looked at."""
        try:
            await asyncio.to_thread(self.daemon.start)
            started = time.monotonic()
            held = await held_by_all(self.daemon.port)
        except (AssertionError, OSError, asyncio.IncompleteReadError):
            # Some failpoints are passed at the start already.
            if not self.daemon.failpoints or self.daemon.process is None:
                raise
            if await asyncio.to_thread(self.daemon.wait) != FAILPOINT_EXIT_CODE:
                raise
            self.ends["failpoint"] += 1
            return False
        self.record.settle(held, started=started, ended=time.monotonic())
        return True

    async def _end(self, seconds: float, enough: Callable[[Daemon], bool]) -> None:
        """Wait for a failpoint to end the daemon, and end it when none did in time."""
        process = self.daemon.process
        assert process is not None
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline and not enough(self.daemon):
            await asyncio.sleep(0.002)
        if process.poll() is not None:
            assert process.returncode == FAILPOINT_EXIT_CODE, self.daemon.log_text()[-3000:]
            self.ends["failpoint"] += 1
        elif self.random.random() < 0.1:
            self.daemon.signal(signal.SIGTERM)
            assert await asyncio.to_thread(self.daemon.wait) == 0, self.daemon.log_text()[-3000:]
            self.ends["stopped"] += 1
        else:
            self.daemon.kill()
            self.ends["killed"] += 1


def cycles_of(share: float, default: int) -> int:
    """Return how many cycles a test runs: its share of the number in the environment, or its default."""
    wanted = int(os.environ.get(_CYCLES_VARIABLE, "0"))
    return max(round(wanted * share), 1) if wanted else default


def seed_of(number: int) -> int:
    """Return the seed of a test: always the same, unless the environment asks for one or for fresh ones."""
    text = os.environ.get(_SEED_VARIABLE, "")
    if text == "fresh":
        return int.from_bytes(os.urandom(4), "big")
    return int(text or "4") * 1000 + number
