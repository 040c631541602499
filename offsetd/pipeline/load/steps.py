"""The stages of a load, timed, and told to its observer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from offsetd.pipeline.load.observer import Observer


class Steps:
    """Times each stage."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._seconds: dict[str, float] = {}

    @property
    def taken(self) -> tuple[tuple[str, float], ...]:
        """Names and seconds of the stages so far, in order."""
        return tuple(self._seconds.items())

    @contextmanager
    def stage(self, name: str, total_records: int | None = None) -> Iterator[None]:
        """Time a block; a name that comes again adds to its time."""
        self.observer.stage(name, total_records)
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.monotonic() - began
