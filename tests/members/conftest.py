"""A daemon for a file of tests, and members that end with their test."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fakes.daemon import Daemon, running
from tests.members.member import Member, make_member
from tests.members.process import Options
from tests.members.sharing import TOPICS, TOPICS_KNOWN

#: Starts a member: its library, its group, and other options.
StartMember = Callable[..., Member]
#: Groups gather quickly, and who is gone may be missed soon.
SETTINGS: Final = {
    "topics.known": TOPICS_KNOWN,
    "group.initial.rebalance.delay.ms": 200,
    "group.min.session.timeout.ms": 1000,
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that nothing bad happens to; each test has groups of its own there."""
    with running(tmp_path_factory.mktemp("daemon"), SETTINGS) as found:
        yield found
        assert [event for event in found.events() if event["level"] != "info"] == []


@pytest.fixture
def start_member(daemon: Daemon, tmp_path: Path) -> Iterator[StartMember]:
    """Start members that leave, if they have not, at the end of the test."""
    started: list[Member] = []
    numbers = count(1)

    def start(library: str, group: str, **options: Any) -> Member:
        client_id = f"{library}-{next(numbers)}"
        chosen = Options(**{"group": group, "topics": tuple(TOPICS), "client_id": client_id, **options})
        member = make_member(library, daemon.address, chosen, tmp_path / f"{client_id}.log")
        started.append(member)
        return member

    try:
        yield start
        for member in started:
            if not member.has_ended:
                member.leave()
    finally:
        for member in started:
            member.clean_up()
