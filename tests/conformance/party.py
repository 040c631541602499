"""All connections of one run to one peer: several clients take part, and some of their requests are held."""

import asyncio
import time
from types import TracebackType
from typing import Final, Self, cast

from protocol.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from tests.conformance.line import Line, Outcome
from tests.conformance.member_ids import MemberIds
from tests.conformance.peers import Peer
from tests.conformance.scenario import Seen, Step, spoken
from tests.fakes.wire import connected

_WAIT_SECONDS_MAX: Final = 60.0
_LOOK_SECONDS: Final = 0.005


class Party:
    """The clients of one run, each on a connection of its own."""

    def __init__(self, peer: Peer, run: str) -> None:
        self._peer = peer
        self._run = run
        self._ids = MemberIds()
        self._lines: dict[str, Line] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for line in self._lines.values():
            await line.hang_up()

    async def put(self, step: Step, version: int) -> Outcome:
        """Put a step to the peer, and say what came of it."""
        line = self._lines.setdefault(step.by, Line(self._peer, self._ids))
        outcome = await line.put(step, version, self._run)
        if step.until is not None:
            await self._see(step.until)
        return outcome

    async def _see(self, seen: Seen) -> None:
        """Wait until a held request has been taken: another connection's next request must not overtake it."""
        request = cast("DescribeGroupsRequest", spoken(DescribeGroupsRequest(groups=(seen.group,)), self._run, {}))
        deadline = time.monotonic() + _WAIT_SECONDS_MAX
        async with connected(self._peer.port) as client:
            while True:
                response = cast("DescribeGroupsResponse", await client.call(request, 5))
                group = response.groups[0]
                if (group.group_state, len(group.members)) == (seen.state, seen.members):
                    return
                assert time.monotonic() < deadline, f"{seen} never came about, but {group}"
                await asyncio.sleep(_LOOK_SECONDS)
