"""What expires, and by which clock: Kafka's rules, pure.

A wall clock that jumps must not cost anybody their offsets. So age is measured on a time that starts at the newest time
in the log and moves with the monotonic clock; the wall clock is believed only after it has moved evenly for a day.
"""

from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import NamedTuple

from offsetd.coordinator.membership import Membership, State
from offsetd.coordinator.subscription import CONSUMER
from offsetd.group import ROW_BYTES, Group
from offsetd.table import SlotTable

#: How far wall and monotonic time may drift apart between two looks before it counts as a jump.
JUMP_MS = 60_000
#: How long the wall clock must have moved evenly before it is believed.
TRUST_AFTER_MS = 24 * 3600 * 1000
#: A sweep that would take more than this share of all offsets waits for a second one to say the same.
LARGE_SHARE = 0.1


class ExpiryClock:
    """The time by which offsets grow old."""

    def __init__(self, *, newest_ms: int, wall_ms: int, monotonic_ms: int) -> None:
        self._base_ms = min(newest_ms, wall_ms)
        self._started_ms = monotonic_ms
        self._steady_since_ms = monotonic_ms
        self._last = (wall_ms, monotonic_ms)

    def now_ms(self, *, wall_ms: int, monotonic_ms: int) -> int:
        """Look at both clocks and return the time to measure age with."""
        last_wall_ms, last_monotonic_ms = self._last
        drift_ms = (wall_ms - last_wall_ms) - (monotonic_ms - last_monotonic_ms)
        self._last = (wall_ms, monotonic_ms)
        if abs(drift_ms) > JUMP_MS:
            self._steady_since_ms = monotonic_ms
        if monotonic_ms - self._steady_since_ms >= TRUST_AFTER_MS:
            return wall_ms
        return min(wall_ms, self._base_ms + monotonic_ms - self._started_ms)


class Ageing(NamedTuple):
    """How the offsets of a group grow old."""

    # All from one moment, when the last member left; None: each from its own commit.
    since_ms: int | None = None
    # Tells whether a topic's offsets do not grow old, because members read it.
    keeps: Callable[[str], bool] = lambda _topic: False
    # Whether the group itself goes with its last offset.
    goes: bool = True


def ageing_of(group: Group, membership: Membership | None) -> Ageing | None:
    """Return how a group's offsets grow old, None if they do not: its members are at work, or about to be."""
    if membership is None or membership.state is State.EMPTY:
        if group.generation is None:
            since_ms = None
        elif group.generation[1].members:
            # They are gone, but the log has not taken that yet, so there is no moment to count from.
            return None
        else:
            since_ms = group.generation[0]
        return Ageing(since_ms=since_ms, goes=membership is None or not membership.roster.pending)
    if (
        membership.state is State.STABLE
        and membership.protocol_type == CONSUMER
        and membership.subscription is not None
    ):
        return Ageing(keeps=membership.subscribes, goes=False)
    return None


class Expired(NamedTuple):
    """A group with the packed partitions per topic that have expired, and whether the group itself goes."""

    group_id: str
    topics: tuple[tuple[str, bytes], ...]
    whole: bool


def expired(
    table: SlotTable,
    *,
    now_ms: int,
    retention_ms: Callable[[str], int | None],
    memberships: Mapping[str, Membership],
) -> Iterator[Expired]:
    """Yield each group of a slot with what has expired of it, which mostly is nothing.

    The caller may take its time between two groups: each is looked up when its turn comes, so that one that was made
    anew meanwhile is judged by what it has then.
    """
    for group_id in list(table.groups):
        group = table.groups.get(group_id)
        if group is None:
            continue
        ageing = ageing_of(group, memberships.get(group_id))
        if ageing is None:
            yield Expired(group_id, (), whole=False)
            continue
        topics = tuple(_expired_topics(group, now_ms, retention_ms(group_id), ageing))
        gone = sum(len(partitions) // 4 for _, partitions in topics)
        # A group that only ever committed goes with its last offset by itself.
        yield Expired(group_id, topics, ageing.goes and gone == group.live and group.generation is not None)


def _expired_topics(group: Group, now_ms: int, retention_ms: int | None, ageing: Ageing) -> Iterator[tuple[str, bytes]]:
    since_ms = ageing.since_ms
    for name in group.names():
        if ageing.keeps(name) or _all_young(group, name, now_ms, retention_ms, since_ms):
            continue
        gone = [
            partition
            for partition, offset in group.rows(name)
            if (
                now_ms >= offset.expiry_ms
                if offset.expiry_ms is not None
                else retention_ms is not None
                and now_ms - (offset.time_ms if since_ms is None else since_ms) >= retention_ms
            )
        ]
        if gone:
            yield name, Struct(f">{len(gone)}i").pack(*gone)


def _all_young(group: Group, name: str, now_ms: int, retention_ms: int | None, since_ms: int | None) -> bool:
    """Tell from the times alone that nothing of a topic can have expired: what nearly every look finds."""
    cells = group.topics.get(name)
    if cells is None or group.sparse is not None or (group.expiries is not None and name in group.expiries):
        return False
    if since_ms is not None and retention_ms is not None:
        return now_ms - since_ms < retention_ms
    size = len(cells) // ROW_BYTES
    # An absent row counts as very old here, and sends us to look at each.
    return retention_ms is None or now_ms - min(Struct(f">{size}q").unpack_from(cells, 8 * size)) < retention_ms


def is_large(expiring: int, live: int) -> bool:
    """Tell whether a sweep takes so much that a jumped clock is the likelier reason."""
    return expiring > max(live * LARGE_SHARE, 1)
