"""Checked load: several connections commit and fetch, all they do is recorded, and the record must make sense.

Every commit writes one number that was never written before, to all partitions of its group: so whatever a fetch shows
says which commit it saw, and whether it saw all of it. Some groups have one writer, whose numbers may never go back at
any reader; the others are written by all.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

from protocol.errors import Code
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from tests.crash.history import NEVER, READ, WRITE, Operation, explain
from tests.fakes.wire import RawClient, connect, fetch_request

CLIENTS: Final = 4
SHARED: Final = ("shared-0", "shared-1")
OWNED: Final = tuple(f"owned-{number}" for number in range(CLIENTS))
GROUPS: Final = SHARED + OWNED
PARTITIONS: Final = (("orders", 0), ("orders", 1), ("orders", 2), ("refunds", 7))
BURST_MAX: Final = 4
#: Certainly not kept: a commit answered so may be tried again under another number.
_REFUSED: Final = frozenset({Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE})
_UNKNOWN: Final = frozenset({Code.REQUEST_TIMED_OUT})


class Violated(AssertionError):
    """A promise was broken."""


@dataclass(slots=True)
class _Pending:
    """One request on its way."""

    kind: str
    group: str
    value: int | None
    start: float


@dataclass
class Record:
    """What all clients did since the last quiet moment, and what every group held then."""

    initial: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(GROUPS))
    operations: dict[str, list[Operation]] = field(default_factory=lambda: {group: [] for group in GROUPS})
    acknowledged: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def settle(self, held: dict[str, int | None], *, started: float, ended: float) -> None:
        """Check all that happened, up to a moment when nothing was in flight and every group held this.

        A commit of unknown outcome was kept before the daemon came back, or not at all: it may not appear later.
        """
        for group, operations in self.operations.items():
            known = [each if each.end != NEVER else each._replace(end=started) for each in operations]
            seen = {each.value for each in operations if each.kind == READ} | {held[group]}
            history = [
                settled
                for each, settled in zip(operations, known, strict=True)
                if each.kind == READ or each.end != NEVER or each.value in seen
            ]
            history.append(Operation(started, ended, READ, held[group]))
            reason = explain(history, initial=self.initial[group])
            if reason is not None:
                raise Violated(f"{group}: {reason}; it holds {held[group]} now")
            if group in OWNED and (held[group] or 0) < self.acknowledged.get(group, 0):
                raise Violated(f"{group}: {self.acknowledged[group]} was acknowledged and {held[group]} is there")
        self.initial = dict(held)
        self.operations = {group: [] for group in GROUPS}


class LoadClient:
    """One connection that keeps a few requests in flight until the daemon goes away."""

    def __init__(self, number: int, record: Record, random: Random) -> None:
        self._number = number
        self._record = record
        self._random = random
        # Newest value of each single-writer group that this client wrote or saw: nothing below it may be shown again.
        self._floor: dict[str, int] = {}

    async def run(self, port: int) -> None:
        """Commit and fetch until the connection breaks."""
        try:
            client = await connect(port)
        except OSError:
            return
        try:
            while True:
                await self._burst(client)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            with suppress(OSError):
                await client.close()

    async def _burst(self, client: RawClient) -> None:
        pending = [self._send(client) for _ in range(self._random.randint(1, BURST_MAX))]
        try:
            while pending:
                await self._hear(client, pending[0])
                pending.pop(0)
        finally:
            for each in pending:
                self._unknown(each)

    def _send(self, client: RawClient) -> _Pending:
        if self._random.random() < 0.6:
            group = self._random.choice((*SHARED, OWNED[self._number]))
            value = next(self._record.numbers)
            each = _Pending(WRITE, group, value, time.monotonic())
            client.send(commit_of(group, value), 8)
        else:
            each = _Pending(READ, self._random.choice(GROUPS), None, time.monotonic())
            client.send(fetch_request(each.group, PARTITIONS), 9)
        return each

    async def _hear(self, client: RawClient, each: _Pending) -> None:
        record = self._record
        if each.kind == READ:
            _, fetched = await client.receive(OffsetFetchResponse, 9)
            code, value = shown(fetched.groups[0])
            if code == 0:
                record.operations[each.group].append(Operation(each.start, time.monotonic(), READ, value))
                self._never_back(each.group, value)
            record.counts[f"fetch {code}"] += 1
            return
        _, committed = await client.receive(OffsetCommitResponse, 8)
        codes = {row.error_code for topic in committed.topics for row in topic.partitions}
        if len(codes) != 1:
            raise Violated(f"{each.group}: one commit was answered with several codes: {codes}")
        code = codes.pop()
        record.counts[f"commit {code}"] += 1
        assert each.value is not None
        if code == 0:
            record.operations[each.group].append(Operation(each.start, time.monotonic(), WRITE, each.value))
            if each.group in OWNED:
                record.acknowledged[each.group] = self._floor[each.group] = each.value
        elif code in _UNKNOWN:
            self._unknown(each)
        elif code not in _REFUSED:
            raise Violated(f"{each.group}: a commit was answered with {code}")

    def _unknown(self, each: _Pending) -> None:
        if each.kind == WRITE:
            self._record.counts["commit unknown"] += 1
            self._record.operations[each.group].append(Operation(each.start, NEVER, WRITE, each.value))

    def _never_back(self, group: str, value: int | None) -> None:
        if group not in OWNED:
            return
        floor = self._floor.get(group, 0)
        if (value or 0) < floor:
            raise Violated(f"{group}: a client that knew of {floor} was shown {value}")
        self._floor[group] = value or 0


def commit_of(group: str, value: int) -> OffsetCommitRequest:
    """Return a commit that writes one number to every partition of a group."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for topic, partition in PARTITIONS:
        row = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=value,
            committed_leader_epoch=value % 1000,
            # Not on all: the two ways through the daemon must make the same promises.
            committed_metadata=f"number {value}" if value % 3 == 0 else "",
        )
        topics.setdefault(topic, []).append(row)
    return OffsetCommitRequest(
        group_id=group,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(rows)) for name, rows in topics.items()),
    )


