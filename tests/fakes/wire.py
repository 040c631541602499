"""A client of nothing but frames: sends request objects and bytes, and returns response objects, in order."""

import asyncio
import itertools
import socket
import struct
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TypeVar, cast

from protocol.api import APIS, OFFSET_COMMIT, OFFSET_FETCH, Request, Response, decode_response, encode_request
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

WAIT_SECONDS = 60.0
_KEY_OF = {api.request: api.key for api in APIS.values()}
T = TypeVar("T")


class RawClient:
    """One connection. Requests may be pipelined: `send` and `receive` are separate, `call` is both."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._ids = itertools.count(1)

    def send(self, request: Request, version: int | None = None, *, client_id: str | None = "raw") -> int:
        """Write a request and return its correlation id."""
        key = _KEY_OF[type(request)]
        correlation_id = next(self._ids)
        chosen = APIS[key].max_version if version is None else version
        self.writer.write(encode_request(key, chosen, correlation_id, client_id, request))
        return correlation_id

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.writer.write(data)

    def send_frame(self, body: bytes) -> None:
        """Write bytes with their size before them."""
        self.writer.write(struct.pack(">i", len(body)) + body)

    async def receive_frame(self) -> bytes:
        """Return the next frame without its size; raises IncompleteReadError when the connection ends first."""
        async with asyncio.timeout(WAIT_SECONDS):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def receive(self, kind: type[T], version: int | None = None) -> tuple[int, T]:
        """Return the correlation id and the response object of the next frame."""
        key = next(api.key for api in APIS.values() if api.response is kind)
        chosen = APIS[key].max_version if version is None else version
        correlation_id, response = decode_response(key, chosen, await self.receive_frame())
        assert isinstance(response, kind)
        return correlation_id, response

    async def call(self, request: Request, version: int | None = None, *, client_id: str | None = "raw") -> Response:
        """Send a request and return its response."""
        correlation_id = self.send(request, version, client_id=client_id)
        api = APIS[_KEY_OF[type(request)]]
        got, response = await self.receive(api.response, version)
        assert got == correlation_id
        return response

    async def commit(
        self,
        group: str,
        offsets: "Offsets",
        version: int | None = None,
        *,
        metadata: str | None = "",
        retention_ms: int = -1,
    ) -> dict[tuple[str, int], int]:
        """Commit offsets; return the code of each partition."""
        request = commit_request(group, offsets, metadata=metadata, retention_ms=retention_ms)
        return commit_codes(cast("OffsetCommitResponse", await self.call(request, version)))

    async def committed(
        self, group: str, partitions: Iterable[tuple[str, int]] | None = None, version: int | None = None
    ) -> dict[tuple[str, int], int]:
        """Return the offsets of a group, of all its topics if none are named; every code must be 0."""
        response = cast("OffsetFetchResponse", await self.call(fetch_request(group, partitions, version), version))
        return fetched_offsets(response)

    async def is_closed(self) -> bool:
        """Wait for the peer to close; tell whether it did so without a reply."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        """Close the connection, in whatever state it is."""
        self.writer.close()
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await self.writer.wait_closed()

    def reset(self) -> None:
        """Drop the connection with RST, as a machine that lost its state does; nothing if the peer was quicker."""
        sock = cast("socket.socket | None", self.writer.get_extra_info("socket"))
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()


Offsets = Mapping[tuple[str, int], int]


async def connect(port: int, *, receive_bytes: int | None = None) -> RawClient:
    """Open a connection to a port of this machine; `receive_bytes` makes its receive buffer small."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if receive_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        # The limit is what is read ahead: small, so that a client that does not read really does not.
        reader, writer = await asyncio.open_connection(sock=sock, limit=2048 if receive_bytes else 2**16)
    except BaseException:
        sock.close()
        raise
    return RawClient(reader, writer)


@asynccontextmanager
async def connected(port: int, *, receive_bytes: int | None = None) -> AsyncIterator[RawClient]:
    """Open a connection for the length of a block."""
    client = await connect(port, receive_bytes=receive_bytes)
    try:
        yield client
    finally:
        await client.close()


def commit_request(
    group: str, offsets: Offsets, *, metadata: str | None = "", retention_ms: int = -1
) -> OffsetCommitRequest:
    """Return a commit of a simple consumer."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(
        group_id=group,
        retention_time_ms=retention_ms,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()),
    )


def fetch_request(
    group: str, partitions: Iterable[tuple[str, int]] | None, version: int | None = None
) -> OffsetFetchRequest:
    """Return a fetch of one group, in the layout of its version."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions or ():
        topics.setdefault(topic, []).append(partition)
    asked = tuple(OffsetFetchRequestTopic(name=name, partition_indexes=tuple(rows)) for name, rows in topics.items())
    wanted = None if partitions is None else asked
    if version is not None and version < 8:
        return OffsetFetchRequest(group_id=group, topics=wanted)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=wanted),))


def commit_codes(response: OffsetCommitResponse) -> dict[tuple[str, int], int]:
    """Return the code of each partition."""
    return {(topic.name, row.partition_index): row.error_code for topic in response.topics for row in topic.partitions}


def fetched_offsets(response: OffsetFetchResponse) -> dict[tuple[str, int], int]:
    """Return the offset of each partition; every code must be 0."""
    assert response.error_code == 0, response
    assert all(group.error_code == 0 for group in response.groups), response
    topics = response.topics or tuple(topic for group in response.groups for topic in group.topics)
    assert all(row.error_code == 0 for topic in topics for row in topic.partitions), response
    return {(topic.name, row.partition_index): row.committed_offset for topic in topics for row in topic.partitions}


def commit_frame(correlation_id: int, request: OffsetCommitRequest, version: int) -> bytes:
    """Return a commit's whole frame."""
    return encode_request(OFFSET_COMMIT, version, correlation_id, "raw", request)


def fetch_frame(correlation_id: int, request: OffsetFetchRequest, version: int) -> bytes:
    """Return a fetch's whole frame."""
    return encode_request(OFFSET_FETCH, version, correlation_id, "raw", request)
