"""Trying again: attempts with pauses between them, until one succeeds, fails for good, or time is over."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from offsetd.client.backoff import Backoff
from offsetd.client.errors import Unavailable
from offsetd.client.limits import Limits
from offsetd.client.transient import Transient

T = TypeVar("T")

#: Pauses for so many seconds. `asyncio.sleep`, where no test wants to know or to decide.
Sleep = Callable[[float], Awaitable[None]]


class Persistence:
    """How a client tries again."""

    def __init__(self, *, limits: Limits, random: Random, sleep: Sleep) -> None:
        self._limits = limits
        self._random = random
        self.sleep = sleep

    def backoff(self) -> Backoff:
        """Return the pauses of one call."""
        limits = self._limits
        return Backoff(first_s=limits.backoff_first_s, max_s=limits.backoff_max_s, random=self._random)

    def timeout_s(self, asked_s: float | None) -> float:
        """Return the time limit of a call."""
        return self._limits.total_timeout_s if asked_s is None else asked_s

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        action: str,
        group: str | None,
        changes: bool = False,
        timeout_s: float | None = None,
    ) -> T:
        """Return what the first attempt that succeeds returns; one that `changes` something must bear a repetition.

        Raises:
            Unavailable: none succeeded in time.
            ClientError: an attempt failed for good.
        """
        total_s = self.timeout_s(timeout_s)
        backoff = self.backoff()
        last: Transient | None = None
        sent = under_way = False
        try:
            async with asyncio.timeout(total_s):
                while True:
                    under_way = True
                    try:
                        return await attempt()
                    except Transient as error:
                        last = error
                        sent = sent or error.sent
                        under_way = False
                    await self.sleep(backoff.next_s())
        except TimeoutError:
            unknown = changes and (sent or under_way)
            raise Unavailable(action=action, group=group, timeout_s=total_s, last=last, sent=unknown) from last
