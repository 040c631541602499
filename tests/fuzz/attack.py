"""What a hostile or broken client does to a port. Where a reply is due, the attack waits for it and reads it."""

import asyncio
import struct
from random import Random
from typing import Any, Literal

from protocol.api import API_VERSIONS, APIS, decode_header, decode_request, decode_response
from protocol.fetch import FetchRequest
from protocol.join_group import JoinGroupRequest
from protocol.produce import ProduceRequest
from protocol.sync_group import SyncGroupRequest
from protocol.wire import STRING_BYTES_MAX, ProtocolError
from tests.fakes.daemon import Daemon
from tests.fakes.wire import RawClient, connect
from tests.fuzz.campaign import Campaign
from tests.fuzz.mutation import Mutator
from tests.protocol.layout import varint

Due = Literal["a reply", "silence", "the end", "a reply or the end", "a wait"]

_STRANGERS = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    b"SSH-2.0-client\r\n",
    bytes(64),
    b"\xff" * 64,
)


def due(frame: bytes) -> Due:
    """Tell what a daemon owes a client for a frame."""
    try:
        _, request = decode_request(frame)
    except ProtocolError:
        return "a reply" if _is_newer_api_versions(frame) else "the end"
    if isinstance(request, ProduceRequest) and request.acks == 0:
        return "silence"
    if isinstance(request, FetchRequest) and request.max_wait_ms > 0 and request.min_bytes > 0:
        return "a wait"
    if isinstance(request, JoinGroupRequest | SyncGroupRequest):
        # Held until the group is complete.
        return "a wait"
    may_grow = 3 * len(frame) > STRING_BYTES_MAX and "\ufffd" in frame.decode("utf-8", "replace")
    return "a reply or the end" if may_grow and _grew_too_long(request) else "a reply"


def _is_newer_api_versions(frame: bytes) -> bool:
    try:
        header, _ = decode_header(frame)
    except ProtocolError:
        return False
    api = APIS[API_VERSIONS]
    return header.api_key == API_VERSIONS and not api.min_version <= header.api_version <= api.max_version


def _grew_too_long(said: object) -> bool:
    """Tell whether a name has grown, from a byte to three wherever it was bad, so that no reply can repeat it."""
    if isinstance(said, str):
        return len(said.encode()) > STRING_BYTES_MAX
    return isinstance(said, tuple) and any(map(_grew_too_long, said))


