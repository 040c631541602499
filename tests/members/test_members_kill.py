"""kill -9 of the daemon under its members: they go on in the same generation, and nothing acknowledged is lost."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from protocol.errors import Code
from tests.clients.counters import requests
from tests.clients.process import ClientRefused
from tests.clients.stored import stored
from tests.fakes.daemon import Daemon
from tests.fakes.ports import lasting_port
from tests.members.conftest import SETTINGS, StartMember
from tests.members.described import described
from tests.members.member import Member, make_member
from tests.members.process import PYTHON_LIBRARIES, Options
from tests.members.raw_member import Ledger, RawMember
from tests.members.sharing import PLACES, TOPICS, until, until_shared
from tests.members.toolchains import COMMITTING

pytestmark = [pytest.mark.integration, pytest.mark.crash]

GROUPS: Final = tuple(f"raw-{number}" for number in range(10))
MEMBERS_EACH: Final = 5
SESSION_MS: Final = 30_000
#: So many commits of each member must be there before the kill, and as many after it.
COMMITS: Final = 20


class Committing:
    """One raw member that commits rising numbers and sends heartbeats, whatever becomes of its connection."""

    def __init__(self, member: RawMember) -> None:
        self.member = member
        self.acknowledged = 0
        self.sent = 0
        self.commits = 0
        self.codes: Counter[Code] = Counter()

    async def go_on(self, stop: asyncio.Event) -> None:
        """Commit until it is told to stop; a connection that is gone is opened again."""
        while not stop.is_set():
            try:
                await self._commit()
            except (ConnectionError, asyncio.IncompleteReadError):
                await self.member.connect()

    async def _commit(self) -> None:
        self.sent += 1
        code = await self.member.commit(self.sent)
        if code is Code.NONE:
            self.acknowledged = self.sent
            self.commits += 1
        self.codes[code] += 1
        self.codes[await self.member.heartbeat()] += 1


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon whose lives all listen on one port."""
    found = Daemon(tmp_path / "daemon", SETTINGS)
    try:
        yield found.start(listen=f"127.0.0.1:{lasting_port()}")
    finally:
        found.clean_up()


@pytest.fixture
def start(killed: Daemon, tmp_path: Path) -> Iterator[StartMember]:
    """Start members of that daemon; they end with the test."""
    started: list[Member] = []

    def start(library: str, group: str, session_ms: int = SESSION_MS) -> Member:
        options = Options(group=group, topics=tuple(TOPICS), client_id=library, session_ms=session_ms)
        started.append(make_member(library, killed.address, options, tmp_path / f"{library}.log"))
        return started[-1]

    try:
        yield start
    finally:
        for member in started:
            member.clean_up()


async def test_fifty_members_go_on_after_a_kill(killed: Daemon) -> None:
    everybody = await _joined(killed)
    generations = {each.member.member_id: each.member.generation for each in everybody}
    stop = asyncio.Event()

    async with asyncio.TaskGroup() as tasks:
        for each in everybody:
            tasks.create_task(each.go_on(stop))
        await _until_more_commits(everybody)
        await asyncio.to_thread(killed.kill)
        await asyncio.to_thread(killed.start, listen=killed.address)
        await _until_more_commits(everybody)
        stop.set()
    counted = await asyncio.to_thread(requests, killed)
    groups = [await asyncio.to_thread(described, killed, group) for group in GROUPS]
    held = {group: await asyncio.to_thread(stored, killed, group) for group in GROUPS}
    for each in everybody:
        await each.member.disconnect()

    # While the daemon loads, commits are put off and heartbeats are well; nobody is ever sent to join again.
    assert set().union(*(each.codes for each in everybody)) <= {Code.NONE, Code.COORDINATOR_LOAD_IN_PROGRESS}
    assert (counted["JoinGroup"], counted["SyncGroup"]) == (0, 0)
    assert {each.member.member_id: each.member.generation for each in everybody} == generations
    assert [(group.state, len(group.members)) for group in groups] == [("Stable", MEMBERS_EACH)] * len(GROUPS)
    assert {member.member_id: member.owned for group in groups for member in group.members} == {
        each.member.member_id: each.member.owned for each in everybody
    }
    for each in everybody:
        assert {held[each.member.group][place][0] for place in each.member.owned} <= {each.acknowledged, each.sent}


async def _joined(daemon: Daemon) -> list[Committing]:
    ledgers = {group: Ledger(tuple(sorted(PLACES))) for group in GROUPS}
    members = [
        RawMember(daemon.port, group, ledgers[group], client_id=f"m-{number}", session_ms=SESSION_MS)
        for group in GROUPS
        for number in range(MEMBERS_EACH)
    ]
    for member in members:
        await member.connect()
    await asyncio.gather(*(member.take_part() for member in members))
    # Who came too late for the first generation has begun another one.
    while codes := [each for each in members if await each.heartbeat() is not Code.NONE]:
        await asyncio.gather(*(member.take_part() for member in codes))
    return [Committing(member) for member in members]


async def _until_more_commits(everybody: list[Committing]) -> None:
    goals = [(each, each.commits + COMMITS) for each in everybody]
    while any(each.commits < goal for each, goal in goals):
        await asyncio.sleep(0.01)


def test_members_of_real_clients_go_on_after_a_kill(killed: Daemon, start: StartMember) -> None:
    members = [start(library, "killed") for library in PYTHON_LIBRARIES]
    owned = until_shared(killed, members)
    for member in members:
        member.commit(dict.fromkeys(owned[member.options.client_id], 41))
    seen, assignments = described(killed, "killed"), [member.look().assignments for member in members]

    killed.kill()
    killed.start(listen=killed.address)
    for member in members:
        mine = owned[member.options.client_id]
        assert member.committed(mine) == dict.fromkeys(mine, 41)
        member.commit(dict.fromkeys(mine, 42))

    assert described(killed, "killed") == seen
    assert [member.look().assignments for member in members] == assignments
    assert requests(killed)["JoinGroup"] == 0
    assert {offset for offset, _ in stored(killed, "killed").values()} == {42}


@pytest.mark.parametrize("library", COMMITTING)
def test_a_member_of_any_library_goes_on_after_a_kill(library: str, killed: Daemon, start: StartMember) -> None:
    """When all brokers are gone, Java forgets its topics, Sarama ends its session and kafkajs forgets who it was.

    So each of them joins once more, though nobody asks it to: kafkajs as a newcomer, which takes two requests.
    """
    member = start(library, "killed", session_ms=6000)
    until_shared(killed, [member])
    member.commit(dict.fromkeys(PLACES, 41))

    killed.kill()
    killed.start(listen=killed.address)
    until(f"{library} to commit again", lambda: _commits(member, 42), bool)
    until_shared(killed, [member])

    assert requests(killed)["JoinGroup"] <= 2


def _commits(member: Member, offset: int) -> bool:
    """Commit, and look: kafkajs says nothing when it has committed nothing because it joins."""
    assert member.committed(PLACES) in (dict.fromkeys(PLACES, 41), dict.fromkeys(PLACES, offset))
    try:
        member.commit(dict.fromkeys(PLACES, offset))
    except ClientRefused:
        return False
    return member.committed(PLACES) == dict.fromkeys(PLACES, offset)
