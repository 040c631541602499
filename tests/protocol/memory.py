"""How much memory a call takes at its worst moment."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

P = ParamSpec("P")


class Meter:
    """Measures calls, while Python's allocations are traced."""

    def peak_bytes(self, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> int:
        """Return by how much memory rose at most during the call, whose result is dropped."""
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call(*args, **kwargs)
        return tracemalloc.get_traced_memory()[1] - before

    def held_bytes(self) -> int:
        """Return how much of what was allocated in this block is still held."""
        return tracemalloc.get_traced_memory()[0]


@contextmanager
def metered() -> Iterator[Meter]:
    """Trace allocations for the length of a block."""
    tracemalloc.start()
    try:
        yield Meter()
    finally:
        tracemalloc.stop()
