"""The closed loop: many connections, so many requests in flight on each, every reply checked to its last byte."""

import gc
import select
import socket
import time
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from time import perf_counter
from typing import Final, NamedTuple

from offsetd.bench.frames import GroupFrames
from offsetd.bench.verdict import RETRIED_CODES, Verdict, judge_commit, judge_fetch

REPLY_BYTES_MAX: Final = 1024 * 1024
DEPTH_MAX: Final = 256
_RECEIVE_BYTES: Final = 16 * 1024
_EVENTS_MAX: Final = 256
_POLL_SECONDS: Final = 0.1
_CONNECT_SECONDS_MAX: Final = 30.0
_PATIENCE_SECONDS: Final = 0.05

_pack = Struct(">i").pack
_unpack_size = Struct(">i").unpack_from


class ServerLeft(Exception):
    """The server closed a connection, or sent what no request asked for."""


class Flight(NamedTuple):
    """A request on its way."""

    sent: float
    wanted: bytes
    group: GroupFrames
    # The offset that a fetch must show first; None for a commit.
    shown: int | None


@dataclass(slots=True)
class Tally:
    """What came back."""

    requests: int = 0
    # Replies that had other bytes than the wanted ones and were right nevertheless (another order of topics).
    reread: int = 0
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    wrong: Counter[Verdict] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)


class Pace:
    """What all connections of a load share: the offsets that come next, the tally, and when to stop."""

    __slots__ = ("counting", "retried", "stopping", "tally", "value")

    def __init__(self, value: int) -> None:
        self.value = value
        self.tally = Tally()
        self.counting = False
        self.stopping = False
        # Groups whose seeding the server put off.
        self.retried: list[GroupFrames] = []


class Connection:
    """One client: its own groups in turn, so that it knows what each of them must show."""

    __slots__ = (
        "_at",
        "_correlation",
        "_depth",
        "_fetches",
        "_flights",
        "_groups",
        "_left",
        "_pace",
        "_received",
        "_rest",
        "_turn",
        "sock",
    )

    def __init__(self, sock: socket.socket, *, depth: int, turn: int, pace: Pace) -> None:
        self.sock = sock
        self._groups: Sequence[GroupFrames] = ()
        self._left = 0
        self._depth = depth
        self._pace = pace
        self._flights: deque[Flight] = deque()
        self._at = 0
        self._correlation = 0
        # Of a hundred requests so many are fetches; connections begin at different places of the hundred.
        self._fetches = 0
        self._turn = turn % 100
        self._received = b""
        self._rest = b""

    @property
    def in_flight(self) -> int:
        """Return how many requests have no reply yet."""
        return len(self._flights)

    @property
    def unsent(self) -> bool:
        """Return whether the kernel did not take all of the last frame."""
        return bool(self._rest)

    def begin(self, groups: Sequence[GroupFrames], *, fetches: int, requests: int) -> None:
        """Go on with these groups, send at most so many requests for them, and fill the flight."""
        self._groups = groups
        self._at = 0
        self._fetches = fetches
        self._left = requests if groups else 0
        self.issue()

    def issue(self) -> None:
        """Send requests until enough are in flight."""
        pace = self._pace
        flights = self._flights
        while len(flights) < self._depth and self._left > 0 and not pace.stopping and not self._rest:
            self._left -= 1
            at = self._at
            group = self._groups[at]
            self._at = at + 1 if at + 1 < len(self._groups) else 0
            self._correlation += 1
            correlation = _pack(self._correlation)
            turn = self._turn
            self._turn = turn + 1 if turn < 99 else 0
            if turn < self._fetches:
                frame = group.next_fetch(correlation)
                flight = Flight(perf_counter(), group.wanted_fetch_reply(correlation), group, group.value)
            else:
                pace.value += 1
                frame = group.next_commit(correlation, pace.value)
                flight = Flight(perf_counter(), group.wanted_commit_reply(correlation), group, None)
            flights.append(flight)
            try:
                sent = self.sock.send(frame)
            except BlockingIOError:
                sent = 0
            if sent != len(frame):
                self._rest = bytes(frame[sent:])

    def send_rest(self) -> None:
        """Send what the kernel did not take."""
        sent = self.sock.send(self._rest)
        self._rest = self._rest[sent:]

    def receive(self) -> None:
        """Take what has come, check it, and send the next requests."""
        try:
            data = self.sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        now = perf_counter()
        flights = self._flights
        # Almost always exactly one whole reply, and the one that was wanted.
        if flights and data == flights[0].wanted and not self._received:
            flight = flights.popleft()
            pace = self._pace
            if pace.counting:
                tally = pace.tally
                tally.requests += 1
                tally.seconds.append(now - flight.sent)
        else:
            self._take(data, now)
        self.issue()

    def _take(self, data: bytes, now: float) -> None:
        if not data:
            raise ServerLeft("the server closed a connection")
        received = self._received + data
        while len(received) >= 4:
            (size,) = _unpack_size(received)
            if not 4 <= size <= REPLY_BYTES_MAX:
                raise ServerLeft(f"a reply claims {size} bytes")
            if len(received) < size + 4:
                break
            if not self._flights:
                raise ServerLeft("a reply came that nobody asked for")
            self._check(received[: size + 4], now)
            received = received[size + 4 :]
        self._received = received

    def _check(self, frame: bytes, now: float) -> None:
        flight = self._flights.popleft()
        pace = self._pace
        tally = pace.tally
        if frame != flight.wanted:
            correlation = flight.wanted[4:8]
            if flight.shown is None:
                verdict, code = judge_commit(frame, correlation, flight.group)
            else:
                verdict, code = judge_fetch(frame, correlation, flight.group, flight.shown)
            if verdict is Verdict.RIGHT:
                tally.reread += 1
                _learn(frame, flight)
            elif code in RETRIED_CODES and not pace.counting and flight.shown is None:
                pace.retried.append(flight.group)
                return
            else:
                tally.wrong[verdict] += 1
                if code:
                    tally.codes[code] += 1
        if pace.counting:
            tally.requests += 1
            tally.seconds.append(now - flight.sent)