def shown(group: OffsetFetchResponseGroup) -> tuple[int, int | None]:
    """Return the code and the one number that a fetch shows of a group; all of a commit must be there, or nothing."""
    rows = [row for topic in group.topics for row in topic.partitions]
    codes = {row.error_code for row in rows} | {group.error_code}
    if codes == {int(Code.COORDINATOR_LOAD_IN_PROGRESS)}:
        return int(Code.COORDINATOR_LOAD_IN_PROGRESS), None
    if codes != {0}:
        raise Violated(f"{group.group_id}: a fetch was answered with {codes}")
    numbers = {row.committed_offset for row in rows}
    if len(rows) != len(PARTITIONS) or len(numbers) != 1:
        raise Violated(f"{group.group_id}: a fetch shows parts of several commits: {rows}")
    number = numbers.pop()
    if number == -1:
        return 0, None
    metadata = f"number {number}" if number % 3 == 0 else ""
    if {(row.committed_leader_epoch, row.metadata) for row in rows} != {(number % 1000, metadata)}:
        raise Violated(f"{group.group_id}: the parts of {number} do not belong together: {rows}")
    return 0, number


async def held_by_all(port: int) -> dict[str, int | None]:
    """Ask for every group when nothing else is in flight."""
    client = await connect(port)
    try:
        held = {}
        for group in GROUPS:
            client.send(fetch_request(group, PARTITIONS), 9)
            _, fetched = await client.receive(OffsetFetchResponse, 9)
            code, held[group] = shown(fetched.groups[0])
            if code != 0:
                raise Violated(f"{group}: a daemon that says it is ready answers {code}")
        return held
    finally:
        await client.close()
