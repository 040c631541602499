"""OffsetCommit from its frame to its reply. Nothing awaits between deciding and appending."""

from collections.abc import Sequence
from typing import Any, cast

import structlog

from offsetd.broker.client import Client, Clock
from offsetd.broker.groups import Groups
from offsetd.broker.slots import Slots, SlotState
from offsetd.broker.waiter import Waiter, Waiters
from offsetd.coordinator.commit import TOUCH_AFTER_MS, decide_commit, refuse_commit, unchanged_since
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.membership import Membership
from offsetd.coordinator.shape import FRAME_BYTES_MAX, Shape, Shapes, shape_key, variant_key
from offsetd.coordinator.topics import Topics
from offsetd.logs import RateLimited
from offsetd.observed import Observed
from offsetd.record import (
    ENTRY_BYTES_MAX,
    TIME_MS_WIDE,
    Kind,
    Reason,
    TopicOffsets,
    Who,
    decode_entries,
    encode_commit,
    encode_touch,
)
from offsetd.table import SlotTable, apply, apply_commit
from protocol.api import OFFSET_COMMIT, decode_request, encode_response
from protocol.errors import Code
from protocol.header import RequestHeader
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.shape import offset_positions

logger = structlog.get_logger()


class Commits:
    """Decides commits, appends them, and applies and acknowledges what is settled."""

    def __init__(
        self,
        *,
        slots: Slots,
        waiters: Waiters,
        groups: Groups,
        topics: Topics,
        limits: Limits,
        observed: Observed,
        clock: Clock,
        timeout_ms: int,
    ) -> None:
        self.shapes = Shapes()
        self._slots = slots
        self._waiters = waiters
        self._memberships = groups.memberships
        self._topics = topics
        self._limits = limits
        self._observed = observed
        self._latency = observed.latency[OFFSET_COMMIT]
        self._clock = clock
        self._timeout = timeout_ms / 1000
        self._loud = RateLimited(logger)

    def receive(self, frame: bytes, client: Client) -> None:
        """Take a commit: by its shape if that is known and fits to the last byte, else by the ordinary decoder."""
        shapes = client.shapes
        try:
            key = shape_key(frame)
        except IndexError:
            key = b""
        shape = shapes.get(key)
        if shape is not None:
            offsets = shape.offsets(frame)
            if offsets is None:
                shape = shapes.get(variant_key(key, frame, shape.first))
                offsets = None if shape is None else shape.offsets(frame)
            if shape is not None and offsets is not None:
                now_ms = self._clock.wall_ms()
                membership = self._memberships.get(shape.group_id)
                if (
                    membership is shape.membership
                    and (membership is None or membership.version == shape.membership_version)
                    and now_ms >= TIME_MS_WIDE
                    and self._slots.states[shape.slot] is SlotState.READY
                    and (not self._limits.strict or self._knows_topics(shape))
                ):
                    self._commit_shape(shape, offsets, frame[4:8], now_ms, client)
                    return
        self._commit_decoded(frame, client)

    def _knows_topics(self, shape: Shape) -> bool:
        """Tell whether a strict broker would still take the shape: topics may be forgotten again."""
        return all(self._topics.has(name, highest) for name, highest in shape.highest)

    def _commit_shape(self, shape: Shape, offsets: bytes, correlation: bytes, now_ms: int, client: Client) -> None:
        observed = self._observed
        observed.shape_hits += 1
        observed.commit_requests += 1
        observed.commit_partitions += shape.partitions
        if shape.member is not None:
            shape.member.hear(int(self._clock.monotonic() * 1000))
        table = self._slots.tables[shape.slot]
        entry, topics = shape.fill(offsets, now_ms)
        ready = shape.reply_head + correlation + shape.reply_tail
        group = table.groups.get(shape.group_id)
        if group is not None and shape.group_id not in self._waiters.pending:
            oldest_ms = unchanged_since(group, topics)
            if oldest_ms is not None:
                self._repeat(table, shape.group_id, shape.who, topics, oldest_ms, now_ms, ready, client)
                return
        waiter = Waiter(table, shape.group_id, now_ms, shape.who)
        waiter.topics = topics
        waiter.ready = ready
        waiter.refuse = lambda code: _encoded(
            shape.version, int.from_bytes(correlation, "big", signed=True), refuse_commit(shape.request(), code)
        )
        self._waiters.append(entry, waiter, client)

    def _commit_decoded(self, frame: bytes, client: Client) -> None:
        header, decoded = decode_request(frame)
        request = cast("OffsetCommitRequest", decoded)
        version = header.api_version
        slot = self._slots.of(request.group_id)
        self._observed.commit_requests += 1
        whole = self._slots.are_whole() if self._limits.strict else self._slots.states[slot] is SlotState.READY
        if not whole:
            # A strict broker waits for all slots: a topic may be known by a group of any of them.
            self._refuse_now(header, request, Code.COORDINATOR_LOAD_IN_PROGRESS, client)
            return
        table = self._slots.tables[slot]
        group = table.groups.get(request.group_id)
        membership = self._memberships.get(request.group_id)
        now_ms = self._clock.wall_ms()
        decision = decide_commit(
            request,
            version=version,
            group=group,
            membership=membership,
            topics=self._topics,
            limits=self._limits,
            now_ms=now_ms,
        )
        if decision.refused:
            self._count_refusals(decision.reply)
        ready = _encoded(version, header.correlation_id, decision.reply)
        topics = decision.topics
        if not topics:
            client.turns.reply(ready)
            return
        self._observed.commit_partitions += sum(len(topic.partitions) // 4 for topic in topics)
        if membership is not None and request.member_id in membership.roster.members:
            # A member that commits is alive.
            membership.roster.members[request.member_id].hear(int(self._clock.monotonic() * 1000))
        who = Who(header.client_id or "", client.host, request.member_id)
        if group is not None and request.group_id not in self._waiters.pending:
            oldest_ms = unchanged_since(group, topics)
            if oldest_ms is not None:
                self._repeat(table, request.group_id, who, topics, oldest_ms, now_ms, ready, client)
                return
        entry = encode_commit(slot, request.group_id, now_ms, who, topics)
        if len(entry) > ENTRY_BYTES_MAX:
            self._refuse_now(header, request, Code.UNKNOWN_SERVER_ERROR, client)
            return
        waiter = Waiter(table, request.group_id, now_ms, who)
        waiter.topics = topics
        waiter.ready = ready
        waiter.refuse = lambda code: _encoded(version, header.correlation_id, refuse_commit(request, code))
        self._waiters.append(entry, waiter, client)
        if not decision.refused:
            self._learn(frame, client.host, request, slot, who, topics, ready, membership)

    def _learn(
        self,
        frame: bytes,
        host: str,
        request: OffsetCommitRequest,
        slot: int,
        who: Who,
        topics: tuple[TopicOffsets, ...],
        ready: bytes,
        membership: Membership | None,
    ) -> None:
        """Remember a commit that was accepted whole, so that the next one of its shape need not be decoded."""
        plain = all(topic.times is None and topic.expiries is None for topic in topics)
        if not plain or len(frame) > FRAME_BYTES_MAX or not self.shapes.learns():
            return
        shape = Shape(
            frame,
            offset_positions(frame),
            version=frame[3],
            request=request,
            slot=slot,
            who=who,
            topics=topics,
            reply=ready,
            membership=membership,
        )
        self.shapes.remember(host, frame, shape)
        self._observed.shape_learned += 1

    def _repeat(
        self,
        table: SlotTable,
        group_id: str,
        who: Who,
        topics: Sequence[Any],
        oldest_ms: int,
        now_ms: int,
        ready: bytes,
        client: Client,
    ) -> None:
        """Acknowledge a commit that changes nothing; at most once a minute it writes that the group is alive."""
        if now_ms - oldest_ms <= TOUCH_AFTER_MS:
            self._observed.unchanged_commits += 1
            client.turns.reply(ready)
            self._latency.observe(self._clock.monotonic() - client.received_at)
            return
        entry = encode_touch(table.slot, group_id, now_ms, who, [(topic[0], topic[1]) for topic in topics])
        waiter = Waiter(table, group_id, now_ms, who)
        waiter.entry = decode_entries(b"\x91" + entry)[0]
        waiter.ready = ready
        # What the client asked for was stored before the touch, and stays stored without it.
        waiter.refuse = lambda _: ready
        self._waiters.append(entry, waiter, client)

    def held_bytes(self) -> int:
        """Return about how much memory the commits take that are on their way."""
        return self._waiters.held_bytes()

    # --- after the log ----------------------------------------------------------------------------------------------

    def on_settled(self, waiters: Sequence[object]) -> None:
        """Apply a batch that will never be taken back, in its order, and reply."""
        now = self._clock.monotonic()
        latency = self._latency
        for waiter in waiters:
            if not isinstance(waiter, Waiter):
                continue
            if waiter.topics is not None:
                apply_commit(waiter.table, waiter.group_id, waiter.time_ms, waiter.who, waiter.topics)
            else:
                self._apply_entry(waiter)
            self._waiters.remove(waiter)
            if waiter.after is not None:
                waiter.after(Code.NONE)
            if waiter.turns is not None and not waiter.answered:
                waiter.turns.done(waiter, waiter.ready)
                latency.observe(now - waiter.started)

    def _apply_entry(self, waiter: Waiter) -> None:
        table, entry = waiter.table, waiter.entry
        assert entry is not None, "what waits is a commit or an entry"
        live = table.live
        apply(table, entry)
        if entry[0] in (Kind.TOMBSTONE, Kind.GROUP_TOMBSTONE) and entry[6] == Reason.EXPIRED:
            self._observed.expired_offsets += live - table.live
            self._observed.expired_groups += waiter.group_id not in table.groups

    def on_refused(self, waiters: Sequence[object], error: OSError) -> None:
        """Refuse what the log certainly did not keep; clients retry code 15 until there is room again."""
        for waiter in waiters:
            if isinstance(waiter, Waiter):
                self._waiters.remove(waiter)
                self._refuse_waiter(waiter, Code.COORDINATOR_NOT_AVAILABLE)
                if waiter.after is not None:
                    waiter.after(Code.COORDINATOR_NOT_AVAILABLE)
        # Clients try again at once, and the log may well stand on the disk that is full.
        now_ms = int(self._clock.monotonic() * 1000)
        reason = error.strerror or str(error)
        self._loud.warning(now_ms, reason, "entries_refused", entries=len(waiters), reason=reason)

    def time_out(self) -> None:
        """Tell clients whose commit has taken too long that its outcome is unknown; it may yet be settled."""
        for waiter in self._waiters.older_than(self._clock.monotonic() - self._timeout):
            self._refuse_waiter(waiter, Code.REQUEST_TIMED_OUT)

    def _refuse_waiter(self, waiter: Waiter, code: Code) -> None:
        if waiter.turns is not None and waiter.refuse is not None and not waiter.answered:
            waiter.answered = True
            self._observed.refusals[OFFSET_COMMIT, int(code)] += 1
            waiter.turns.done(waiter, waiter.refuse(code))

    def _refuse_now(self, header: RequestHeader, request: OffsetCommitRequest, code: Code, client: Client) -> None:
        self._observed.refusals[OFFSET_COMMIT, int(code)] += 1
        client.turns.reply(_encoded(header.api_version, header.correlation_id, refuse_commit(request, code)))

    def _count_refusals(self, reply: OffsetCommitResponse) -> None:
        for topic in reply.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    self._observed.refusals[OFFSET_COMMIT, int(partition.error_code)] += 1


def _encoded(version: int, correlation_id: int, response: OffsetCommitResponse) -> bytes:
    return encode_response(OFFSET_COMMIT, version, correlation_id, response)
