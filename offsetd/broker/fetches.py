"""OffsetFetch from its frame to its reply: from memory, and from a kept reply while the group has not changed."""

from typing import cast

import structlog

from offsetd.broker.client import Client, Clock
from offsetd.broker.slots import Slots
from offsetd.coordinator.fetch import answer_fetch
from offsetd.observed import Observed
from offsetd.table import Group
from protocol.api import OFFSET_FETCH, decode_request, encode_response
from protocol.errors import Code
from protocol.offset_fetch import OffsetFetchRequest

logger = structlog.get_logger()

#: Replies are kept up to about this many bytes in all, then forgotten together.
_KEPT_BYTES_MAX = 64 * 1024 * 1024
#: One reply may take this share of it.
_KEPT_REPLY_BYTES_MAX = 1024 * 1024


class Fetches:
    """Answers fetches over the applied state only, so that none shows what could still be taken back."""

    def __init__(self, *, slots: Slots, observed: Observed, clock: Clock, reply_bytes_max: int) -> None:
        self._slots = slots
        self._observed = observed
        self._latency = observed.latency[OFFSET_FETCH]
        self._clock = clock
        self._reply_bytes_max = reply_bytes_max
        # By the request's bytes: the group shown, its version then, and the reply around the correlation id.
        self._kept: dict[bytes, tuple[Group, int, bytes, bytes]] = {}
        self.kept_bytes = 0

    def receive(self, frame: bytes, client: Client) -> None:
        """Answer now, or when the requests before this one have been answered."""
        self._observed.fetch_requests += 1
        turns = client.turns
        if turns.queue:
            turns.read(lambda _: self._reply(frame))
        else:
            turns.reply(self._reply(frame))
        self._latency.observe(self._clock.monotonic() - client.received_at)

    def _reply(self, frame: bytes) -> bytes:
        key = frame[:4] + frame[8:]
        kept = self._kept.get(key)
        if kept is not None and kept[0].version == kept[1]:
            self._observed.fetch_cache_hits += 1
            return kept[2] + frame[4:8] + kept[3]
        return self._make_reply(frame, key)

    def _make_reply(self, frame: bytes, key: bytes) -> bytes:
        header, decoded = decode_request(frame)
        request = cast("OffsetFetchRequest", decoded)
        version = header.api_version
        response = answer_fetch(request, version=version, lookup=self._slots.lookup)
        reply = encode_response(OFFSET_FETCH, version, header.correlation_id, response)
        if len(reply) > self._reply_bytes_max:
            logger.warning("reply_too_large", api="OffsetFetch", bytes=len(reply), limit_bytes=self._reply_bytes_max)
            response = answer_fetch(request, version=version, lookup=lambda _: (Code.UNKNOWN_SERVER_ERROR, None))
            return encode_response(OFFSET_FETCH, version, header.correlation_id, response)
        names = [asked.group_id for asked in request.groups] if version >= 8 else [request.group_id]
        for name in names:
            code, group = self._slots.lookup(name)
            if code is not Code.NONE:
                self._observed.refusals[OFFSET_FETCH, int(code)] += 1
            elif group is not None and len(names) == 1:
                self._keep(key, group, reply)
        return reply

    def _keep(self, key: bytes, group: Group, reply: bytes) -> None:
        before = self._kept.pop(key, None)
        if before is not None:
            self.kept_bytes -= _cost(key, len(before[3]))
        cost = _cost(key, len(reply) - 8)
        if cost > _KEPT_REPLY_BYTES_MAX:
            return
        if self.kept_bytes + cost > _KEPT_BYTES_MAX:
            self._kept.clear()
            self.kept_bytes = 0
        self.kept_bytes += cost
        self._kept[key] = (group, group.version, reply[:4], reply[8:])


def _cost(key: bytes, reply_bytes: int) -> int:
    return 300 + len(key) + reply_bytes
