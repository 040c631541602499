"""Random lives of a group: whatever members, time and the log do, nobody waits for ever, and nothing contradicts."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from offsetd.coordinator.effects import Effects, JoinReply, SyncReply
from offsetd.coordinator.member import Joining
from offsetd.coordinator.membership import Membership, State
from offsetd.record import Generation
from protocol.errors import Code

CLIENTS: Final = ("a", "b", "c", "d")
INSTANCES: Final = ("blue", "green")
PROTOCOLS: Final = (
    (("range", b"r"),),
    (("range", b"r"), ("sticky", b"s")),
    (("sticky", b"s"), ("range", b"r2")),
    (("range", b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff"),),
    (("other", b""),),
    (),
    (("range", b"r"), ("range", b"r")),
)
SESSIONS_MS: Final = (6_000, 10_000, 1_800_000)
PATIENCES_MS: Final = (-1, 0, 1, 5_000, 60_000, 60_000)
MEMBERS_MAX: Final = 3


@dataclass(eq=False)
class Held:
    """A request in flight."""

    client: str
    kind: type[JoinReply] | type[SyncReply]
    static: bool = False


@dataclass
class Client:
    """What a client knows."""

    ids: list[str] = field(default_factory=lambda: [""])
    generation: int = -1


class Life(RuleBasedStateMachine):
    """One group, four clients, a clock and a log that may keep or refuse what it is given, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.clients = {name: Client() for name in CLIENTS}
        self.numbers = count(1)
        self.open: set[Held] = set()
        self.appended: list[Generation] = []
        self.kept: Generation | None = None
        self.highest = 0
        self.group: Membership

    @initialize(delay_ms=st.sampled_from((0, 3_000)))
    def begin(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.group = Membership(initial_delay_ms=delay_ms, members_max=MEMBERS_MAX)

    # --- what happens -----------------------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(CLIENTS),
        which=st.integers(0, 3),
        instance=st.sampled_from((None, None, *INSTANCES)),
        protocols=st.sampled_from((*PROTOCOLS[:3], *PROTOCOLS)),
        kind=st.sampled_from(("consumer", "consumer", "consumer", "connect", "")),
        session_ms=st.sampled_from(SESSIONS_MS),
        patience_ms=st.sampled_from(PATIENCES_MS),
        needs_id=st.booleans(),
        can_skip=st.booleans(),
    )
    def join(
        self,
        name: str,
        which: int,
        instance: str | None,
        protocols: tuple[tuple[str, bytes], ...],
        kind: str,
        session_ms: int,
        patience_ms: int,
        needs_id: bool,
        can_skip: bool,
    ) -> None:
        held = self._held(name, JoinReply, static=instance is not None)
        joining = Joining(
            member_id=self._id(name, which),
            instance_id=instance,
            client_id=name,
            client_host="/10.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=patience_ms,
            protocol_type=kind,
            protocols=protocols,
            needs_id=needs_id and instance is None,
            can_skip_assignment=can_skip,
        )
        self._do(self.group.join(joining, held, now_ms=self.now_ms, new_id=lambda: str(next(self.numbers))))

    @rule(name=st.sampled_from(CLIENTS), which=st.integers(0, 3), stale=st.sampled_from((0, 0, 0, 1)))
    def sync(self, name: str, which: int, stale: int) -> None:
        held = self._held(name, SyncReply)
        parts = [(member_id, member_id.encode()) for member_id in self.group.roster.members][stale:]
        generation = self.group.generation - stale
        self._do(self.group.sync(self._id(name, which), None, generation, None, parts, held, now_ms=self.now_ms))

    @rule(
        name=st.sampled_from(CLIENTS),
        protocols=st.sampled_from(PROTOCOLS[:3]),
        needs_id=st.booleans(),
        comes_back=st.booleans(),
    )
    def join_well(self, name: str, protocols: tuple[tuple[str, bytes], ...], needs_id: bool, comes_back: bool) -> None:
        """Join as a good client does: by the id it has, if that is still good; two of them are static members."""
        instance = {"c": "blue", "d": "green"}.get(name)
        newest = self.clients[name].ids[-1]
        known = newest in self.group.roster.members or newest in self.group.roster.pending
        held = self._held(name, JoinReply, static=instance is not None)
        joining = Joining(
            member_id=newest if known and not (comes_back and instance) else "",
            instance_id=instance,
            client_id=name,
            client_host="/10.0.0.1",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=protocols,
            needs_id=needs_id and instance is None,
            can_skip_assignment=needs_id,
        )
        self._do(self.group.join(joining, held, now_ms=self.now_ms, new_id=lambda: str(next(self.numbers))))

    @rule()
    def all_join(self) -> None:
        """Every member joins again as it is: what clients do when they hear of a rebalance."""
        for member in list(self.group.roster.members.values()):
            if self.group.roster.members.get(member.member_id) is member:
                held = self._held(member.member_id, JoinReply)
                joining = Joining(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    session_timeout_ms=member.session_timeout_ms,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    protocol_type=self.group.protocol_type or "",
                    protocols=member.protocols,
                )
                self._do(self.group.join(joining, held, now_ms=self.now_ms, new_id=lambda: str(next(self.numbers))))

    @rule()
    def all_sync(self) -> None:
        for member_id in list(self.group.roster.members):
            if member_id in self.group.roster.members:
                held = self._held(member_id, SyncReply)
                parts = [(each, each.encode()) for each in self.group.roster.members]
                self._do(self.group.sync(member_id, None, self.group.generation, None, parts, held, now_ms=self.now_ms))

    @rule(name=st.sampled_from(CLIENTS), which=st.integers(0, 3), stale=st.sampled_from((0, 0, 1)))
    def heartbeat(self, name: str, which: int, stale: int) -> None:
        member_id = self._id(name, which)
        code = self.group.heartbeat(member_id, None, self.group.generation - stale, now_ms=self.now_ms)

        assert (code is Code.UNKNOWN_MEMBER_ID) == (member_id not in self.group.roster.members)
        if code is Code.NONE:
            assert self.group.state in (State.STABLE, State.COMPLETING)

    @rule(
        names=st.lists(st.sampled_from(CLIENTS), min_size=1, max_size=3),
        which=st.integers(0, 3),
        instance=st.sampled_from((None, None, *INSTANCES)),
    )
    def leave(self, names: list[str], which: int, instance: str | None) -> None:
        leavers = [(self._id(name, which), instance) for name in names]
        codes, effects = self.group.leave(leavers, now_ms=self.now_ms)
        self._do(effects)

        assert len(codes) == len(leavers)
        for (member_id, _), code in zip(leavers, codes, strict=True):
            if code is Code.NONE:
                assert member_id not in self.group.roster.members

    @rule(ms=st.sampled_from((0, 1, 999, 999, 999, 3_000, 3_000, 3_000, 5_999, 10_000, 60_000, 400_000)))
    def pass_time(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        turns = 0
        while (due_ms := self.group.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._do(self.group.expire(self.now_ms))
            turns += 1
            assert turns < 5_000, "time runs in circles"
        self.now_ms = end_ms

        assert self.group.next_deadline_ms() is None or self.group.next_deadline_ms() > end_ms  # type: ignore[operator]

    @rule(batch=st.integers(1, 3))
    def settle(self, batch: int) -> None:
        for _ in range(min(batch, len(self.appended))):
            generation = self.appended.pop(0)
            self.kept = generation
            stable = self.group.state is State.STABLE
            self._do(self.group.settled(generation, now_ms=self.now_ms))
            if self.group.state is State.STABLE and not stable:
                self._looks_like(generation)

    @rule()
    def refuse(self) -> None:
        for _ in range(len(self.appended)):
            generation = self.appended.pop(0)
            self._do(self.group.refused(generation, Code.COORDINATOR_NOT_AVAILABLE, now_ms=self.now_ms))

    @rule()
    def restart(self) -> None:
        if self.kept is None:
            return
        self.open.clear()
        self.appended.clear()
        self.highest = self.kept.generation
        self.group = Membership.restore(
            self.kept, initial_delay_ms=self.delay_ms, members_max=MEMBERS_MAX, now_ms=self.now_ms
        )
        self._looks_like(self.kept)

    @rule()
    def stop(self) -> None:
        self._do(self.group.let_go(Code.COORDINATOR_NOT_AVAILABLE))

        assert not self._waiting()

    # --- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def every_request_is_answered_or_held(self) -> None:
        assert self._waiting() == self.open

    @invariant()
    def nobody_waits_for_others_in_a_group_at_rest(self) -> None:
        members = self.group.roster.members.values()
        if self.group.state in (State.STABLE, State.EMPTY):
            assert not any(member.joining or member.syncing for member in members)
        if self.group.state is State.PREPARING:
            assert not any(member.syncing for member in members)
        if self.group.state is State.COMPLETING:
            assert not any(member.joining for member in members)

    @invariant()
    def generations_never_fall(self) -> None:
        assert self.group.generation >= self.highest
        self.highest = self.group.generation

    @invariant()
    def a_member_is_in_one_place(self) -> None:
        roster = self.group.roster
        instances = [each.instance_id for each in roster.members.values() if each.instance_id is not None]

        assert all(name == member.member_id for name, member in roster.members.items())
        assert roster.members.keys().isdisjoint(roster.pending)
        assert roster.unsynced <= roster.members.keys()
        assert len(instances) == len(set(instances)) == len(roster._static)
        assert all(roster.static(instance) is not None for instance in instances)
        assert roster.waiting == sum(member.joining is not None for member in roster.members.values())
        assert len(roster) <= MEMBERS_MAX or self.group.state is State.PREPARING

    @invariant()
    def somebody_leads(self) -> None:
        roster = self.group.roster

        assert (roster.leader in roster.members) if len(roster) else roster.leader is None

    @invariant()
    def the_state_fits_the_members(self) -> None:
        group = self.group
        if group.state is State.EMPTY:
            assert not len(group.roster)
            assert group.protocol is None
        elif group.state is not State.PREPARING:
            assert len(group.roster)
            assert group.protocol in group.roster.candidates()
            assert all(group.protocol in dict(member.protocols) for member in group.roster.members.values())

    @invariant()
    def somebody_is_waited_for(self) -> None:
        """Whatever the state, time alone leads out of it: no group hangs."""
        group = self.group
        if group.state in (State.PREPARING, State.COMPLETING):
            # The log speaks some time, too.
            assert group.next_deadline_ms() is not None or self.appended
        if group.state is State.STABLE:
            assert all(member.deadline_ms > self.now_ms for member in group.roster.members.values())
        if group.state in (State.STABLE, State.COMPLETING):
            assert not group.roster.unsynced or group._sync_deadline_ms is not None
        if group.state is State.PREPARING and not group._join_phase.is_first:
            assert not group.roster.all_joined() or not len(group.roster)

    @invariant()
    def nothing_is_kept_of_a_group_that_is_gone(self) -> None:
        if self.group.is_idle:
            assert self.kept is None or self.kept.members == () or self.group.generation == 0
            assert not self.group.roster._supporters
            assert not self.group.roster._static
            assert not self.appended

    # --- helpers ----------------------------------------------------------------------------------------------------

    def _held(self, name: str, kind: Any, *, static: bool = False) -> Held:
        held = Held(name, kind, static)
        self.open.add(held)
        return held

    def _id(self, name: str, which: int) -> str:
        """Return the newest id that a client was given, or by chance an older one, or none."""
        ids = self.clients[name].ids
        return ids[max(len(ids) - 1 - max(which - 2, 0), 0)] if which else ""

    def _do(self, effects: Effects) -> None:
        for held, reply in effects.answers:
            assert isinstance(held, Held)
            assert held in self.open, "answered twice"
            self.open.remove(held)
            assert isinstance(reply, held.kind)
            if isinstance(reply, JoinReply) and held.client in self.clients:
                client = self.clients[held.client]
                if reply.code in (Code.NONE, Code.MEMBER_ID_REQUIRED):
                    client.ids.append(reply.member_id)
                if reply.code is Code.NONE and not held.static:
                    # A member without patience may already have lost its place in the same step.
                    assert reply.generation in (self.group.generation, self.group.generation - 1)
                    assert bool(reply.members) == (reply.leader == reply.member_id)
        if effects.append is not None:
            self.appended.append(effects.append)

    def _waiting(self) -> set[Held]:
        held: set[Any] = {each.held for each in self.group._writing._returns}
        for member in self.group.roster.members.values():
            held |= {each for each in (member.joining, member.syncing) if each is not None}
        return held

    def _looks_like(self, generation: Generation) -> None:
        """Hold a group at rest against what the log has of it."""
        restored = Membership.restore(
            generation, initial_delay_ms=self.delay_ms, members_max=MEMBERS_MAX, now_ms=self.now_ms
        )
        for group in (restored, self.group):
            assert group.state is (State.STABLE if generation.members else State.EMPTY)
            assert group.generation == generation.generation
            assert (group.protocol_type or "") == generation.protocol_type
            assert group.protocol == generation.protocol
            assert group.roster.leader == generation.leader
            assert group.roster.rows(group.protocol, _parts(group)) == generation.members
        assert restored.subscription == self.group.subscription
        assert all(member.deadline_ms > self.now_ms for member in restored.roster.members.values())


def _parts(group: Membership) -> dict[str, bytes]:
    return {member.member_id: member.assignment for member in group.roster.members.values()}


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=250, stateful_step_count=50, deadline=None)
