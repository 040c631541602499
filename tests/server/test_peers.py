"""The rules for all connections together, on peers without sockets."""

import pytest
from structlog.testing import capture_logs

from offsetd.observed import Observed
from offsetd.server.limits import ServerLimits
from offsetd.server.peers import Peers
from tests.fakes.clock import FakeClock

KIBIBYTE = 1024


class FakePeer:
    """A connection that only remembers what it was told."""

    def __init__(self, peers: Peers, clock: FakeClock, *, host: str = "/10.0.0.1", stuck: int = 0) -> None:
        self._peers = peers
        self.host = host
        self.address = f"{host[1:]}:1"
        self.received_at = clock.monotonic()
        self.frame_since = 0.0
        self.unsent_since = 0.0
        self.stuck = stuck
        self.waiting = 0
        self.ended: str | None = None
        self.held = False
        self.paused = False

    def is_waiting(self) -> bool:
        return self.waiting > 0

    def hurry(self) -> None:
        """Nothing of it waits for time to pass."""

    def is_idle(self) -> bool:
        return not self.waiting and not self.stuck

    def held_bytes(self) -> int:
        return self.stuck + self.waiting

    def stuck_bytes(self) -> int:
        return self.stuck

    def close(self, reason: str, detail: str) -> None:
        self._peers.closing(self, reason, detail)
        self.ended = reason
        self._peers.gone(self, "peer")

    def pause(self) -> None:
        self.paused = True

    def hold(self) -> None:
        self.held = True

    def resume(self) -> None:
        self.held = self._peers.held


class World:
    """Peers with a clock in the test's hand."""

    def __init__(self, **limits: int) -> None:
        self.clock = FakeClock()
        self.observed = Observed()
        self.pending = 0
        self.peers = Peers(
            ServerLimits(**limits), self.observed, pending_bytes=lambda: self.pending, now=self.clock.monotonic
        )

    def peer(self, *, host: str = "/10.0.0.1", stuck: int = 0) -> FakePeer:
        """Connect."""
        peer = FakePeer(self.peers, self.clock, host=host, stuck=stuck)
        assert self.peers.admit(peer)
        return peer

    def refused(self, host: str = "/10.0.0.1") -> bool:
        """Tell whether a connection from there is refused; one that is not, leaves again."""
        peer = FakePeer(self.peers, self.clock, host=host)
        if not self.peers.admit(peer):
            return True
        self.peers.gone(peer, "peer")
        return False

    def tick(self, ms: int = 1000) -> None:
        """Let a second pass."""
        self.clock.advance(ms)
        self.peers.tick()


def test_each_address_has_its_own_count() -> None:
    world = World(connections_per_host_max=2)
    first = [world.peer(host="/10.0.0.1") for _ in range(2)]
    world.peer(host="/10.0.0.2")

    assert world.refused("/10.0.0.1")
    assert not world.refused("/10.0.0.2")
    world.peers.gone(first[0], "peer")
    assert not world.refused("/10.0.0.1")


def test_a_peer_that_was_never_let_in_takes_nobody_along_when_it_goes() -> None:
    world = World(connections_max=1)
    world.peer()
    stranger = FakePeer(world.peers, world.clock)

    assert not world.peers.admit(stranger)
    world.peers.gone(stranger, "peer")
    assert len(world.peers) == 1
    assert world.observed.connections_open == 1
    assert world.observed.connections_closed == {}


def test_the_rate_of_new_connections_is_a_bucket_that_fills_by_time_and_not_above_one_second() -> None:
    world = World(connections_per_second_max=10)
    with capture_logs():
        at_once = [world.refused() for _ in range(12)]
        world.clock.advance(250)
        after_a_quarter = [world.refused() for _ in range(4)]
        world.clock.advance(3_600_000)
        after_an_hour = [world.refused() for _ in range(12)]

    assert at_once == [False] * 10 + [True] * 2
    assert after_a_quarter == [False] * 2 + [True] * 2
    assert after_an_hour == at_once


