"""OffsetFetch from its frame to its reply: from memory, and from a kept reply while the group has not changed."""

from collections.abc import Generator
from typing import cast

import structlog

from offsetd.broker.client import Client, Clock
from offsetd.broker.kept import Kept
from offsetd.broker.longreads import LongReads, ReplyTooLarge
from offsetd.broker.slots import Slots
from offsetd.broker.turns import Turn, Turns
from offsetd.coordinator.fetch import Lookup, answer_fetch, groups_asked, is_longer
from offsetd.coordinator.slices import SLICE_ROWS, Slices, fetch_in_slices
from offsetd.group import Group
from offsetd.observed import Observed
from protocol.api import OFFSET_FETCH, decode_request, encode_response
from protocol.errors import Code
from protocol.header import RequestHeader
from protocol.offset_fetch import OffsetFetchRequest

logger = structlog.get_logger()

#: Replies are kept up to about this many bytes in all, then forgotten together.
_KEPT_BYTES_MAX = 64 * 1024 * 1024
#: One reply may take this share of it.
_KEPT_REPLY_BYTES_MAX = 1024 * 1024


class Fetches:
    """Answers fetches over the applied state only, so that none shows what could still be taken back."""

    def __init__(
        self, *, slots: Slots, observed: Observed, clock: Clock, reply_bytes_max: int, long: LongReads
    ) -> None:
        self._slots = slots
        self._observed = observed
        self._latency = observed.latency[OFFSET_FETCH]
        self._clock = clock
        self._reply_bytes_max = reply_bytes_max
        self._long = long
        # By the request's bytes, for a version of the group that is shown.
        self.kept: Kept[tuple[Group, int]] = Kept(bytes_max=_KEPT_BYTES_MAX, reply_bytes_max=_KEPT_REPLY_BYTES_MAX)

    def receive(self, frame: bytes, client: Client) -> None:
        """Answer now, or when the requests before this one have been answered."""
        self._observed.fetch_requests += 1
        turns, since = client.turns, client.received_at
        kept = None if turns.queue else self._kept_reply(frame)
        if kept is None:
            turns.read(lambda turn: self._reply(frame, since, turns, turn))
        else:
            turns.reply(kept)
            self._latency.observe(self._clock.monotonic() - since)

    def _kept_reply(self, frame: bytes) -> bytes | None:
        kept = self.kept.replies.get(frame[:4] + frame[8:])
        if kept is None or kept[0][0].version != kept[0][1]:
            return None
        self._observed.fetch_cache_hits += 1
        return kept[1] + frame[4:8] + kept[2]

    def _reply(self, frame: bytes, since: float, turns: Turns, turn: Turn) -> bytes | None:
        reply = self._kept_reply(frame)
        if reply is None:
            header, decoded = decode_request(frame)
            request = cast("OffsetFetchRequest", decoded)
            version = header.api_version
            key = frame[:4] + frame[8:]
            if not is_longer(request, SLICE_ROWS, version=version, lookup=self._slots.lookup):
                shown = self._only_group(request, version)
                response = answer_fetch(request, version=version, lookup=self._lookup)
                reply = encode_response(OFFSET_FETCH, version, header.correlation_id, response)
            if reply is None or len(reply) > self._reply_bytes_max:
                return self._long.read(turns, turn, self._make_slowly(header, request, key, since))
            if shown is not None:
                self.kept.keep(key, shown, reply)
        self._latency.observe(self._clock.monotonic() - since)
        return reply

    def _make_slowly(self, header: RequestHeader, request: OffsetFetchRequest, key: bytes, since: float) -> Slices:
        # The long reads before this one are done, and have let go of their copies, when it goes on from here.
        yield
        version = header.api_version

        def answer(lookup: Lookup) -> Generator[None, None, bytes | None]:
            return fetch_in_slices(
                request,
                version=version,
                correlation_id=header.correlation_id,
                lookup=lookup,
                bytes_max=self._reply_bytes_max,
            )

        shown = self._only_group(request, version)
        reply = yield from answer(self._lookup)
        if reply is None:
            logger.warning("reply_too_large", api="OffsetFetch", limit_bytes=self._reply_bytes_max)
            reply = yield from answer(lambda _: (Code.UNKNOWN_SERVER_ERROR, None))
            if reply is None:
                raise ReplyTooLarge(limit_bytes=self._reply_bytes_max)
        elif shown is not None:
            self.kept.keep(key, shown, reply)
        self._latency.observe(self._clock.monotonic() - since)
        return reply

    def _lookup(self, group_id: str) -> tuple[Code, Group | None]:
        found = self._slots.lookup(group_id)
        if found[0] is not Code.NONE:
            self._observed.refusals[OFFSET_FETCH, int(found[0])] += 1
        return found

    def _only_group(self, request: OffsetFetchRequest, version: int) -> tuple[Group, int] | None:
        """Return the group asked for and its version, if there is but one, so that the reply can be held against it."""
        groups = groups_asked(request, version=version)
        group = self._slots.lookup(groups[0][0])[1] if len(groups) == 1 else None
        return None if group is None else (group, group.version)
