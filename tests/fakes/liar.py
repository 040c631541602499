"""A server that answers commits and fetches wrongly on purpose, in a thread of its own, to test those who check."""

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Self

from protocol.api import OFFSET_COMMIT, OFFSET_FETCH, decode_request, encode_response
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

_WAIT_SECONDS: Final = 60.0
_REFUSAL: Final = 12


class Liar:
    """Keeps offsets as a broker does, and lies about the APIs that it was told to lie about."""

    def __init__(self, otherwise: Callable[[bytes], bytes], lies: Mapping[int, str]) -> None:
        self._otherwise = otherwise
        self._lies = lies
        self._offsets: dict[tuple[str, str, int], int] = {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A listening socket that is shut down lets its accept return.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(_WAIT_SECONDS)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with connection, suppress(OSError):
                    self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        with stream:
            while size := stream.read(4):
                reply = self._answer(stream.read(int.from_bytes(size, "big")))
                if reply is None:
                    return
                connection.sendall(reply)

    def _answer(self, frame: bytes) -> bytes | None:
        header, request = decode_request(frame)
        lie = self._lies.get(header.api_key, "")
        if lie == "close":
            return None
        if isinstance(request, OffsetCommitRequest):
            reply = self._commit(request, lie)
            return encode_response(OFFSET_COMMIT, header.api_version, header.correlation_id, reply)
        if isinstance(request, OffsetFetchRequest):
            if lie == "garbage":
                return (12).to_bytes(4, "big") + header.correlation_id.to_bytes(4, "big") + b"\xff" * 8
            shown = self._fetch(request, lie)
            return encode_response(OFFSET_FETCH, header.api_version, header.correlation_id, shown)
        return self._otherwise(frame)

    def _commit(self, request: OffsetCommitRequest, lie: str) -> OffsetCommitResponse:
        for topic in request.topics:
            for row in topic.partitions:
                self._offsets[request.group_id, topic.name, row.partition_index] = row.committed_offset
        code = _REFUSAL if lie == "refuse" else 0
        return OffsetCommitResponse(
            topics=tuple(
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        OffsetCommitResponsePartition(partition_index=row.partition_index, error_code=code)
                        for row in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _fetch(self, request: OffsetFetchRequest, lie: str) -> OffsetFetchResponse:
        groups = []
        for asked in request.groups:
            topics = tuple(
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=self._shown(asked.group_id, topic.name, index, lie),
                            metadata="",
                        )
                        for index in topic.partition_indexes
                    ),
                )
                for topic in asked.topics or ()
            )
            groups.append(OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics))
        return OffsetFetchResponse(groups=tuple(groups))

    def _shown(self, group: str, topic: str, partition: int, lie: str) -> int:
        if lie == "missing":
            return -1
        return self._offsets[group, topic, partition] - (lie == "stale")
