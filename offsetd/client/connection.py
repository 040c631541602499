"""One connection to a broker: requests go out as they come, replies come back in the same order.

Whom to connect to, and what to do when it fails, is decided elsewhere.
"""

import asyncio
import itertools
from collections import deque
from ssl import SSLCertVerificationError, SSLContext
from typing import Final, NamedTuple, TypeVar, cast

from offsetd.client.address import Address
from offsetd.client.errors import Unsupported, Untrusted
from offsetd.client.limits import Limits
from offsetd.client.transient import ConnectionFailed
from protocol.api import APIS, Request, Response, decode_response, encode_request
from protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.errors import Code
from protocol.frame import FrameBuffer
from protocol.schema import message_info
from protocol.wire import ProtocolError

R = TypeVar("R", bound=Response)

SOFTWARE_NAME: Final = "offsetd-client"
_CORRELATION_ID_MASK: Final = 0x7FFFFFFF
_REPLY_BYTES_MIN: Final = 4
#: Served by every broker since Kafka 2.4. Asked before the broker has said what it serves.
_API_VERSIONS_VERSION: Final = 3
#: Where an older version could not say what the client says, the least version that can: topics that may be made (3),
#: instance ids (8, 11, 12, 14), several groups (9, 10), members by name (13).
_VERSION_LEAST: Final = {3: 4, 8: 7, 9: 8, 10: 4, 11: 5, 12: 3, 13: 3, 14: 3}


class _Asked(NamedTuple):
    """A request whose reply has not come."""

    correlation_id: int
    api_key: int
    version: int
    answer: "asyncio.Future[Response]"
    timer: asyncio.TimerHandle


class Connection(asyncio.Protocol):
    """A connection that is open until `closed`; nothing opens it again."""

    def __init__(self, address: Address, *, client_id: str, limits: Limits) -> None:
        self.address = address
        self._client_id = client_id
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._frames = FrameBuffer(limit_bytes=limits.reply_bytes_max, least_bytes=_REPLY_BYTES_MIN)
        self._waiting: deque[_Asked] = deque()
        self._ids = itertools.count()
        self._versions = {message_info(ApiVersionsRequest).api_key: (_API_VERSIONS_VERSION, _API_VERSIONS_VERSION)}
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._ended = asyncio.Event()
        self._reason = "the broker closed the connection"

    # --- for callers ------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a request could be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def negotiate(self, software_version: str) -> None:
        """Ask what the broker serves."""
        asked = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=software_version)
        reply = await self.call(asked, ApiVersionsResponse, timeout_s=self._limits.connect_timeout_s)
        if reply.error_code != Code.NONE:
            raise Unsupported(address=self.address, api_key=18, version=_API_VERSIONS_VERSION)
        self._versions = {row.api_key: (row.min_version, row.max_version) for row in reply.api_keys}

    async def call(self, request: Request, kind: type[R], *, timeout_s: float | None = None) -> R:
        """Send a request and return its reply. Cancelled callers lose their reply, and nobody else's.

        Raises:
            ConnectionFailed: it was lost, or no reply came in time.
            Unsupported: the broker does not serve it.
        """
        api_key = message_info(type(request)).api_key
        version = self._version(api_key)
        await self._writable.wait()
        if self._transport is None or self._transport.is_closing():
            raise ConnectionFailed(address=self.address, reason=self._reason, sent=False)
        correlation_id = next(self._ids) & _CORRELATION_ID_MASK
        frame = encode_request(api_key, version, correlation_id, self._client_id, request)
        answer: asyncio.Future[Response] = self._loop.create_future()
        patience_s = self._limits.request_timeout_s if timeout_s is None else timeout_s
        # Replies come in order, so behind one that does not come nothing comes either: the connection is of no more
        # use, whether its caller still waits or not.
        timer = self._loop.call_later(patience_s, self._end, f"no reply within {patience_s:g} s")
        self._waiting.append(_Asked(correlation_id, api_key, version, answer, timer))
        self._transport.write(frame)
        reply = await answer
        assert isinstance(reply, kind)
        return reply

    async def close(self) -> None:
        """Close it and wait until it is. Whoever waits for a reply is told that there will be none."""
        self._end("this client closed the connection")
        await self._ended.wait()

    # --- for the loop -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hear that it is open."""
        self._transport = cast("asyncio.Transport", transport)
        self._writable.set()

    def pause_writing(self) -> None:
        """Hear that the broker does not read as fast as we write."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Hear that it does again."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Take bytes of replies."""
        self._frames.feed(data)
        try:
            while (frame := self._frames.next_frame()) is not None:
                self._take(frame)
        except ProtocolError as error:
            self._end(f"the broker sent what cannot be read: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Hear that it is closed, by whomever."""
        if exc is not None:
            self._reason = f"the connection was lost: {exc}"
        self._transport = None
        self._ended.set()
        self._writable.set()
        while self._waiting:
            asked = self._waiting.popleft()
            asked.timer.cancel()
            if not asked.answer.done():
                asked.answer.set_exception(ConnectionFailed(address=self.address, reason=self._reason, sent=True))

    # --- inside -----------------------------------------------------------------------------------------------------

    def _take(self, frame: bytes) -> None:
        if not self._waiting:
            raise ProtocolError("a reply to no request")
        asked = self._waiting[0]
        correlation_id, reply = decode_response(asked.api_key, asked.version, frame)
        if correlation_id != asked.correlation_id:
            raise ProtocolError(f"a reply to {correlation_id}, where {asked.correlation_id} was next")
        self._waiting.popleft()
        asked.timer.cancel()
        if not asked.answer.done():
            asked.answer.set_result(reply)

    def _version(self, api_key: int) -> int:
        api = APIS[api_key]
        least = max(api.min_version, _VERSION_LEAST.get(api_key, 0))
        first, last = self._versions.get(api_key, (0, -1))
        version = min(api.max_version, last)
        if version < max(least, first):
            raise Unsupported(address=self.address, api_key=api_key, version=least)
        return version

    def _end(self, reason: str) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._reason = reason
        if self._transport.get_write_buffer_size():
            # A broker that does not read would never let it close.
            self._transport.abort()
        else:
            self._transport.close()


async def open_connection(
    address: Address, *, client_id: str, software_version: str, limits: Limits, ssl: SSLContext | None
) -> Connection:
    """Open a connection and learn what the broker serves.

    This is the one place where a connection is made. TLS is its ``ssl`` argument; SASL's handshake will stand between
    the versions and the return, because brokers answer ApiVersions before a user has said who it is.

    Raises:
        ConnectionFailed: nobody listens there, or nobody that speaks this protocol in time.
        Untrusted: somebody does, and is not whom the ``ssl`` context trusts.
    """
    connection: Connection | None = None
    try:
        async with asyncio.timeout(limits.connect_timeout_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(address, client_id=client_id, limits=limits), address.host, address.port, ssl=ssl
            )
            await connection.negotiate(software_version)
    except BaseException as error:
        if connection is not None:
            await connection.close()
        if isinstance(error, SSLCertVerificationError):
            # An OSError like the others, but one that the next attempt meets again.
            raise Untrusted(address=address, reason=error.verify_message) from error
        if isinstance(error, OSError | TimeoutError):
            reason = f"no connection: {str(error) or f'nothing within {limits.connect_timeout_s:g} s'}"
            raise ConnectionFailed(address=address, reason=reason, sent=False) from error
        raise
    return connection
