"""How long a fuzzer runs and with which numbers, by the environment; every finding names the seed that repeats it.

OFFSETD_FUZZ_SECONDS: how long each fuzzer runs; a few seconds unless told otherwise.
OFFSETD_FUZZ_SEED: a number, or ``fresh`` for one that has not been tried yet.
"""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

SECONDS = 3.0
SEED = "1"


class Campaign:
    """One run of one fuzzer."""

    def __init__(self) -> None:
        wanted = os.environ.get("OFFSETD_FUZZ_SEED", SEED)
        self.seed = secrets.randbits(32) if wanted == "fresh" else int(wanted)
        self.seconds = float(os.environ.get("OFFSETD_FUZZ_SECONDS", SECONDS))
        self.random = Random(self.seed)
        self.frames = 0
        """How many frames were tried: the fuzzer counts them."""
        self._until = 0.0

    def begin(self) -> None:
        """Let the time run from now on; what was made ready before does not count."""
        self._until = time.monotonic() + self.seconds

    def rounds(self) -> Iterator[int]:
        """Count rounds until the time is up; there is always a first one."""
        number = 0
        while number == 0 or not self.is_over:
            yield number
            number += 1

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self._until


@contextmanager
def campaign(title: str) -> Iterator[Campaign]:
    """Run a fuzzer; what it finds is raised with the way to see it again, what it did is printed."""
    run = Campaign()
    again = f"OFFSETD_FUZZ_SEED={run.seed} OFFSETD_FUZZ_SECONDS={run.seconds:g}"
    print(f"\n{title}: {again}", flush=True)
    started = time.monotonic()
    try:
        yield run
    except BaseException as error:
        error.add_note(f"found by {title} after {run.frames} frames; again with {again}")
        raise
    seconds = time.monotonic() - started
    print(f"{title}: {run.frames} frames in {seconds:.1f} s, {run.frames / seconds:.0f} frames/s", flush=True)
