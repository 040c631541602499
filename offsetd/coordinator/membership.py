"""The membership of one group, by Kafka's classic protocol: a state machine, pure.

Time comes in as an argument. A request that has to wait is held as an opaque object, and comes back in `Effects` with
its reply when another request or the passing of time has decided it. A generation counts when it is in the log: it goes
out in `Effects`, and `settled` or `refused` tell what became of it. Offsets and frames are not known here.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from offsetd.coordinator.effects import Effects, JoinReply, SyncReply
from offsetd.coordinator.join_phase import JoinPhase
from offsetd.coordinator.member import Joining, Member
from offsetd.coordinator.roster import Roster
from offsetd.coordinator.subscription import CONSUMER
from offsetd.coordinator.writing import Writing
from offsetd.record import Generation
from protocol.errors import Code

#: A newcomer whose first join is held this long is given up: it cannot send heartbeats yet, and may have gone.
NEW_MEMBER_MS: Final = 300_000
#: When nobody has come back in time, not even members without patience make us look more often than this.
NOBODY_JOINED_MS: Final = 1000


class State(Enum):
    """Kafka's names, which admin tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Membership:
    """One group's members and what they are about."""

    def __init__(self, *, initial_delay_ms: int, members_max: int) -> None:
        self._members_max = members_max
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.roster = Roster()
        # What the members of the last completed join phase read; None: that cannot be told.
        self.subscription: frozenset[str] | None = None
        # Moves with everything that could change what a member's commit is answered.
        self.version = 0
        self._join_phase = JoinPhase(initial_delay_ms=initial_delay_ms)
        self._sync_deadline_ms: int | None = None
        self._writing = Writing()
        # The generation on its way to the log that will make the group stable.
        self._completing: Generation | None = None

    @classmethod
    def restore(cls, stored: Generation, *, initial_delay_ms: int, members_max: int, now_ms: int) -> "Membership":
        """Go on from what the log holds: the same generation, and a whole session for everybody to be heard in."""
        group = cls(initial_delay_ms=initial_delay_ms, members_max=members_max)
        group.generation = stored.generation
        group.protocol_type = stored.protocol_type or None
        for row in stored.members:
            member = Member(
                member_id=row.member_id,
                instance_id=row.instance_id,
                client_id=row.client_id,
                client_host=row.client_host,
                session_timeout_ms=row.session_timeout_ms,
                rebalance_timeout_ms=row.rebalance_timeout_ms,
                protocols=((stored.protocol or "", row.metadata),),
                assignment=row.assignment,
            )
            member.hear(now_ms)
            group.roster.add(member)
        if stored.members:
            group.state = State.STABLE
            group.protocol = stored.protocol
            group.roster.leader = stored.leader
        group._look_at_subscriptions()
        return group

    # --- requests ---------------------------------------------------------------------------------------------------

    def join(self, joining: Joining, held: object, *, now_ms: int, new_id: Callable[[], str]) -> Effects:
        """Take a JoinGroup whose group id and session timeout are right."""
        effects = Effects()
        self.version += 1
        roster = self.roster
        if not self._has_room(joining):
            effects.answer(held, JoinReply(Code.GROUP_MAX_SIZE_REACHED, ""))
            self._turn_away(joining.member_id, now_ms, effects)
        elif not self._supports(joining):
            effects.answer(held, JoinReply(Code.INCONSISTENT_GROUP_PROTOCOL, joining.member_id))
        elif not joining.member_id:
            self._join_newcomer(joining, held, now_ms, new_id, effects)
        elif joining.member_id in roster.pending and joining.instance_id is None:
            self._add(joining.member_id, joining, held, now_ms, effects)
        elif (code := roster.refuse(joining.member_id, joining.instance_id)) is not Code.NONE:
            effects.answer(held, JoinReply(code, joining.member_id))
        else:
            self._join_again(roster.members[joining.member_id], joining, held, now_ms, effects)
        return effects

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol: tuple[str | None, str | None] | None,
        assignments: Iterable[tuple[str, bytes]],
        held: object,
        *,
        now_ms: int,
    ) -> Effects:
        """Take a SyncGroup; `protocol` is its protocol type and name in the versions that have them."""
        effects = Effects()
        code = self.refuse_member(member_id, instance_id, generation)
        if code is Code.NONE and protocol is not None and protocol != (self.protocol_type, self.protocol):
            code = Code.INCONSISTENT_GROUP_PROTOCOL
        if code is Code.NONE and self.state is State.PREPARING:
            code = Code.REBALANCE_IN_PROGRESS
        if code is not Code.NONE:
            effects.answer(held, SyncReply(code))
            return effects
        member = self.roster.members[member_id]
        self.roster.unsynced.discard(member_id)
        if self.state is State.STABLE:
            member.hear(now_ms)
            effects.answer(held, self._assigned(member))
            return effects
        # The client has given the older request up; without an answer it would keep its connection waiting.
        effects.answer(member.syncing, SyncReply(Code.REBALANCE_IN_PROGRESS))
        member.syncing = held
        if member_id == self.roster.leader and self._completing is None:
            self._completing = self._write(dict(assignments), effects)
        return effects

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, *, now_ms: int) -> Code:
        """Take a sign of life."""
        code = self.refuse_member(member_id, instance_id, generation)
        if code is Code.NONE:
            self.roster.members[member_id].hear(now_ms)
            if self.state is State.PREPARING:
                return Code.REBALANCE_IN_PROGRESS
        return code

    def leave(self, leavers: Iterable[tuple[str, str | None]], *, now_ms: int) -> tuple[list[Code], Effects]:
        """Take members out, each by its id or its instance id; one code each."""
        effects = Effects()
        before = len(self.roster)
        codes = [self._leave(member_id, instance_id, effects) for member_id, instance_id in leavers]
        if Code.NONE in codes:
            self._after_removal(before - len(self.roster), now_ms, effects)
        return codes, effects

    def _leave(self, member_id: str, instance_id: str | None, effects: Effects) -> Code:
        if not member_id and instance_id is not None:
            member = self.roster.static(instance_id)
            member_id = "" if member is None else member.member_id
        elif self.roster.pending.pop(member_id, None) is not None:
            return Code.NONE
        code = self.roster.refuse(member_id, instance_id)
        if code is Code.NONE:
            self._remove(self.roster.members[member_id], effects)
        return code

    # --- what time and the log bring --------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """Return when `expire` has something to do, None for never."""
        moments = [member.deadline_ms for member in self.roster.members.values() if not member.is_excused]
        moments += self.roster.pending.values()
        others = (self._join_phase.deadline_ms, self._sync_deadline_ms, self._writing.retry_ms)
        moments += (each for each in others if each is not None)
        return min(moments, default=None)

    def expire(self, now_ms: int) -> Effects:
        """Do what is due by now."""
        effects = Effects()
        roster = self.roster
        gone = [member_id for member_id, deadline_ms in roster.pending.items() if deadline_ms <= now_ms]
        for member_id in gone:
            del roster.pending[member_id]
        late = [each for each in roster.members.values() if each.deadline_ms <= now_ms and not each.is_excused]
        for member in late:
            self._remove(member, effects)
        if gone or late:
            self._after_removal(len(late), now_ms, effects)
        if self._join_phase.is_due(now_ms) and not self._join_phase.extend(now_ms):
            self._complete(now_ms, effects)
        if self._sync_deadline_ms is not None and self._sync_deadline_ms <= now_ms:
            self._end_sync_phase(now_ms, effects)
        if self._writing.is_due(now_ms):
            self._write({}, effects)
        return effects

    def settled(self, generation: Generation, *, now_ms: int) -> Effects:
        """Hear that a generation is in the log for good."""
        effects = Effects()
        self._writing.settled(generation, effects)
        if self._finishes(generation):
            self.state = State.STABLE
            given = {row.member_id: row.assignment for row in generation.members}
            for member in self.roster.members.values():
                member.assignment = given.get(member.member_id, b"")
                held, member.syncing = member.syncing, None
                if held is not None:
                    # Whoever has not asked yet is heard of when it does.
                    member.hear(now_ms)
                    effects.answer(held, self._assigned(member))
        return effects

    def refused(self, generation: Generation, code: Code, *, now_ms: int) -> Effects:
        """Hear that the log did not take a generation: whoever waited for it is told, and tries again."""
        effects = Effects()
        self._writing.refused(generation, code, effects)
        if self._finishes(generation):
            self._answer_syncs(code, now_ms, effects)
            self._rebalance(now_ms, effects)
        elif self.state is State.EMPTY and self.generation == generation.generation:
            # Otherwise a restart would bring back members that are gone.
            self._writing.retry_later(now_ms)
        return effects

    def _finishes(self, generation: Generation) -> bool:
        """Take a generation as answered; tell whether it is the one that the group waits for."""
        if generation is not self._completing:
            return False
        self._completing = None
        self.version += 1
        return self.state is State.COMPLETING

    def let_go(self, code: Code) -> Effects:
        """Answer all that is held: the broker is going, and somebody else will have to be asked."""
        effects = Effects()
        for member in self.roster.members.values():
            self._dismiss(member, code, member.member_id, effects)
        return effects

    @property
    def is_idle(self) -> bool:
        """Whether nobody is here, or about to come, and the log knows all that there is to know."""
        return self.state is State.EMPTY and not self.roster.pending and self._writing.is_done

    # --- questions --------------------------------------------------------------------------------------------------

    def refuse_member(self, member_id: str, instance_id: str | None, generation: int) -> Code:
        """Tell why a request of a member is refused, if it is: by who it is, then by its generation."""
        code = self.roster.refuse(member_id, instance_id)
        if code is Code.NONE and generation != self.generation:
            return Code.ILLEGAL_GENERATION
        return code

    def refuse_commit(self, member_id: str, instance_id: str | None, generation: int) -> Code:
        """Tell why a commit is refused, if it is."""
        if generation < 0 and self.state is State.EMPTY:
            return Code.NONE
        if generation < 0 and not member_id and instance_id is None:
            # Somebody from outside, while members are at work.
            return Code.UNKNOWN_MEMBER_ID
        code = self.refuse_member(member_id, instance_id, generation)
        if code is Code.NONE and self.state is State.COMPLETING:
            return Code.REBALANCE_IN_PROGRESS
        return code

    def subscribes(self, topic: str) -> bool:
        """Tell whether a member reads a topic; where that cannot be told, a consumer group counts as reading it."""
        if self.subscription is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscription

    # --- joining ----------------------------------------------------------------------------------------------------

    def _has_room(self, joining: Joining) -> bool:
        if self.state is State.EMPTY:
            return True
        # Kafka takes a static member that comes back for one more, so that a full group cannot be restarted.
        comes_back = not joining.member_id and joining.instance_id is not None
        static = self.roster.static(joining.instance_id or "") if comes_back else None
        member = static or self.roster.members.get(joining.member_id)
        if self.state is State.PREPARING:
            # Whoever comes first is in; so a group that was made smaller loses those who are slow to come back.
            known = member is not None and member.joining is not None
            return known or self.roster.waiting < self._members_max
        return member is not None or len(self.roster) < self._members_max

    def _supports(self, joining: Joining) -> bool:
        names = [name for name, _ in joining.protocols]
        # Kafka holds a join that names a protocol twice for ever: its count of supporters never comes right.
        if not names or len(set(names)) != len(names):
            return False
        if self.state is State.EMPTY:
            return bool(joining.protocol_type)
        agrees = not len(self.roster) or not self.roster.candidates().isdisjoint(names)
        return agrees and joining.protocol_type == self.protocol_type

    def _turn_away(self, member_id: str, now_ms: int, effects: Effects) -> None:
        """Let somebody go for whom there is no room: it does not keep its id, and nobody waits for it."""
        self.roster.pending.pop(member_id, None)
        member = self.roster.members.get(member_id)
        if member is not None:
            self._remove(member, effects)
        self._after_removal(0, now_ms, effects)

    def _join_newcomer(
        self, joining: Joining, held: object, now_ms: int, new_id: Callable[[], str], effects: Effects
    ) -> None:
        member_id = joining.made_id(new_id())
        known = None if joining.instance_id is None else self.roster.static(joining.instance_id)
        if known is not None:
            self._come_back(known, member_id, joining, held, now_ms, effects)
        elif joining.needs_id:
            self.roster.pending[member_id] = now_ms + joining.session_timeout_ms
            effects.answer(held, JoinReply(Code.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(member_id, joining, held, now_ms, effects)

    def _add(self, member_id: str, joining: Joining, held: object, now_ms: int, effects: Effects) -> None:
        if not len(self.roster):
            self.protocol_type = joining.protocol_type
        member = Member(
            member_id=member_id,
            instance_id=joining.instance_id,
            client_id=joining.client_id,
            client_host=joining.client_host,
            session_timeout_ms=joining.session_timeout_ms,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            protocols=joining.protocols,
            is_new=True,
            deadline_ms=now_ms + NEW_MEMBER_MS,
        )
        self.roster.add(member)
        self.roster.hold(member, held)
        self._join_phase.meet_newcomer()
        self._rebalance(now_ms, effects)

    def _join_again(self, member: Member, joining: Joining, held: object, now_ms: int, effects: Effects) -> None:
        # A leader that joins a stable group again asks for a rebalance: it has seen topics or partitions change.
        follows = self.state is State.STABLE and member.member_id != self.roster.leader
        if member.protocols == joining.protocols and (follows or self.state is State.COMPLETING):
            effects.answer(held, self._joined(member))
            return
        self._update(member, joining, held, effects)
        self._rebalance(now_ms, effects)

    def _update(self, member: Member, joining: Joining, held: object, effects: Effects) -> None:
        # The client has given the older request up; without an answer it would keep its connection waiting.
        effects.answer(self.roster.hold(member, held), JoinReply(Code.REBALANCE_IN_PROGRESS, member.member_id))
        self.roster.change_protocols(member, joining.protocols)
        member.session_timeout_ms = joining.session_timeout_ms
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms

    def _come_back(
        self, member: Member, member_id: str, joining: Joining, held: object, now_ms: int, effects: Effects
    ) -> None:
        """Let a static member that was started again go on where it was, under another id."""
        self._dismiss(member, Code.FENCED_INSTANCE_ID, member.member_id, effects)
        leader_before = self.roster.leader
        self.roster.rename(member, member_id)
        member.client_id, member.client_host = joining.client_id, joining.client_host
        self._update(member, joining, held, effects)
        member.is_new = False
        member.hear(now_ms)
        if self.state is not State.STABLE or self.roster.choose() != self.protocol:
            self._rebalance(now_ms, effects)
            return
        # Nothing else changes, so nobody else is disturbed; but the log must know its new id.
        self.roster.let_go(member)
        reply = self._joined(member)
        if not joining.can_skip_assignment:
            # Taken for a follower, it asks for its part and does not assign anew.
            reply = reply._replace(leader=leader_before or "", members=())
        elif member_id == self.roster.leader:
            reply = reply._replace(skip_assignment=True)
        assignments = {each.member_id: each.assignment for each in self.roster.members.values()}
        self._writing.hold(self._write(assignments, effects), member, held, reply)

    # --- the phases of a rebalance ----------------------------------------------------------------------------------

    def _rebalance(self, now_ms: int, effects: Effects) -> None:
        """Begin a join phase, or end the one under way if it has all that it waits for."""
        if self.state is State.PREPARING:
            # The wait for members that nobody knows yet is never ended early.
            if not self._join_phase.is_first and self.roster.all_joined():
                self._complete(now_ms, effects)
            return
        if self.state is State.COMPLETING:
            for member in self.roster.members.values():
                member.assignment = b""
            self._answer_syncs(Code.REBALANCE_IN_PROGRESS, now_ms, effects)
        self._sync_deadline_ms = None
        self._writing.give_up()
        was_empty = self.state is State.EMPTY
        self.state = State.PREPARING
        patience_ms = self.roster.rebalance_timeout_ms()
        if was_empty:
            self._join_phase.begin_first(now_ms, patience_ms)
            if self._join_phase.is_due(now_ms):
                self._complete(now_ms, effects)
        elif self.roster.all_joined():
            self._complete(now_ms, effects)
        else:
            self._join_phase.begin(now_ms, patience_ms)

    def _complete(self, now_ms: int, effects: Effects) -> None:
        """End the join phase: whoever came is in the next generation."""
        roster = self.roster
        self.version += 1
        self._join_phase.end()
        for member in list(roster.members.values()):
            # A static member may come back within its session without anybody noticing.
            if member.joining is None and member.instance_id is None:
                self._remove(member, effects)
        if len(roster) and not roster.elect():
            self._join_phase.begin(now_ms, max(roster.rebalance_timeout_ms(), NOBODY_JOINED_MS))
            return
        self.generation += 1
        self._completing = None
        roster.unsynced = set(roster.members)
        self.state = State.COMPLETING if len(roster) else State.EMPTY
        self.protocol = roster.choose() if len(roster) else None
        self._look_at_subscriptions()
        if not len(roster):
            self._write({}, effects)
            return
        for member in roster.members.values():
            held = roster.let_go(member)
            member.is_new = False
            member.hear(now_ms)
            effects.answer(held, self._joined(member))
        self._sync_deadline_ms = now_ms + roster.rebalance_timeout_ms()

    def _end_sync_phase(self, now_ms: int, effects: Effects) -> None:
        """Take out those who joined and never asked for their part."""
        self._sync_deadline_ms = None
        absent = [self.roster.members[member_id] for member_id in sorted(self.roster.unsynced)]
        for member in absent:
            self._remove(member, effects)
        self._after_removal(len(absent), now_ms, effects)

    def _answer_syncs(self, code: Code, now_ms: int, effects: Effects) -> None:
        for member in self.roster.members.values():
            if member.syncing is not None:
                effects.answer(member.syncing, SyncReply(code))
                member.syncing = None
                member.hear(now_ms)

    def _remove(self, member: Member, effects: Effects) -> None:
        # A client that is still there learns that it must join anew.
        self._dismiss(member, Code.UNKNOWN_MEMBER_ID, "", effects)
        self.roster.remove(member)

    def _dismiss(self, member: Member, code: Code, member_id: str, effects: Effects) -> None:
        """Answer all that a member waits for."""
        effects.answer(self.roster.let_go(member), JoinReply(code, member_id))
        effects.answer(member.syncing, SyncReply(code))
        member.syncing = None
        self._writing.dismiss(member, JoinReply(code, member_id), effects)

    def _after_removal(self, lost: int, now_ms: int, effects: Effects) -> None:
        """Go on without them; an id that had not joined yet is missed only by a join phase that waits for it."""
        self.version += 1
        if lost or self.state is State.PREPARING:
            self._rebalance(now_ms, effects)

    # --- what is said of it -----------------------------------------------------------------------------------------

    def _look_at_subscriptions(self) -> None:
        self.subscription = self.roster.subscribed(self.protocol) if self.protocol_type == CONSUMER else None

    def _write(self, assignments: dict[str, bytes], effects: Effects) -> Generation:
        """Have the log keep this generation."""
        effects.append = Generation(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.roster.leader,
            members=self.roster.rows(self.protocol, assignments),
        )
        self._writing.begin()
        return effects.append

    def _assigned(self, member: Member) -> SyncReply:
        return SyncReply(Code.NONE, self.protocol_type, self.protocol, member.assignment)

    def _joined(self, member: Member) -> JoinReply:
        roster = self.roster
        listed = ((each.member_id, each.instance_id, each.metadata(self.protocol)) for each in roster.members.values())
        return JoinReply(
            code=Code.NONE,
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=roster.leader or "",
            members=tuple(listed) if member.member_id == roster.leader else (),
        )
