"""DeleteGroups and OffsetDelete from their frames to their replies: tombstones to the log, and then the answer.

What is on its way counts: a group that is being deleted is gone for the next request, one whose first commit is still
on its way is there.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from offsetd.broker.client import Client, Clock
from offsetd.broker.groups import Groups
from offsetd.broker.slots import Slots
from offsetd.broker.turns import Turn, Turns
from offsetd.broker.waiter import Waiter, Waiters
from offsetd.coordinator.membership import Membership
from offsetd.coordinator.removal import Removal, decide_offset_delete, has_offset, refuse_group_removal
from offsetd.coordinator.topics import Topics
from offsetd.group import Group
from offsetd.observed import Observed
from offsetd.record import Reason, Who, decode_entry, encode_group_tombstone, encode_tombstone
from offsetd.table import SlotTable
from protocol.api import Response, decode_request, encode_response
from protocol.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse, DeleteGroupsResponseResult
from protocol.errors import Code
from protocol.header import RequestHeader
from protocol.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

#: A tombstone names at most this many partitions, so that one entry stays small.
_PARTITIONS_MAX: Final = 10_000


class _Gathering(Turn):
    """A request that needs several entries: it is answered when the log has spoken about the last of them."""

    __slots__ = ("_left", "_make_reply", "_turns")

    def __init__(self, turns: Turns, entries: int, make_reply: Callable[[], bytes]) -> None:
        super().__init__()
        self._turns = turns
        self._left = entries
        self._make_reply = make_reply
        turns.wait(self)
        if not entries:
            turns.done(self, make_reply())

    def hear(self) -> None:
        """Count one entry that is settled or refused."""
        self._left -= 1
        if not self._left:
            self._turns.done(self, self._make_reply())


class Removals:
    """What an operator asks to be removed."""

    def __init__(
        self, *, slots: Slots, waiters: Waiters, groups: Groups, topics: Topics, observed: Observed, clock: Clock
    ) -> None:
        self._slots = slots
        self._waiters = waiters
        self._groups = groups
        self._topics = topics
        self._observed = observed
        self._clock = clock

    def receive_groups(self, frame: bytes, client: Client) -> None:
        """Delete whole groups; each is answered for itself, all of them when the last one is settled."""
        header, decoded = decode_request(frame)
        request = cast("DeleteGroupsRequest", decoded)
        codes = {group_id: self._refuse_group(group_id) for group_id in request.groups_names}
        since = client.received_at

        def reply() -> bytes:
            results = [
                DeleteGroupsResponseResult(group_id=group_id, error_code=code) for group_id, code in codes.items()
            ]
            return self._encoded(header, DeleteGroupsResponse(results=tuple(results)), codes.values(), since)

        going = [group_id for group_id, code in codes.items() if code is Code.NONE]
        gathering = _Gathering(client.turns, len(going), reply)
        who = Who(header.client_id or "", client.host, "")
        for group_id in going:
            membership = self._groups.forget(group_id)

            def after(code: Code, group_id: str = group_id, membership: Membership | None = membership) -> None:
                codes[group_id] = code
                if code is not Code.NONE:
                    self._groups.take_back(group_id, membership)
                gathering.hear()

            table = self._slots.table_of(group_id)
            now_ms = self._clock.wall_ms()
            entry = encode_group_tombstone(table.slot, group_id, now_ms, who, Reason.DELETED)
            self._append(entry, table, group_id, now_ms, who, after)

    def receive_offsets(self, frame: bytes, client: Client) -> None:
        """Delete single offsets of a group."""
        header, decoded = decode_request(frame)
        request = cast("OffsetDeleteRequest", decoded)
        decision = self._decide(request)
        pieces = list(_pieces(decision.topics))
        failed: list[Code] = []
        since = client.received_at

        def reply() -> bytes:
            response = OffsetDeleteResponse(error_code=failed[0]) if failed else decision.reply
            codes = [row.error_code for topic in response.topics for row in topic.partitions]
            return self._encoded(header, response, [response.error_code, *codes], since)

        def after(code: Code) -> None:
            if code is not Code.NONE:
                failed.append(code)
            gathering.hear()

        gathering = _Gathering(client.turns, len(pieces), reply)
        who = Who(header.client_id or "", client.host, "")
        for piece in pieces:
            table = self._slots.table_of(request.group_id)
            now_ms = self._clock.wall_ms()
            entry = encode_tombstone(table.slot, request.group_id, now_ms, who, Reason.DELETED, piece)
            self._append(entry, table, request.group_id, now_ms, who, after)

    def _decide(self, request: OffsetDeleteRequest) -> Removal:
        group_id = request.group_id
        code, group = self._slots.lookup(group_id)
        if code is not Code.NONE and group_id:
            return Removal(OffsetDeleteResponse(error_code=code))
        return decide_offset_delete(
            request,
            exists=self._exists(group_id, group),
            membership=self._groups.memberships.get(group_id),
            held=has_offset(group),
            # While something is on its way for the group, an offset may come to be there that nobody sees yet.
            pending=group_id in self._waiters.pending,
            topics=self._topics,
        )

    def _refuse_group(self, group_id: str) -> Code:
        code, group = self._slots.lookup(group_id)
        if code is not Code.NONE:
            return code
        exists = self._exists(group_id, group)
        return refuse_group_removal(exists=exists, membership=self._groups.memberships.get(group_id))

    def _exists(self, group_id: str, group: Group | None) -> bool:
        will_exist = self._waiters.will_exist(group_id, exists=group is not None)
        return group_id in self._groups.memberships or will_exist

    def _append(
        self, entry: bytes, table: SlotTable, group_id: str, now_ms: int, who: Who, after: Callable[[Code], None]
    ) -> None:
        waiter = Waiter(table, group_id, now_ms, who)
        waiter.entry = decode_entry(entry)
        waiter.after = after
        self._waiters.append(entry, waiter, None)

    def _encoded(self, header: RequestHeader, response: Response, codes: Iterable[int], since: float) -> bytes:
        for code in codes:
            if code:
                self._observed.refusals[header.api_key, int(code)] += 1
        self._observed.latency[header.api_key].observe(self._clock.monotonic() - since)
        return encode_response(header.api_key, header.api_version, header.correlation_id, response)


def _pieces(topics: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield what goes into one entry: all of it, unless it is very much, so that all goes or stays together."""
    piece: list[tuple[str, bytes]] = []
    left = _PARTITIONS_MAX
    for name, partitions in topics:
        rest = partitions
        while rest:
            some, rest = rest[: 4 * left], rest[4 * left :]
            piece.append((name, some))
            # A name takes its room, too.
            left -= len(some) // 4 + len(name) // 4
            if left <= 0:
                yield piece
                piece, left = [], _PARTITIONS_MAX
    if piece:
        yield piece
