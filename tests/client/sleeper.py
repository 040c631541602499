"""Sleep in a test's hand: pauses between attempts are none, and whoever sleeps longer is woken by the test."""

import asyncio

#: Nobody pauses so long between attempts under the limits of these tests.
LONG_SECONDS = 1.0


class Sleeper:
    """A `sleep` for clients."""

    def __init__(self) -> None:
        self._asleep: list[tuple[float, asyncio.Event]] = []
        self._came = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        """Sleep until woken, or not at all."""
        if seconds < LONG_SECONDS:
            await asyncio.sleep(0)
            return
        entry = (seconds, asyncio.Event())
        self._asleep.append(entry)
        self._came.set()
        try:
            await entry[1].wait()
        finally:
            self._asleep.remove(entry)

    async def wake(self, seconds: float) -> None:
        """Wait until somebody sleeps for so long, and wake it."""
        while not (found := [event for each, event in self._asleep if each == seconds and not event.is_set()]):
            self._came.clear()
            await self._came.wait()
        found[0].set()
