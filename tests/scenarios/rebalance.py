"""Whole rebalances as text: a step, four dashes, what it brought about. Clients remember what real ones remember.

Steps, `c` being any client's name:

    join c [instance=I] [session=10s] [patience=60s] [protocols=range,sticky] [topics=t,u] [type=consumer] [version=9]
    sync c [c=0,1 d=2 ...]      the parts that a leader hands in
    heartbeat c | leave c [d ...] | leave instance=I | commit c
    outsider                    a commit of nobody, as an admin tool makes it
    reads t u                   which topics the group counts as reading
    after 3s                    time passes, and what is due happens
    hold log | settle | refuse  hold what is appended; then let the log keep it, or not
    restart [size=2]            the broker loads what the log has kept
    show                        state, generation, protocol, members with their parts

`member=`, `instance=` and `generation=` say something else than what the client remembers (`instance=none`: none);
`new c` makes it forget all but its instance; `group [delay=3s] [size=1000]` begins with another group.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import pack

from offsetd.coordinator.effects import Effects, JoinReply, SyncReply
from offsetd.coordinator.member import Joining
from offsetd.coordinator.membership import Membership
from offsetd.record import Generation
from protocol.errors import Code

DASHES = "----"


@dataclass
class Client:
    """What a client remembers between its requests."""

    name: str
    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1
    requests: int = 0


@dataclass(frozen=True)
class Held:
    """A request in flight."""

    client: Client
    number: int
    version: int

    def __str__(self) -> str:
        return self.client.name


@dataclass
class World:
    """One group, its clients, a clock and a log."""

    initial_delay_ms: int = 3000
    members_max: int = 1000
    now_ms: int = 0
    log_holds: bool = False
    clients: dict[str, Client] = field(default_factory=dict)
    kept: Generation | None = None
    appended: list[Generation] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=lambda: iter(range(1, 1000)))

    def __post_init__(self) -> None:
        self.group = Membership(initial_delay_ms=self.initial_delay_ms, members_max=self.members_max)

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    def play(self, line: str) -> list[str]:
        """Do one step and tell what it brought about."""
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if re.match(r"[a-z_]+=", word))
        names = [word for word in words if "=" not in word]
        steps = {
            "join": self._join,
            "sync": self._sync,
            "heartbeat": self._heartbeat,
            "leave": self._leave,
            "commit": self._commit,
            "outsider": self._outsider,
            "reads": self._reads,
            "after": self._after,
            "hold": self._hold,
            "settle": self._settle,
            "refuse": self._refuse,
            "restart": self._restart,
            "show": self._show,
            "new": self._new,
            "group": self._set,
        }
        return list(steps[verb](names, options)) or ["nothing yet"]

    # --- requests ---------------------------------------------------------------------------------------------------

    def _join(self, names: list[str], options: dict[str, str]) -> Iterator[str]:
        client = self.client(names[0])
        version = int(options.get("version", "9"))
        client.instance_id = _instance(options, client)
        topics = options.get("topics", "t").split(",")
        packed = b"".join(pack(">h", len(name)) + name.encode() for name in topics)
        metadata = pack(">hi", 1, len(topics)) + packed + pack(">i", -1)
        if "metadata" in options:
            metadata = options["metadata"].encode()
        joining = Joining(
            member_id=options.get("member", client.member_id),
            instance_id=client.instance_id,
            client_id=client.name,
            client_host="/127.0.0.1",
            session_timeout_ms=milliseconds(options.get("session", "10s")),
            rebalance_timeout_ms=milliseconds(options.get("patience", "60s")),
            protocol_type=options.get("type", "consumer"),
            protocols=tuple((name, metadata) for name in filter(None, options.get("protocols", "range").split(","))),
            needs_id=version >= 4 and client.instance_id is None,
            can_skip_assignment=version >= 9,
        )
        client.requests += 1
        held = Held(client, client.requests, version)
        yield from self._tell(self.group.join(joining, held, now_ms=self.now_ms, new_id=lambda: str(next(self.ids))))

    def _sync(self, names: list[str], options: dict[str, str]) -> Iterator[str]:
        client = self.client(names[0])
        client.requests += 1
        parts = [
            (self.client(name).member_id, part.encode())
            for name, part in options.items()
            if name not in {"member", "generation", "instance", "protocol", "type"}
        ]
        protocol = None
        if "protocol" in options or "type" in options:
            protocol = (options.get("type", "consumer"), options.get("protocol", "range"))
        yield from self._tell(
            self.group.sync(
                options.get("member", client.member_id),
                _instance(options, client),
                int(options.get("generation", client.generation)),
                protocol,
                parts,
                Held(client, client.requests, 5),
                now_ms=self.now_ms,
            )
        )

    def _heartbeat(self, names: list[str], options: dict[str, str]) -> Iterator[str]:
        for name in names:
            client = self.client(name)
            code = self.group.heartbeat(
                options.get("member", client.member_id),
                client.instance_id,
                int(options.get("generation", client.generation)),
                now_ms=self.now_ms,
            )
            yield f"{name}: {code.name}"

    def _leave(self, names: list[str], options: dict[str, str]) -> Iterator[str]:
        clients = [self.client(name) for name in names]
        leavers: list[tuple[str, str | None]] = [
            (options.get("member", client.member_id), _instance(options, client)) for client in clients
        ]
        if not names:
            leavers = [("", options["instance"])]
        codes, effects = self.group.leave(leavers, now_ms=self.now_ms)
        for name, code in zip(names or [options["instance"]], codes, strict=True):
            yield f"{name}: {code.name}"
        yield from self._tell(effects)

    def _commit(self, names: list[str], options: dict[str, str]) -> Iterator[str]:
        client = self.client(names[0])
        member_id = options.get("member", client.member_id)
        generation = int(options.get("generation", client.generation))
        code = self.group.refuse_commit(member_id, _instance(options, client), generation)
        if code is Code.NONE and member_id in self.group.roster.members:
            self.group.roster.members[member_id].hear(self.now_ms)
        yield f"{client.name}: {code.name}"

    def _outsider(self, _names: list[str], _options: dict[str, str]) -> Iterator[str]:
        yield f"outsider: {self.group.refuse_commit('', None, -1).name}"

    def _reads(self, names: list[str], _options: dict[str, str]) -> Iterator[str]:
        for name in names:
            yield f"{name}: {'read' if self.group.subscribes(name) else 'not read'}"

    # --- time and the log -------------------------------------------------------------------------------------------

    def _after(self, names: list[str], _options: dict[str, str]) -> Iterator[str]:
        end_ms = self.now_ms + milliseconds(names[0])
        while (due_ms := self.group.next_deadline_ms()) is not None and due_ms <= end_ms:
            # Two things that are due at one moment, or one that is due at once again, still take a turn each.
            self.now_ms = max(self.now_ms, due_ms)
            told = list(self._tell(self.group.expire(self.now_ms)))
            for line in told:
                yield f"at {self.now_ms / 1000:g}s {line}"
        self.now_ms = end_ms

    def _hold(self, _names: list[str], _options: dict[str, str]) -> Iterator[str]:
        self.log_holds = True
        yield "held"

    def _settle(self, _names: list[str], _options: dict[str, str]) -> Iterator[str]:
        self.log_holds = False
        while self.appended:
            yield from self._keep(self.appended.pop(0))

    def _refuse(self, _names: list[str], _options: dict[str, str]) -> Iterator[str]:
        generation = self.appended.pop(0)
        yield from self._tell(self.group.refused(generation, Code.COORDINATOR_NOT_AVAILABLE, now_ms=self.now_ms))

    def _restart(self, _names: list[str], options: dict[str, str]) -> Iterator[str]:
        self.members_max = int(options.get("size", self.members_max))
        self.appended.clear()
        assert self.kept is not None, "nothing was kept"
        self.group = Membership.restore(
            self.kept, initial_delay_ms=self.initial_delay_ms, members_max=self.members_max, now_ms=self.now_ms
        )
        yield from self._show([], {})

    def _show(self, _names: list[str], _options: dict[str, str]) -> Iterator[str]:
        group = self.group
        members = [f"{each.member_id}({each.assignment.decode()})" for each in group.roster.members.values()]
        yield (
            f"{group.state.value} generation={group.generation} protocol={group.protocol} "
            f"leader={group.roster.leader} members={' '.join(members) or '-'}"
        )

    def _new(self, names: list[str], _options: dict[str, str]) -> Iterator[str]:
        """Forget all of a client: its process was started again."""
        for name in names:
            old = self.client(name)
            self.clients[name] = Client(name, instance_id=old.instance_id)
            yield f"{name} is new"

    def _set(self, _names: list[str], options: dict[str, str]) -> Iterator[str]:
        self.initial_delay_ms = milliseconds(options.get("delay", "3s"))
        self.members_max = int(options.get("size", "1000"))
        self.__post_init__()
        yield "a new group"

    # --- what comes of it -------------------------------------------------------------------------------------------

    def _tell(self, effects: Effects) -> Iterator[str]:
        for held, reply in effects.answers:
            assert isinstance(held, Held)
            yield self._reply(held, reply)
        if effects.append is not None:
            generation = effects.append
            members = " ".join(row.member_id for row in generation.members) or "-"
            yield f"append generation={generation.generation} members={members}"
            if self.log_holds:
                self.appended.append(generation)
            else:
                yield from self._keep(generation)

    def _keep(self, generation: Generation) -> Iterator[str]:
        self.kept = generation
        yield from self._tell(self.group.settled(generation, now_ms=self.now_ms))

    def _reply(self, held: Held, reply: JoinReply | SyncReply) -> str:
        client = held.client
        older = f" (request {held.number})" if held.number != client.requests else ""
        if isinstance(reply, SyncReply):
            said = f"part={reply.assignment.decode()}" if reply.code is Code.NONE else reply.code.name
            return f"{client.name} sync: {said}{older}"
        if reply.code is Code.MEMBER_ID_REQUIRED:
            client.member_id = reply.member_id
        if reply.code is not Code.NONE:
            return f"{client.name} join: {reply.code.name} id={reply.member_id or '-'}{older}"
        client.member_id, client.generation = reply.member_id, reply.generation
        text = f"{client.name} join: id={reply.member_id} generation={reply.generation} leader={reply.leader}"
        if reply.members:
            text += f" members={' '.join(member_id for member_id, _, _ in reply.members)}"
        if reply.skip_assignment:
            text += " skip_assignment"
        return text + older


def _instance(options: dict[str, str], client: Client) -> str | None:
    """Return the instance that a request speaks of."""
    said = options.get("instance", client.instance_id)
    return None if said == "none" else said


def milliseconds(text: str) -> int:
    """Return the milliseconds of `5s`, `300ms` or `5m`."""
    match = re.fullmatch(r"(-?[0-9.]+)(ms|s|m)", text)
    assert match is not None, f"{text} is no time"
    return int(float(match[1]) * {"ms": 1, "s": 1000, "m": 60_000}[match[2]])


def replay(text: str) -> str:
    """Return a scenario with what really happens behind each step."""
    world = World()
    out = []
    for block in text.strip().split("\n\n"):
        comments = [line for line in block.splitlines() if line.startswith("#")]
        steps = [line for line in block.split(DASHES, 1)[0].splitlines() if line.strip() and not line.startswith("#")]
        told = [line for step in steps for line in world.play(step)]
        out.append("\n".join([*comments, *steps, *([DASHES, *told] if steps else [])]))
    return "\n\n".join(out) + "\n"
