"""A line to one peer: puts a step to it and says what came of it. What to think of that is decided elsewhere."""

from asyncio import IncompleteReadError
from types import TracebackType
from typing import Any, Final, Self, cast

from protocol.api import APIS, decode_response, encode_response
from protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.errors import Code
from protocol.join_group import JoinGroupResponse
from tests.conformance.comparison import plain
from tests.conformance.member_ids import MemberIds
from tests.conformance.peers import Peer
from tests.conformance.scenario import Frame, Step, spoken
from tests.fakes.wire import RawClient, connect

_KEY_OF: Final = {api.request: api.key for api in APIS.values()}

#: What came of a step: the reply's fields, and how the connection fared.
Outcome = dict[str, Any]
CLOSED: Final[Outcome] = {"connection": "closed"}
UNANSWERED: Final[Outcome] = {"connection": "open"}
#: The answers that tell a member its id.
_TELLS_ID: Final = (Code.NONE, Code.MEMBER_ID_REQUIRED)


class Line:
    """One connection, made anew when the peer has closed it."""

    def __init__(self, peer: Peer, ids: MemberIds | None = None) -> None:
        self._peer = peer
        self._ids = MemberIds() if ids is None else ids
        self._client: RawClient | None = None
        # The request whose answer comes later: its API, version and correlation id.
        self._held: tuple[int, int, int] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.hang_up()

    async def hang_up(self) -> None:
        """Close the connection, if there is one."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def put(self, step: Step, version: int, run: str) -> Outcome:
        """Send a step's request and return what came of it."""
        client = await self._connected()
        if step.asked is None:
            assert self._held is not None, "no request of this client is held"
            asked, self._held = self._held, None
            return await self._answer(client, step, asked, run)
        used = version if step.at is None else step.at
        request = spoken(step.request(used), run, self._peer.facts.topic_ids, self._ids)
        correlation_id = client.send(request, used, client_id=step.client_id)
        if not step.answered:
            return await self._silence(client, correlation_id)
        asked = (_KEY_OF[type(request)], used, correlation_id)
        if step.held:
            self._held = asked
            return UNANSWERED
        return await self._answer(client, step, asked, run)

    async def _answer(self, client: RawClient, step: Step, asked: tuple[int, int, int], run: str) -> Outcome:
        try:
            frame = await client.receive_frame()
        except (IncompleteReadError, ConnectionError):
            await self.hang_up()
            return CLOSED
        key, version, correlation_id = asked
        return {"connection": "open", **self._read(frame, key, version, step, correlation_id, run)}

    async def put_frame(self, frame: Frame) -> Outcome:
        """Send bytes on a fresh connection, and see whether they are answered and whether it lives on."""
        await self.hang_up()
        client = await self._connected()
        client.send_bytes(frame.data + bytes(frame.zeros))
        try:
            reply = await client.receive_frame()
        except (IncompleteReadError, ConnectionError):
            await self.hang_up()
            return CLOSED
        fields = {} if frame.reads is None else self._read(reply, *frame.reads, None, None)
        return {"connection": "open" if await self._alive(client) else "closed after the reply", **fields}

    async def _connected(self) -> RawClient:
        if self._client is None:
            self._client = await connect(self._peer.port)
        return self._client

    async def _silence(self, client: RawClient, correlation_id: int) -> Outcome:
        """See that a request is not answered: the next reply is that to the request after it."""
        probe = client.send(ApiVersionsRequest(), 0)
        try:
            got, _ = await client.receive(ApiVersionsResponse, 0)
        except (IncompleteReadError, ConnectionError):
            await self.hang_up()
            return CLOSED
        assert got in {probe, correlation_id}
        return UNANSWERED if got == probe else {"connection": "open", "answer": "an answer"}

    @staticmethod
    async def _alive(client: RawClient) -> bool:
        try:
            await client.call(ApiVersionsRequest(), 0)
        except (IncompleteReadError, ConnectionError):
            return False
        return True

    def _read(
        self, frame: bytes, key: int, version: int, step: Step | None, correlation_id: int | None, run: str = ""
    ) -> Outcome:
        got, response = decode_response(key, version, frame)
        assert correlation_id in {None, got}, "the reply belongs to another request"
        # Nothing was skipped in reading it: what came is what our own encoder writes.
        assert encode_response(key, version, got, response)[4:] == frame
        if step is None:
            return cast("Outcome", plain(response, self._peer.facts))
        if isinstance(response, JoinGroupResponse) and response.error_code in _TELLS_ID:
            self._ids.learn(step.by, response.member_id)
        return cast(
            "Outcome",
            plain(
                response,
                self._peer.facts,
                unordered=step.unordered,
                only=step.only,
                own=f"{run}." if step.own else "",
                shown=self._ids.shown,
            ),
        )