class Attacker:
    """One client after another, each with its own manners."""

    def __init__(self, run: Campaign, port: int, http_port: int) -> None:
        self._run = run
        self._random = Random(run.random.getrandbits(64))
        self._mutator = Mutator(self._random)
        self._port = port
        self._http_port = http_port

    async def attack(self) -> None:
        """Be one client."""
        manners = (
            (600, self._converse),
            (150, self._leave_early),
            (100, self._lie_about_sizes),
            (50, self._be_a_stranger),
            (50, self._dribble),
            (30, self._flood),
            (19, self._ask_for_pages),
            (1, self._fill_with_nothing),
        )
        chosen = self._random.choices([each for _, each in manners], [weight for weight, _ in manners])[0]
        port = self._http_port if chosen == self._ask_for_pages else self._port
        client = await connect(port)
        try:
            await chosen(client)
        except ConnectionError:
            # The daemon has closed while the client still wrote.
            pass
        finally:
            if self._random.random() < 0.3 and not client.writer.is_closing():
                client.reset()
            await client.close()

    def _frames(self, count: int) -> list[bytes]:
        self._run.frames += count
        return [self._mutator.frame() for _ in range(count)]

    # --- manners ----------------------------------------------------------------------------------------------------

    async def _converse(self, client: RawClient) -> None:
        """Send some frames at once, and read what is due for each."""
        frames = self._frames(self._random.randrange(1, 20))
        for frame in frames:
            _send(client, frame)
        await check_replies(client, frames)

    async def _dribble(self, client: RawClient) -> None:
        """Send frames in small pieces."""
        frames = self._frames(3)
        data = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)[:2000]
        size = self._random.choice((1, 2, 3, 5, 50))
        for at in range(0, len(data), size):
            client.send_bytes(data[at : at + size])
            await client.writer.drain()

    async def _leave_early(self, client: RawClient) -> None:
        """Send frames and the beginning of another, and wait for nothing."""
        for frame in self._frames(self._random.randrange(10)):
            _send(client, frame)
        (frame,) = self._frames(1)
        data = struct.pack(">i", len(frame)) + frame
        client.send_bytes(data[: self._random.randrange(len(data))])
        if self._random.random() < 0.5:
            await client.writer.drain()

    async def _lie_about_sizes(self, client: RawClient) -> None:
        """Send frames whose sizes are not theirs."""
        for frame in self._frames(3):
            near = len(frame) + self._random.choice((-1, 1, 100))
            size = self._random.choice((near, -1, -(2**31), 0, 7, 8, 2**31 - 1, 2**20, 2**20 + 1, 369_295_617))
            client.send_bytes(struct.pack(">i", size) + frame)
        await client.writer.drain()

    async def _be_a_stranger(self, client: RawClient) -> None:
        """Speak another protocol, or none."""
        noise = self._random.randbytes(self._random.choice((1, 3, 4, 100, 70_000)))
        client.send_bytes(self._random.choice((*_STRANGERS, noise)))
        self._run.frames += 1
        await client.writer.drain()

    async def _flood(self, client: RawClient) -> None:
        """Send many good requests and read no reply."""
        for _ in range(300):
            _send(client, self._mutator.valid())
        self._run.frames += 300
        # What the daemon does not read, it leaves to the kernel, and then to the writer.
        await asyncio.sleep(0)

    async def _fill_with_nothing(self, client: RawClient) -> None:
        """Send as many empty elements as a frame can hold, and read what comes of them."""
        count = self._random.choice((10_000, 249_999, 250_000, 250_001, 1_000_000))
        frame = struct.pack(">hhih", 10, 4, 7, -1) + b"\0\0" + varint(count + 1) + b"\1" * count + b"\0"
        client.send_frame(frame)
        self._run.frames += 1
        if self._random.random() < 0.5:
            await check_replies(client, [frame])

    async def _ask_for_pages(self, client: RawClient) -> None:
        """Ask the HTTP port for this and that."""
        path = self._random.choice((b"/metrics", b"/readyz", b"/" + self._random.randbytes(20), b"/" * 9000))
        client.send_bytes(self._random.choice((b"GET ", b"POST ", b"", b"\0")) + path + b" HTTP/1.1\r\n\r\n")
        self._run.frames += 1
        if self._random.random() < 0.5:
            await client.is_closed()


def _send(client: RawClient, frame: bytes) -> None:
    # The daemon may have closed already, and asyncio complains about each further write.
    if not client.writer.is_closing():
        client.send_frame(frame)


async def check_replies(client: RawClient, frames: list[bytes]) -> None:
    """Read what is due for each frame, in their order, and the end behind the first that cannot be read."""
    for frame in frames:
        owed = due(frame)
        if owed == "a wait":
            return
        if owed == "silence":
            continue
        try:
            reply = await client.receive_frame()
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            # Bytes still unread when the daemon closes make the kernel reset the connection, and replies are lost.
            was_reset = isinstance(error, ConnectionError) or any(due(each) == "the end" for each in frames)
            assert owed != "a reply" or was_reset, f"closed in place of a reply to {frame.hex()}"
            return
        assert owed != "the end", f"{reply.hex()} in reply to {frame.hex()}"
        check_reply(frame, reply)


def check_reply(frame: bytes, reply: bytes) -> None:
    """A reply repeats the correlation id, and can be read to its end."""
    key, version = struct.unpack_from(">hh", frame)
    chosen = 0 if _is_newer_api_versions(frame) else version
    correlation_id, _ = decode_response(key, chosen, reply)
    assert struct.pack(">i", correlation_id) == frame[4:8], f"{reply.hex()} in reply to {frame.hex()}"


def faults(daemon: Daemon) -> list[dict[str, Any]]:
    """Return what the daemon has said that it should never have to say, whatever its clients do."""
    return [event for event in daemon.events() if event.get("level") in {"error", "critical"}]
