"""Every group's membership: requests in, replies out when they are decided, generations to the log, deadlines kept.

What a request means is decided in `coordinator.membership`; here is only who waits, for what, and until when.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import Final, Protocol, cast

import structlog

from offsetd.broker.client import Client, Clock
from offsetd.broker.excess import Excess
from offsetd.broker.held import HeldJoin, HeldSync
from offsetd.broker.slots import Slots, SlotState
from offsetd.broker.waiter import Waiter, Waiters
from offsetd.coordinator.effects import Effects, JoinReply, SyncReply
from offsetd.coordinator.limits import GROUP_ID_BYTES_MAX, Limits
from offsetd.coordinator.member import Joining
from offsetd.coordinator.membership import Membership, State
from offsetd.coordinator.overview import GroupView, view_of
from offsetd.observed import Observed
from offsetd.record import ENTRY_BYTES_MAX, Generation, Who, encode_generation, generation_entry
from protocol.api import HEARTBEAT, LEAVE_GROUP, decode_request, encode_response
from protocol.errors import Code
from protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.join_group import JoinGroupRequest
from protocol.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeaveGroupResponseMember
from protocol.sync_group import SyncGroupRequest

logger = structlog.get_logger()

_OURSELVES: Final = Who("offsetd", "", "")
#: The first version of SyncGroup that has to name the protocol; before that there is nothing to compare.
_NAMED_SINCE: Final = 5


class Timer(Protocol):
    """What a loop gives for a call that it will make later."""

    def cancel(self) -> None:
        """Do not make it."""


class Groups:
    """The memberships of all groups that have, or are about to have, members."""

    def __init__(
        self,
        *,
        slots: Slots,
        waiters: Waiters,
        limits: Limits,
        observed: Observed,
        clock: Clock,
        later: Callable[[float, Callable[[], None]], Timer],
        new_id: Callable[[], str],
    ) -> None:
        self.memberships: dict[str, Membership] = {}
        self._slots = slots
        self._waiters = waiters
        self._limits = limits
        self._observed = observed
        self._clock = clock
        self._later = later
        self._new_id = new_id
        # The next moment at which each group must be looked at; a heartbeat moves it without touching the heap.
        self._due: list[tuple[int, str]] = []
        self._looked_for: dict[str, int] = {}
        self._marked: set[str] = set()
        self._excess = Excess(bytes_max=limits.excess_bytes_max)
        self._armed_ms: int | None = None
        self._timer: Timer | None = None

    # --- requests ---------------------------------------------------------------------------------------------------

    def receive_join(self, frame: bytes, client: Client) -> None:
        """Take a JoinGroup; it is held until its join phase is over."""
        header, decoded = decode_request(frame)
        request = cast("JoinGroupRequest", decoded)
        version = header.api_version
        held = HeldJoin(client.turns, header, self._observed)
        joining = Joining(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            client_id=header.client_id or "",
            client_host=client.host,
            session_timeout_ms=request.session_timeout_ms,
            # Version 0 had one patience for both.
            rebalance_timeout_ms=request.rebalance_timeout_ms if version else request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
            needs_id=version >= 4 and request.group_instance_id is None,
            can_skip_assignment=version >= 9,
        )
        code = self._refuse_join(request.group_id, joining)
        membership = None if code is not Code.NONE else self._membership(request.group_id, make=not request.member_id)
        if membership is None:
            held.answer(JoinReply(Code.UNKNOWN_MEMBER_ID if code is Code.NONE else code, request.member_id))
            return
        effects = membership.join(joining, held, now_ms=self._now_ms(), new_id=self._new_id)
        self._carry_out(request.group_id, membership, effects, Who(header.client_id or "", client.host, ""))
        self._let_go(request.group_id, membership)

    def receive_sync(self, frame: bytes, client: Client) -> None:
        """Take a SyncGroup; it is held until the leader's part of it is in the log."""
        header, decoded = decode_request(frame)
        request = cast("SyncGroupRequest", decoded)
        held = HeldSync(client.turns, header, self._observed)
        named = header.api_version >= _NAMED_SINCE
        code = self._refuse(request.group_id)
        if named and (request.protocol_type is None or request.protocol_name is None):
            code = Code.INCONSISTENT_GROUP_PROTOCOL
        membership = self.memberships.get(request.group_id)
        if code is not Code.NONE or membership is None:
            held.answer(SyncReply(Code.UNKNOWN_MEMBER_ID if code is Code.NONE else code))
            return
        effects = membership.sync(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            (request.protocol_type, request.protocol_name) if named else None,
            ((row.member_id, row.assignment) for row in request.assignments),
            held,
            now_ms=self._now_ms(),
        )
        who = Who(header.client_id or "", client.host, request.member_id)
        self._carry_out(request.group_id, membership, effects, who)

    def receive_heartbeat(self, frame: bytes, client: Client) -> None:
        """Take a Heartbeat. While its slot loads it is well: the member's session begins anew when that is over."""
        header, decoded = decode_request(frame)
        request = cast("HeartbeatRequest", decoded)
        code = self._refuse(request.group_id)
        if code is Code.COORDINATOR_LOAD_IN_PROGRESS:
            code = Code.NONE
        elif code is Code.NONE:
            membership = self.memberships.get(request.group_id)
            code = (
                Code.UNKNOWN_MEMBER_ID
                if membership is None
                else membership.heartbeat(
                    request.member_id, request.group_instance_id, request.generation_id, now_ms=self._now_ms()
                )
            )
        self._count(HEARTBEAT, code)
        reply = HeartbeatResponse(error_code=code)
        client.turns.reply(encode_response(HEARTBEAT, header.api_version, header.correlation_id, reply))
        self._observed.latency[HEARTBEAT].observe(self._clock.monotonic() - client.received_at)

    def receive_leave(self, frame: bytes, client: Client) -> None:
        """Take a LeaveGroup: one member, or from version 3 on several."""
        header, decoded = decode_request(frame)
        request = cast("LeaveGroupRequest", decoded)
        version = header.api_version
        leavers = [(row.member_id, row.group_instance_id) for row in request.members]
        if version < 3:
            leavers = [(request.member_id, None)]
        code = self._refuse(request.group_id)
        codes: list[Code] = []
        if code is Code.NONE:
            codes = self._leave(request.group_id, leavers, client, header.client_id or "")
        if version < 3 and codes:
            code = codes[0]
        for each in (code, *codes) if version >= 3 else (code,):
            self._count(LEAVE_GROUP, each)
        reply = LeaveGroupResponse(
            error_code=code,
            members=tuple(
                LeaveGroupResponseMember(member_id=member_id, group_instance_id=instance_id, error_code=each)
                for (member_id, instance_id), each in zip(leavers, codes, strict=False)
            ),
        )
        client.turns.reply(encode_response(LEAVE_GROUP, version, header.correlation_id, reply))
        self._observed.latency[LEAVE_GROUP].observe(self._clock.monotonic() - client.received_at)

    def _leave(
        self, group_id: str, leavers: list[tuple[str, str | None]], client: Client, client_id: str
    ) -> list[Code]:
        membership = self.memberships.get(group_id)
        if membership is None:
            return [Code.UNKNOWN_MEMBER_ID] * len(leavers)
        codes, effects = membership.leave(leavers, now_ms=self._now_ms())
        self._carry_out(group_id, membership, effects, Who(client_id, client.host, ""))
        self._let_go(group_id, membership)
        return codes

    def _refuse_join(self, group_id: str, joining: Joining) -> Code:
        """Tell why nobody can join so, if it is so: what is wrong with a request is said before its slot is loaded."""
        code = self._refuse(group_id)
        low, high = self._limits.session_timeout_ms
        if code is Code.INVALID_GROUP_ID:
            return code
        if not low <= joining.session_timeout_ms <= high:
            return Code.INVALID_SESSION_TIMEOUT
        wrong = joining.refuse()
        if wrong is not Code.NONE or code is not Code.NONE:
            return code if wrong is Code.NONE else wrong
        membership = self.memberships.get(group_id)
        is_member = membership is not None and joining.member_id in membership.roster.members
        has_room = is_member or self._excess.has_room(joining, now_ms=self._now_ms())
        return Code.NONE if has_room else Code.COORDINATOR_NOT_AVAILABLE

    def _refuse(self, group_id: str) -> Code:
        if not group_id or len(group_id.encode()) > GROUP_ID_BYTES_MAX:
            return Code.INVALID_GROUP_ID
        if self._slots.states[self._slots.of(group_id)] is not SlotState.READY:
            return Code.COORDINATOR_LOAD_IN_PROGRESS
        return Code.NONE

    def _count(self, api: int, code: Code) -> None:
        if code is not Code.NONE:
            self._observed.refusals[api, int(code)] += 1

    # --- questions --------------------------------------------------------------------------------------------------

    def view(self, group_id: str) -> GroupView | None:
        """Return how a group is shown, None if there is none of that name."""
        group = self._slots.table_of(group_id).groups.get(group_id)
        membership = self.memberships.get(group_id)
        if group is None and membership is None:
            return None
        return view_of(membership, group)

    def count(self) -> int:
        """Return how many groups there are."""
        unwritten = sum(name not in self._slots.table_of(name).groups for name in self.memberships)
        return unwritten + sum(len(table.groups) for table in self._slots.tables)

    def states(self) -> dict[str, int]:
        """Count the groups by state."""
        counts = Counter(membership.state for membership in self.memberships.values())
        counts[State.EMPTY] += self.count() - len(self.memberships)
        return {state.value: counts[state] for state in State if state is not State.DEAD}

    def ids(self) -> Iterator[str]:
        """Yield the id of every group there is now; the caller may take its time."""
        tables = [list(table.groups) for table in self._slots.tables]
        unwritten = [name for name in self.memberships if name not in self._slots.table_of(name).groups]
        yield from chain(unwritten, *tables)

    def stop(self) -> None:
        """Answer every held request: their clients look for a coordinator anew, and find this one started again."""
        for membership in self.memberships.values():
            for held, reply in membership.let_go(Code.COORDINATOR_NOT_AVAILABLE).answers:
                cast("HeldJoin | HeldSync", held).answer(reply)

    def forget(self, group_id: str) -> Membership | None:
        """Let go of the membership of a group that is being removed; return it, should the log refuse that."""
        return self.memberships.pop(group_id, None)

    def take_back(self, group_id: str, membership: Membership | None) -> None:
        """Go on with a group whose removal was refused, unless somebody has begun anew meanwhile."""
        if membership is not None and self.memberships.setdefault(group_id, membership) is membership:
            self._mark(group_id)
            self._let_go(group_id, membership)

    # --- from the log -----------------------------------------------------------------------------------------------

    def take_up(self, slot: int) -> None:
        """Take up the members that a slot knows of which was just loaded; each has a whole session to be heard in."""
        now_ms = self._now_ms()
        for group_id, group in self._slots.tables[slot].groups.items():
            if group.generation is not None and group.generation[1].members:
                membership = self.memberships[group_id] = self._restored(group.generation[1], now_ms)
                self._excess.count(group_id, membership.roster.excess_bytes)
                self._mark(group_id)

    def _membership(self, group_id: str, *, make: bool) -> Membership | None:
        """Return the membership of a group that there is, or of one that is made by its first member."""
        membership = self.memberships.get(group_id)
        if membership is not None:
            return membership
        group = self._slots.table_of(group_id).groups.get(group_id)
        if not self._waiters.will_exist(group_id, exists=group is not None):
            # Nothing of a group that is being removed goes on.
            group = None
            if not make:
                return None
        if group is None or group.generation is None:
            membership = self._make()
        else:
            # Its generations go on where they were, though all members had left.
            membership = self._restored(group.generation[1], self._now_ms())
        self.memberships[group_id] = membership
        return membership

    def _make(self) -> Membership:
        return Membership(
            initial_delay_ms=self._limits.initial_rebalance_delay_ms, members_max=self._limits.group_members_max
        )

    def _restored(self, stored: Generation, now_ms: int) -> Membership:
        return Membership.restore(
            stored,
            initial_delay_ms=self._limits.initial_rebalance_delay_ms,
            members_max=self._limits.group_members_max,
            now_ms=now_ms,
        )

    # --- effects ----------------------------------------------------------------------------------------------------

    def _carry_out(self, group_id: str, membership: Membership, effects: Effects, who: Who) -> None:
        for held, reply in effects.answers:
            cast("HeldJoin | HeldSync", held).answer(reply)
        if effects.append is not None:
            self._append(group_id, membership, effects.append, who)
        if self.memberships.get(group_id) is membership:
            self._excess.count(group_id, membership.roster.excess_bytes)
        self._mark(group_id)

    def _append(self, group_id: str, membership: Membership, generation: Generation, who: Who) -> None:
        table = self._slots.table_of(group_id)
        now_ms = self._clock.wall_ms()
        entry = encode_generation(table.slot, group_id, now_ms, who, generation)
        if len(entry) > ENTRY_BYTES_MAX:
            logger.warning("generation_too_large", group=group_id, bytes=len(entry), limit_bytes=ENTRY_BYTES_MAX)
            self._heard(group_id, membership, generation, Code.UNKNOWN_SERVER_ERROR)
            return
        waiter = Waiter(table, group_id, now_ms, who)
        waiter.entry = generation_entry(table.slot, group_id, now_ms, who, generation)
        waiter.after = lambda code: self._heard(group_id, membership, generation, code)
        self._waiters.append(entry, waiter, None)

    def _heard(self, group_id: str, membership: Membership, generation: Generation, code: Code) -> None:
        """Hear from the log."""
        now_ms = self._now_ms()
        if code is Code.NONE:
            effects = membership.settled(generation, now_ms=now_ms)
            self._observed.generations += 1
        else:
            effects = membership.refused(generation, code, now_ms=now_ms)
        self._carry_out(group_id, membership, effects, _OURSELVES)
        self._let_go(group_id, membership)

    def _let_go(self, group_id: str, membership: Membership) -> None:
        """Forget an empty membership that nobody waits for: what matters of it is in the log."""
        if membership.is_idle and self.memberships.get(group_id) is membership:
            del self.memberships[group_id]

    # --- deadlines --------------------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def _mark(self, group_id: str) -> None:
        """See to it that a group's next deadline is looked for: once in a turn, however many requests it had."""
        if not self._marked:
            self._later(0, self._look)
        self._marked.add(group_id)

    def _look(self) -> None:
        marked, self._marked = self._marked, set()
        for group_id in marked:
            membership = self.memberships.get(group_id)
            if membership is not None:
                self._look_for(group_id, membership)

    def _look_for(self, group_id: str, membership: Membership) -> None:
        moment_ms = membership.next_deadline_ms()
        if moment_ms is None or self._looked_for.get(group_id, moment_ms + 1) <= moment_ms:
            return
        self._looked_for[group_id] = moment_ms
        heappush(self._due, (moment_ms, group_id))
        if self._armed_ms is None or moment_ms < self._armed_ms:
            self._arm(moment_ms)

    def _arm(self, moment_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ms = moment_ms
        self._timer = self._later(max(moment_ms - self._now_ms(), 0) / 1000, self._wake)

    def _wake(self) -> None:
        """Look at every group whose moment has come."""
        self._armed_ms = self._timer = None
        now_ms = self._now_ms()
        while self._due and self._due[0][0] <= now_ms:
            moment_ms, group_id = heappop(self._due)
            if self._looked_for.get(group_id) != moment_ms:
                continue  # it was looked for earlier, too
            del self._looked_for[group_id]
            membership = self.memberships.get(group_id)
            if membership is not None:
                self._carry_out(group_id, membership, membership.expire(now_ms), _OURSELVES)
                self._let_go(group_id, membership)
        if self._due:
            self._arm(self._due[0][0])
