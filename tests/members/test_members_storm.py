"""A storm: many members join, leave and vanish all at once; then it is over, and every partition has one owner.

`make storm` has more of them, for longer, and other chances each time.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest

from protocol.errors import Code
from tests.clients.counters import requests
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon, running
from tests.members.described import DescribedGroup, described
from tests.members.raw_member import Ledger, RawMember
from tests.members.sharing import is_once, until

pytestmark = pytest.mark.integration

MEMBERS: Final = int(os.environ.get("OFFSETD_STORM_MEMBERS", "40"))
#: 0: each member has so many lives, however long they take.
SECONDS: Final = float(os.environ.get("OFFSETD_STORM_SECONDS", "0"))
LIVES: Final = 3
GROUP: Final = "storm"
PLACES: Final = tuple(("orders", number) for number in range(64))
#: Who vanishes is missed soon, and nobody is missed who is only slow: a held request excuses it.
SESSION_MS: Final = 1000
#: The share of lives that end without a word.
VANISHING: Final = 0.2
BEATS_MAX: Final = 4
BEAT_SECONDS: Final = 0.05


class Storm:
    """Members, each with several lives, and one that it stays in."""

    def __init__(self, port: int, random: Random) -> None:
        self.ledger = Ledger(PLACES)
        self.members = [
            RawMember(port, GROUP, self.ledger, client_id=f"m-{number}", session_ms=SESSION_MS)
            for number in range(MEMBERS)
        ]
        self._random = random
        self._until = time.monotonic() + SECONDS
        self._calm = asyncio.Event()
        self._staying = 0
        # What the last commits were answered.
        self.codes: Counter[Code] = Counter()

    @asynccontextmanager
    async def blown_over(self) -> AsyncIterator[None]:
        """Let all live through it. In the block they are members and only send heartbeats; at its end they commit."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for number, member in enumerate(self.members, 1):
                    tasks.create_task(self._run(number, member))
                while self._staying < MEMBERS:
                    await asyncio.sleep(BEAT_SECONDS)
                yield
                self._calm.set()
        finally:
            for member in self.members:
                await member.disconnect()

    async def _run(self, number: int, member: RawMember) -> None:
        await member.connect()
        lives = 0
        while lives < LIVES or time.monotonic() < self._until:
            await self._live(member)
            lives += 1
        await member.take_part()
        self._staying += 1
        while not self._calm.is_set():
            await self._beat(member)
        self.codes[await member.commit(number)] += 1

    async def _live(self, member: RawMember) -> None:
        chance = self._random.random()
        if chance < VANISHING / 2:
            await self._vanish_while_joining(member)
            return
        await member.take_part()
        for _ in range(self._random.randrange(BEATS_MAX)):
            await self._beat(member)
        if chance < VANISHING:
            member.forget()
            await member.connect()
        else:
            assert await member.leave() in {Code.NONE, Code.UNKNOWN_MEMBER_ID}

    async def _vanish_while_joining(self, member: RawMember) -> None:
        """Go with an id that was only given out, or with a request that is held."""
        joining = asyncio.create_task(member.take_part())
        await asyncio.wait({joining}, timeout=self._random.random() * BEAT_SECONDS)
        joining.cancel()
        await asyncio.wait({joining})
        if not joining.cancelled():
            joining.result()
        member.forget()
        await member.connect()

    async def _beat(self, member: RawMember) -> None:
        """Send a heartbeat, and do what its answer asks for."""
        await asyncio.sleep(self._random.random() * BEAT_SECONDS)
        code = await member.heartbeat()
        if code is Code.UNKNOWN_MEMBER_ID:
            member.forget()
        if code is not Code.NONE:
            assert code in {Code.UNKNOWN_MEMBER_ID, Code.REBALANCE_IN_PROGRESS, Code.ILLEGAL_GENERATION}
            await member.take_part()


@pytest.fixture
def random() -> Random:
    """The chances of this storm, which are the same each time unless others are asked for."""
    seed = os.environ.get("OFFSETD_STORM_SEED", "1")
    chosen = str(time.time_ns()) if seed == "fresh" else seed
    print(f"OFFSETD_STORM_SEED={chosen}")
    return Random(chosen)


async def test_a_storm_of_members_ends_with_every_partition_owned_once(tmp_path: Path, random: Random) -> None:
    settings = {
        "topics.known": f"orders:{len(PLACES)}",
        "group.initial.rebalance.delay.ms": 100,
        "group.min.session.timeout.ms": 1000,
    }
    with running(tmp_path, settings) as daemon:
        storm = Storm(daemon.port, random)
        async with storm.blown_over():
            group = await asyncio.to_thread(_settled, daemon, storm)
        offsets = await asyncio.to_thread(stored, daemon, GROUP)

        assert {member.client_id: member.owned for member in storm.members} == {
            member.client_id: member.owned for member in group.members
        }
        assert storm.codes == {Code.NONE: MEMBERS}
        assert {place: offset for place, (offset, _) in offsets.items()} == {
            place: number for number, member in enumerate(storm.members, 1) for place in member.owned
        }
        assert [event for event in daemon.events() if event["level"] != "info"] == []
        print(f"{len(storm.ledger.assigned)} generations, {requests(daemon)['JoinGroup']} joins")


def _settled(daemon: Daemon, storm: Storm) -> DescribedGroup:
    def is_settled(group: DescribedGroup) -> bool:
        return (
            group.state == "Stable"
            and len(group.members) == MEMBERS
            and {member.member_id for member in group.members} == {member.member_id for member in storm.members}
            and len({member.generation for member in storm.members}) == 1
            and is_once((member.owned for member in storm.members), frozenset(PLACES))
        )

    return until("the storm to be over", lambda: described(daemon, GROUP), is_settled)
