"""Metadata from its frame to its reply: the reply is kept while no topic comes or goes.

Clients ask again every few minutes, many of them for every topic there is, and the answer is nearly always the same.
"""

from collections.abc import Callable, Generator
from typing import cast

import structlog

from offsetd.broker.client import Client, Clock
from offsetd.broker.kept import Kept
from offsetd.broker.longreads import LongReads, ReplyTooLarge
from offsetd.broker.turns import Turn
from offsetd.coordinator.catalog import Identity, answer_metadata
from offsetd.coordinator.slices import metadata_in_slices
from offsetd.coordinator.topics import Topics
from offsetd.observed import Observed
from protocol.api import METADATA, decode_body, decode_header
from protocol.errors import Code
from protocol.header import RequestHeader
from protocol.metadata import MetadataRequest

logger = structlog.get_logger()

#: Replies are kept up to about this many bytes in all, then forgotten together.
_KEPT_BYTES_MAX = 16 * 1024 * 1024


class Metadata:
    """Describes this broker and the topics."""

    def __init__(
        self,
        *,
        identity: Callable[[], Identity],
        topics: Topics,
        observed: Observed,
        clock: Clock,
        reply_bytes_max: int,
        long: LongReads,
    ) -> None:
        self._identity = identity
        self._topics = topics
        self._latency = observed.latency[METADATA]
        self._clock = clock
        self._reply_bytes_max = reply_bytes_max
        self._long = long
        # By version and body, for a state of the topics.
        self.kept: Kept[tuple[int, bool, Identity]] = Kept(bytes_max=_KEPT_BYTES_MAX, reply_bytes_max=_KEPT_BYTES_MAX)

    def receive(self, frame: bytes, client: Client) -> None:
        """Answer now, or when the requests before this one have been answered."""
        header, position = decode_header(frame)
        request = cast("MetadataRequest", decode_body(header, frame, position))
        turns, since = client.turns, client.received_at
        # Of the header only the version says anything about the answer.
        key = frame[2:4] + frame[position:]

        def read(turn: Turn) -> bytes | None:
            return self._long.read(turns, turn, self._answer(header, request, key, since))

        turns.read(read)

    def _answer(
        self, header: RequestHeader, request: MetadataRequest, key: bytes, since: float
    ) -> Generator[None, None, bytes]:
        correlation = header.correlation_id.to_bytes(4, "big", signed=True)
        kept = self.kept.replies.get(key)
        if kept is not None and kept[0] == self._state():
            self._latency.observe(self._clock.monotonic() - since)
            return kept[1] + correlation + kept[2]
        reply = yield from self._described(header, request, key, Code.NONE)
        if reply is None:
            logger.warning("reply_too_large", api="Metadata", limit_bytes=self._reply_bytes_max)
            reply = yield from self._described(header, request, key, Code.UNKNOWN_SERVER_ERROR)
            if reply is None:
                raise ReplyTooLarge(limit_bytes=self._reply_bytes_max)
        self._latency.observe(self._clock.monotonic() - since)
        return reply

    def _described(
        self, header: RequestHeader, request: MetadataRequest, key: bytes, refusal: Code
    ) -> Generator[None, None, bytes | None]:
        version = header.api_version
        response, topics = answer_metadata(
            request, version=version, identity=self._identity(), topics=self._topics, refusal=refusal
        )
        # Topics that this request makes known are known by now.
        state = self._state()
        reply = yield from metadata_in_slices(
            response,
            topics,
            version=version,
            correlation_id=header.correlation_id,
            bytes_max=self._reply_bytes_max,
        )
        if reply is not None:
            self.kept.keep(key, state, reply)
        return reply

    def _state(self) -> tuple[int, bool, Identity]:
        return self._topics.changes, self._topics.are_whole(), self._identity()
