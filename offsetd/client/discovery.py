"""Who coordinates a group: asked of any bootstrap address, remembered until a broker says otherwise."""

from collections.abc import Iterable
from random import Random
from typing import Final, TypeVar

from offsetd.client.address import Address
from offsetd.client.connections import Connections
from offsetd.client.errors import refusal
from offsetd.client.transient import Busy, ConnectionFailed, Transient, is_transient
from protocol.api import Request, Response
from protocol.errors import Code
from protocol.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)

R = TypeVar("R", bound=Response)

#: Small enough that neither a request nor, with some thousand offsets a group, its reply is too large for anybody.
GROUPS_PER_REQUEST_MAX: Final = 500
_GROUP_KEY: Final = 0


class Discovery:
    """The coordinators that are known, and the bootstrap addresses that know them."""

    def __init__(self, bootstrap: tuple[Address, ...], connections: Connections, *, random: Random) -> None:
        self._bootstrap = bootstrap
        self._connections = connections
        # Clients with the same list do not all begin at its first address.
        self._first = random.randrange(len(bootstrap))
        self._known: dict[str, Address] = {}

    async def coordinator(self, group: str) -> Address:
        """Return the address of a group's coordinator.

        Raises:
            Transient: nobody could be reached, or nobody knows it now.
            Refused: it may not be asked for.
        """
        return (await self.coordinators((group,)))[group]

    async def coordinators(self, groups: Iterable[str]) -> dict[str, Address]:
        """Return the addresses of the coordinators of several groups; raises as `coordinator` does."""
        wanted = tuple(dict.fromkeys(groups))
        missing = [group for group in wanted if group not in self._known]
        for start in range(0, len(missing), GROUPS_PER_REQUEST_MAX):
            await self._find(missing[start : start + GROUPS_PER_REQUEST_MAX])
        return {group: self._known[group] for group in wanted}

    async def _find(self, groups: list[str]) -> None:
        asked = FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=tuple(groups))
        reply, address = await self.ask_anybody(asked, FindCoordinatorResponse)
        rows = {row.key: row for row in reply.coordinators}
        try:
            for group in groups:
                self._known[group] = _address_of(group, rows.get(group), address)
        except Transient:
            # This one does not know; the next attempt asks another.
            self._first = (self._first + 1) % len(self._bootstrap)
            raise

    def forget(self, group: str, address: Address) -> None:
        """Hear that this is not, or not any more, a group's coordinator."""
        if self._known.get(group) == address:
            del self._known[group]

    async def ask_anybody(self, request: Request, kind: type[R]) -> tuple[R, Address]:
        """Send what any broker can answer to the bootstrap addresses in turn, until one does; tell which.

        Raises:
            ConnectionFailed: none did.
        """
        count = len(self._bootstrap)
        for number in range(self._first, self._first + count):
            address = self._bootstrap[number % count]
            try:
                connection = await self._connections.get(address)
                reply = await connection.call(request, kind)
            except ConnectionFailed as error:
                failed = error
            else:
                # Asked first the next time, too.
                self._first = number % count
                return reply, address
        raise failed


def _address_of(group: str, row: FindCoordinatorResponseCoordinator | None, asked: Address) -> Address:
    if row is None:
        raise ConnectionFailed(address=asked, reason=f"a reply that leaves out group {group!r}", sent=False)
    if is_transient(row.error_code):
        raise Busy(address=asked, code=row.error_code)
    if row.error_code != Code.NONE:
        raise refusal(action="finding the coordinator", group=group, code=row.error_code)
    return Address(row.host, row.port)
