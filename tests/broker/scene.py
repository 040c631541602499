"""A broker between a fake log, a fake clock and clients without sockets: what happens is what the test says."""

from collections.abc import Sequence
from itertools import count
from typing import Any, cast

from offsetd.broker import Broker
from offsetd.broker.turns import Turns
from offsetd.coordinator.catalog import Identity
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.shape import Shape
from offsetd.coordinator.topics import KnownTopic
from offsetd.observed import Observed
from offsetd.record import Reason, Who, decode_entries, encode_group_tombstone
from offsetd.table import apply
from protocol.api import APIS, Request, decode_response, encode_request
from protocol.offset_commit import OffsetCommitResponse
from protocol.offset_fetch import OffsetFetchResponse
from tests.fakes.clock import FakeClock
from tests.fakes.log import FakeLog
from tests.fakes.wire import Offsets, commit_codes, commit_request, fetch_request, fetched_offsets

IDENTITY = Identity(cluster_id="abcdefghijklmnopqrstug", broker_id=1, host="127.0.0.1", port=9092)
COMMIT_VERSIONS = range(10)
FETCH_VERSIONS = range(10)
_KEY_OF = {api.request: api.key for api in APIS.values()}


class FakeClient:
    """A connection as the broker sees it; keeps every reply it is sent."""

    def __init__(self, broker: Broker, clock: FakeClock, host: str) -> None:
        self._broker = broker
        self._clock = clock
        self._asked: list[tuple[int, int]] = []
        self.host = host
        self.turns = Turns(self._sent, lambda: None, self._failed)
        self.shapes: dict[bytes, Shape] = broker.shapes.of(host)
        self.received_at = clock.monotonic()
        self.replies: list[bytes] = []
        self.faults: list[Exception] = []

    def _sent(self, reply: bytes) -> None:
        self.replies.append(reply)

    def _failed(self, fault: Exception) -> None:
        self.faults.append(fault)
        self.turns.queue.clear()

    def send_frame(self, frame: bytes) -> None:
        """Send a request without its size, as it comes out of a connection's buffer."""
        self.received_at = self._clock.monotonic()
        self._broker.receive(frame, self)

    def send(self, request: Request, version: int, *, client_id: str | None = "client") -> int:
        """Send a request; return its correlation id, which counts from 0."""
        key = _KEY_OF[type(request)]
        number = len(self._asked)
        self._asked.append((key, version))
        self.send_frame(encode_request(key, version, number, client_id, request)[4:])
        return number

    def commit(self, group: str, offsets: Offsets, version: int = 9, **more: Any) -> int:
        """Send a commit."""
        return self.send(commit_request(group, offsets, **more), version)

    def fetch(self, group: str, partitions: Sequence[tuple[str, int]] | None, version: int = 9) -> int:
        """Send a fetch."""
        return self.send(fetch_request(group, partitions, version), version)

    def fetch_all(self, group: str, client_id: str) -> int:
        """Ask for all that a group has, under another name than the usual one."""
        return self.send(fetch_request(group, None), 9, client_id=client_id)

    def answers(self) -> list[tuple[int, Any]]:
        """Return every reply so far, decoded, with its correlation id."""
        found = []
        for reply in self.replies:
            number = int.from_bytes(reply[4:8], "big")
            key, version = self._asked[number]
            assert int.from_bytes(reply[:4], "big") == len(reply) - 4
            found.append(decode_response(key, version, reply[4:]))
        return found

    def answer(self, number: int) -> Any:
        """Return the reply to one request; it must have been sent once."""
        (found,) = [response for correlation_id, response in self.answers() if correlation_id == number]
        return found

    def order(self) -> list[int]:
        """Return the correlation ids of the replies, in the order in which they left."""
        return [number for number, _ in self.answers()]

    def codes(self, number: int) -> dict[tuple[str, int], int]:
        """Return the code of each partition of an answered commit."""
        return commit_codes(cast("OffsetCommitResponse", self.answer(number)))

    def offsets(self, number: int) -> dict[tuple[str, int], int]:
        """Return the offsets of an answered fetch without errors."""
        return fetched_offsets(cast("OffsetFetchResponse", self.answer(number)))


class Scene:
    """A broker with all that it touches."""

    def __init__(
        self,
        contents: Sequence[bytes] = (),
        *,
        limits: Limits | None = None,
        known: dict[str, KnownTopic] | None = None,
        broken_slot: int | None = None,
        wall_ms: int | None = None,
        loaded: bool = True,
    ) -> None:
        self.clock = FakeClock() if wall_ms is None else FakeClock(wall_ms)
        self.log = FakeLog(contents, broken_slot=broken_slot)
        self.observed = Observed()
        self.broker = Broker(
            identity=IDENTITY,
            limits=limits or Limits(slots=4),
            log=self.log,
            observed=self.observed,
            clock=self.clock,
            later=self.clock.later,
            new_id=map(str, count(1)).__next__,
            known_topics=known,
        )
        self.log.connect(self.broker.commits.on_settled, self.broker.commits.on_refused)
        if loaded:
            self.load()

    def load(self) -> None:
        """Load every slot."""
        for _ in self.broker.load():
            pass

    def run(self) -> int:
        """Let the loop turn until nothing is due; return how often it did."""
        turns = 0
        while self.clock.turn():
            turns += 1
        return turns

    def client(self, host: str = "/10.0.0.1") -> FakeClient:
        """Connect."""
        return FakeClient(self.broker, self.clock, host)

    def commit(self, group: str, offsets: Offsets, version: int = 9, **more: Any) -> None:
        """Commit and settle, from a connection of its own."""
        client = self.client()
        client.commit(group, offsets, version, **more)
        self.log.settle()
        assert set(client.codes(0).values()) == {0}

    def write(self, entry: bytes) -> None:
        """Put an entry of any kind through the log, as an operator's command would."""
        (decoded,) = decode_entries(b"\x91" + entry)
        self.log.written.append(entry)
        apply(self.broker.slots.tables[decoded[2]], decoded)

    def drop(self, group: str) -> None:
        """Delete a group."""
        slot = self.broker.slots.of(group)
        self.write(encode_group_tombstone(slot, group, self.clock.wall_ms(), Who("", "", ""), Reason.DELETED))

    def shown(self, group: str, partitions: Sequence[tuple[str, int]] | None = None) -> dict[tuple[str, int], int]:
        """Return what a fetch shows now, on a connection of its own."""
        client = self.client()
        number = client.fetch(group, partitions)
        self.run()
        return client.offsets(number)

    def sweep(self) -> int:
        """Run one sweep of expiry to its end, and settle it; return how many entries it wrote."""
        for _ in self.expiries.sweep():
            pass
        return self.log.settle()

    def watch_expiry(self) -> None:
        """Start the clock of expiry, as the daemon does when all is loaded."""
        self.expiries = self.broker.expiries()
