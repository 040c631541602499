"""The windows of a load by name, in their order, and how many crash cycles a run of the tests asks for."""

import os
from typing import Final

import pytest

#: Where the driver may end before anything is published, and after that.
BEFORE_PUBLISHING: Final = ("load_planned", "load_writing", "load_written", "load_manifested")
AFTER_PUBLISHING: Final = ("load_renamed", "load_published", "load_committed")
#: Of a Delta table, which is published by a commit of its log instead of a rename.
AFTER_DELTA: Final = ("load_published", "load_committed")

_CYCLES: Final = "OFFSETD_PIPELINE_CRASH_CYCLES"
_SEED: Final = "OFFSETD_PIPELINE_CRASH_SEED"

#: Every run starts a JVM, so that most of them are only made when somebody wants them.
asked_for: Final = pytest.mark.skipif(_CYCLES not in os.environ, reason=f"{_CYCLES} asks for it (make crash-pipeline)")


def cycles() -> int:
    """Return how many cycles of random windows are asked for."""
    return int(os.environ.get(_CYCLES, "0"))


def seed() -> int:
    """Return the seed: the one in the environment, or a fresh one."""
    text = os.environ.get(_SEED, "fresh")
    return int.from_bytes(os.urandom(4), "big") if text == "fresh" else int(text)
