"""The listener of the HTTP port and its pages. Every connection serves one GET, within limits, and is closed."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import cast

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from offsetd.http.collector import DaemonCollector
from offsetd.http.request import HTML, JSON, TEXT, Response, read_path, refusal
from offsetd.observed import Live, Observed

CONNECTIONS_MAX = 64
READ_SECONDS_MAX = 5.0
WRITE_SECONDS_MAX = 10.0
INDEX = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>offsetd</title>
<h1>offsetd</h1>
<ul>
<li><a href="/metrics">/metrics</a>: numbers for Prometheus</li>
<li><a href="/livez">/livez</a>: whether the daemon runs</li>
<li><a href="/readyz">/readyz</a>: whether it serves every group</li>
</ul>
</html>
"""


class HttpServer:
    """``/metrics``, ``/livez`` and ``/readyz`` on one port."""

    def __init__(
        self,
        *,
        observed: Observed,
        live: Callable[[], Live],
        ready: Callable[[], tuple[bool, dict[str, object]]],
        per_group: bool,
        groups_max: int,
    ) -> None:
        self._ready = ready
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(
            DaemonCollector(
                observed=observed,
                live=live,
                ready=lambda: ready()[0],
                per_group=per_group,
                groups_max=groups_max,
            )
        )
        self._pages: dict[str, Callable[[], Response]] = {
            "/": lambda: Response(200, HTML, INDEX),
            "/livez": lambda: Response(200, TEXT, b"ok\n"),
            "/metrics": self._metrics,
            "/readyz": self._readiness,
        }
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port that was bound."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(partial(_Connection, self._connections, self._answer), host, port)
        return cast("int", self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
        await self._server.wait_closed()
        self._server = None

    def _answer(self, path: str) -> Response:
        page = self._pages.get(path)
        return page() if page is not None else refusal(404)

    def _metrics(self) -> Response:
        return Response(200, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry))

    def _readiness(self) -> Response:
        ready, facts = self._ready()
        body = json.dumps({"ready": ready, **facts}, default=str).encode() + b"\n"
        return Response(200 if ready else 503, JSON, body)


class _Connection(asyncio.Protocol):
    """One client: bytes in until a header is whole, one response out."""

    def __init__(self, connections: "set[_Connection]", answer: Callable[[str], Response]) -> None:
        self._connections = connections
        self._answer = answer
        self._received = bytearray()
        self._answered = False
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._transport.abort()
            return
        self._connections.add(self)
        self._abort_after(READ_SECONDS_MAX)

    def data_received(self, data: bytes) -> None:
        if self._answered:
            return
        self._received += data
        path = read_path(bytes(self._received))
        if path is not None:
            self._reply(self._answer(path) if isinstance(path, str) else path)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the reason changes nothing
        self._connections.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()

    def abort(self) -> None:
        """Drop the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _reply(self, response: Response) -> None:
        assert self._transport is not None
        self._answered = True
        self._received.clear()
        # A client that does not read its response is dropped too.
        self._abort_after(WRITE_SECONDS_MAX)
        self._transport.write(response.encoded())
        self._transport.close()

    def _abort_after(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.abort)