def _learn(frame: bytes, flight: Flight) -> None:
    """Want this server's own bytes next time: they were read and found right."""
    if flight.shown is None:
        flight.group.commit_head, flight.group.commit_tail = frame[:4], frame[8:]


class Load:
    """All connections, and the phases they go through together."""

    def __init__(
        self, address: tuple[str, int], groups: list[GroupFrames], *, connections: int, depth: int, value: int
    ) -> None:
        """Connect. Each group belongs to one connection."""
        self._pace = Pace(value)
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._groups: list[list[GroupFrames]] = [groups[number::connections] for number in range(connections)]
        for number in range(connections):
            sock = socket.create_connection(address, timeout=_CONNECT_SECONDS_MAX)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(0)
            self._connections[sock.fileno()] = Connection(sock, depth=depth, turn=number * 37, pace=self._pace)
            self._epoll.register(sock.fileno(), select.EPOLLIN)
        # Nothing here makes cycles, and a collection in the middle would look like a slow server.
        gc.freeze()
        gc.disable()

    @property
    def tally(self) -> Tally:
        """Return what came back so far."""
        return self._pace.tally

    def seed(self, seconds_max: float) -> bool:
        """Commit every group once, again where the server asks for patience; return whether all were taken."""
        until = perf_counter() + seconds_max
        work = self._groups
        while True:
            for connection, groups in zip(self._connections.values(), work, strict=True):
                connection.begin(groups, fetches=0, requests=len(groups))
            if not self._run(until, until_idle=True) or self.tally.wrong:
                return False
            again = {id(group) for group in self._pace.retried}
            if not again:
                return True
            self._pace.retried.clear()
            time.sleep(_PATIENCE_SECONDS)
            work = [[group for group in groups if id(group) in again] for groups in self._groups]

    def begin(self, *, fetches: int, requests_max: int) -> None:
        """Start the work: of a hundred requests so many are fetches."""
        share = -(-requests_max // len(self._connections))
        for connection, groups in zip(self._connections.values(), self._groups, strict=True):
            connection.begin(groups, fetches=fetches, requests=share)

    def run(self, seconds: float, *, counting: bool) -> float:
        """Keep the work going for so long, or until all of it is done or `stop` is called; return how long it was."""
        self._pace.counting = counting
        began = perf_counter()
        self._run(began + seconds, until_idle=False)
        self._pace.counting = False
        return perf_counter() - began

    def stop(self) -> None:
        """Send nothing more: the window ends when what is in flight has come back."""
        self._pace.stopping = True

    def drain(self, seconds_max: float) -> bool:
        """Send nothing more, and wait for what is in flight; return whether all of it came back."""
        self.stop()
        return self._run(perf_counter() + seconds_max, until_idle=True)

    def in_flight(self) -> int:
        """Return how many requests have no reply."""
        return sum(connection.in_flight for connection in self._connections.values())

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.sock.close()
        self._epoll.close()
        gc.enable()
        gc.unfreeze()

    def _run(self, until: float, *, until_idle: bool) -> bool:
        """Turn the loop; return whether it ended with nothing in flight."""
        connections = self._connections
        poll = self._epoll.poll
        # Looking at every connection costs more than a reply, so it is done once in so many turns or when all is quiet.
        turns = 0
        while perf_counter() < until:
            events = poll(_POLL_SECONDS, _EVENTS_MAX)
            for number, event in events:
                connection = connections[number]
                if event & select.EPOLLOUT:
                    connection.send_rest()
                    if not connection.unsent:
                        self._epoll.modify(number, select.EPOLLIN)
                        connection.issue()
                if event & ~select.EPOLLOUT:
                    connection.receive()
                    if connection.unsent:
                        self._epoll.modify(number, select.EPOLLIN | select.EPOLLOUT)
            turns += 1
            if until_idle or not events or not turns % 1000:
                waiting = False
                for number, connection in connections.items():
                    waiting = waiting or connection.in_flight > 0
                    if connection.unsent:
                        self._epoll.modify(number, select.EPOLLIN | select.EPOLLOUT)
                if not waiting:
                    return True
        return False