def test_nobody_is_ended_while_memory_is_below_the_budget() -> None:
    world = World(memory_bytes_max=1000 * KIBIBYTE)
    peers = [world.peer(stuck=200 * KIBIBYTE) for _ in range(5)]
    world.tick()
    world.tick()

    assert [peer.ended for peer in peers] == [None] * 5
    assert not world.peers.held
    assert world.observed.in_flight_bytes == 1000 * KIBIBYTE


def test_the_largest_are_ended_first_and_only_until_there_is_some_room() -> None:
    world = World(memory_bytes_max=1000 * KIBIBYTE)
    sizes = [100, 400, 150, 300, 200]
    peers = [world.peer(stuck=size * KIBIBYTE) for size in sizes]
    with capture_logs():
        world.tick()
        held = [peer.held for peer in peers]
        world.tick()
        ended = [peer.ended for peer in peers]
        world.tick()

    assert held == [True] * 5
    assert ended == [None, "memory", None, None, None], "750 is three quarters of the budget"
    assert not world.peers.held
    assert not any(peer.held for peer in peers if peer.ended is None)


def test_as_long_as_memory_comes_free_by_itself_nobody_is_ended() -> None:
    world = World(memory_bytes_max=1000 * KIBIBYTE)
    peers = [world.peer(stuck=600 * KIBIBYTE) for _ in range(2)]
    for _ in range(100):
        world.tick()
        peers[0].stuck -= KIBIBYTE

    assert [peer.ended for peer in peers] == [None, None]
    assert world.peers.held


def test_small_holders_are_not_ended_for_what_the_log_holds() -> None:
    world = World(memory_bytes_max=1000 * KIBIBYTE)
    peers = [world.peer(stuck=63 * KIBIBYTE) for _ in range(3)]
    world.pending = 2000 * KIBIBYTE
    for _ in range(5):
        world.tick()
    held = world.peers.held
    world.pending = 0
    world.tick()

    assert held
    assert [peer.ended for peer in peers] == [None] * 3
    assert not world.peers.held


def test_memory_that_is_taken_counts_at_once() -> None:
    world = World(memory_bytes_max=1000)
    peer = world.peer()
    peer.stuck = 1000
    world.peers.took(1000)
    before = peer.held
    peer.stuck += 1
    world.peers.took(1)

    assert not before
    assert peer.held
    assert world.peers.held


def test_memory_that_came_free_again_does_not_add_up_to_too_much() -> None:
    world = World(memory_bytes_max=1000)
    peer = world.peer()
    for _ in range(50):
        peer.stuck = 600
        world.peers.took(600)
        peer.stuck = 0

    assert not world.peers.held
    assert world.observed.in_flight_bytes <= 1000


def test_requests_stay_untaken_while_stopping_whatever_becomes_of_memory() -> None:
    world = World(memory_bytes_max=1000)
    peer = world.peer(stuck=2000)
    world.tick()
    world.peers.stop_reading()
    peer.stuck = 0
    world.tick()

    assert peer.paused
    assert not world.peers.held
    assert not world.peers.reading


@pytest.mark.parametrize(
    ("attribute", "limit", "reason"),
    [
        ("frame_since", "frame_read_ms_max", "frame_timeout"),
        ("unsent_since", "reply_write_ms_max", "write_timeout"),
        ("received_at", "idle_ms_max", "idle"),
    ],
)
def test_a_deadline_has_passed_only_after_its_last_millisecond(attribute: str, limit: str, reason: str) -> None:
    world = World(**{limit: 5000})
    peer = world.peer()
    setattr(peer, attribute, world.clock.monotonic())
    with capture_logs() as lines:
        world.tick(5000)
        at_the_limit = peer.ended
        world.tick(1)

    assert at_the_limit is None
    assert peer.ended == reason
    assert world.observed.connections_closed == {reason: 1}
    assert [(line["event"], line["reason"]) for line in lines] == [("connection_closed", reason)]


def test_what_many_peers_cause_is_a_few_lines_and_a_count() -> None:
    world = World(connections_max=0)
    with capture_logs() as lines:
        for _ in range(1000):
            assert world.refused()
        during = len(lines)
        world.tick(10_000)

    assert during == 5
    assert lines[-1]["event"] == "lines_suppressed"
    assert lines[-1]["suppressed"] == 995
    assert world.observed.connections_refused == {"max.connections.total": 1000}
