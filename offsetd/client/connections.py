"""The open connections of a client, one for each address, shared by all who ask for it."""

import asyncio
from collections.abc import Awaitable, Callable

from offsetd.client.address import Address
from offsetd.client.connection import Connection
from offsetd.client.errors import Closed

#: Opens a connection: `connection.open_connection` with everything but the address decided.
Opener = Callable[[Address], Awaitable[Connection]]


class Connections:
    """Connections by address, each opened when it is first asked for and again when it was lost."""

    def __init__(self, open_connection: Opener) -> None:
        self._open_connection = open_connection
        self._open: dict[Address, Connection] = {}
        self._opening: dict[Address, asyncio.Task[Connection]] = {}
        self._closed = False

    async def get(self, address: Address) -> Connection:
        """Return an open connection; those who ask while it is being opened wait for the same one.

        Raises:
            ConnectionFailed: it could not be opened.
            Untrusted: by TLS it is not whom it should be.
            Closed: `close` came first.
        """
        if self._closed:
            raise Closed
        connection = self._open.get(address)
        if connection is not None and connection.is_open:
            return connection
        opening = self._opening.get(address)
        if opening is None:
            opening = asyncio.create_task(self._keep(address))
            self._opening[address] = opening
            opening.add_done_callback(lambda task: self._opened(address, task))
        try:
            # Whoever gives up waiting does not take the connection from the others.
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled() and self._closed:
                raise Closed from None
            raise

    async def close(self) -> None:
        """Close all of them; nobody gets one afterwards."""
        self._closed = True
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        await self.drop()

    async def drop(self) -> None:
        """Close those that are open; whoever asks next gets a new one."""
        connections = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(connection.close() for connection in connections if connection.is_open))

    async def _keep(self, address: Address) -> Connection:
        connection = await self._open_connection(address)
        self._open[address] = connection
        return connection

    def _opened(self, address: Address, task: "asyncio.Task[Connection]") -> None:
        del self._opening[address]
        if not task.cancelled():
            # Everybody who waited may be gone by now, and a failure that nobody asked about is none.
            task.exception()
