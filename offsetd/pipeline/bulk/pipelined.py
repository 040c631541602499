"""Commits parcels with many requests in flight: one connection per coordinator, replies in the order of requests.

It needs `offsetd.client` for the connection and for who coordinates which group, and nothing else: it runs in Spark's
workers. A request whose outcome is unknown is made again: the same offsets twice are the same as once.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Final, Self

from offsetd import __version__
from offsetd.client.address import Address, parse_bootstrap
from offsetd.client.backoff import Backoff
from offsetd.client.connection import Connection, open_connection
from offsetd.client.connections import Connections
from offsetd.client.discovery import Discovery
from offsetd.client.errors import ClientError
from offsetd.client.limits import Limits
from offsetd.client.transient import Busy, ConnectionFailed, Transient, is_transient, moved
from offsetd.pipeline.bulk.outcome import RefusedRow, refused_row, unreached_row
from offsetd.pipeline.bulk.parcel import Parcel
from offsetd.pipeline.bulk.row import OffsetRow
from protocol.errors import Code
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

WINDOW: Final = 64
ATTEMPTS_MAX: Final = 10
_CLIENT_ID: Final = "offsetd-import"


@dataclass(slots=True, kw_only=True)
class Tally:
    """What has become of the rows so far; a row that stands for several of the input counts as often."""

    committed: int = 0
    refused: int = 0
    requests: int = 0
    retries: int = 0


class PipelinedCommitter:
    """Commits parcels over a loop of its own, for a program that has none."""

    def __init__(self, bootstrap: str, *, window: int = WINDOW, limits: Limits | None = None) -> None:
        self.tally = Tally()
        self._limits = limits or Limits()
        self._random = Random()  # noqa: S311  # it spreads load and hides nothing
        self._connections = Connections(self._open)
        self._discovery = Discovery(parse_bootstrap(bootstrap), self._connections, random=self._random)
        self._loop = asyncio.new_event_loop()
        self._window = window
        self._refused: list[RefusedRow] = []
        self._unreachable: ConnectionFailed | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.run_until_complete(self._connections.close())
        self._loop.close()

    def commit(self, parcels: Iterable[Parcel]) -> list[RefusedRow]:
        """Commit parcels, as many at a time as the window allows; return the rows that were refused."""
        self._loop.run_until_complete(self._commit_all(list(parcels)))
        refused, self._refused = self._refused, []
        return refused

    async def _open(self, address: Address) -> Connection:
        return await open_connection(
            address, client_id=_CLIENT_ID, software_version=__version__, limits=self._limits, ssl=None
        )

    async def _commit_all(self, parcels: list[Parcel]) -> None:
        # Hundreds of groups in one request; what fails here is asked again for each parcel.
        with suppress(Transient, ClientError):
            await self._discovery.coordinators(parcel.group for parcel in parcels)
        waiting = iter(parcels)

        async def work() -> None:
            # All share one iterator: each takes the next parcel when its last one is done.
            for parcel in waiting:
                await self._commit_one(parcel)

        await asyncio.gather(*(work() for _ in range(min(self._window, len(parcels)))))

    async def _commit_one(self, parcel: Parcel) -> None:
        backoff = Backoff(first_s=self._limits.backoff_first_s, max_s=self._limits.backoff_max_s, random=self._random)
        rows = list(zip(parcel.rows, parcel.times, strict=True))
        last: Exception | None = None
        for attempt in range(ATTEMPTS_MAX):
            if self._unreachable is not None:
                last = self._unreachable
                break
            if attempt:
                self.tally.retries += 1
                await asyncio.sleep(backoff.next_s())
            try:
                rows = await self._attempt(parcel.group, rows)
            except Transient as error:
                last = error
            except ClientError as error:
                last = error
                break
            if not rows:
                return
        if isinstance(last, ConnectionFailed):
            # What answers nobody for this long is not asked again for each of a million rows.
            self._unreachable = last
        self._refuse([(_given_up(row, last), times) for row, times in rows])

    async def _attempt(self, group: str, rows: list[tuple[OffsetRow, int]]) -> list[tuple[OffsetRow, int]]:
        """Send one request; return the rows that are worth another."""
        address = await self._discovery.coordinator(group)
        self.tally.requests += 1
        try:
            connection = await self._connections.get(address)
            reply = await connection.call(commit_request(group, [row for row, _ in rows]), OffsetCommitResponse)
        except Transient:
            self._discovery.forget(group, address)
            raise
        codes = {
            (topic.name, partition.partition_index): partition.error_code
            for topic in reply.topics
            for partition in topic.partitions
        }
        again, refused = [], []
        for row, times in rows:
            code = codes.get((row.topic, row.partition), Code.UNKNOWN_SERVER_ERROR)
            if code == Code.NONE:
                self.tally.committed += times
            elif is_transient(code):
                again.append((row, times))
                if moved(code):
                    self._discovery.forget(group, address)
            else:
                refused.append((refused_row(row, code), times))
        self._refuse(refused)
        if again and len(again) == len(rows) and len(set(codes.values())) == 1:
            raise Busy(address=address, code=next(iter(codes.values())))
        return again

    def _refuse(self, refused: list[tuple[RefusedRow, int]]) -> None:
        for row, times in refused:
            self.tally.refused += times
            # Each row of the input is in the table of those refused, also where two were the same.
            self._refused.extend([row] * times)


def _given_up(row: OffsetRow, last: Exception | None) -> RefusedRow:
    code = getattr(last, "code", None)
    return unreached_row(row, f"no answer: {last}") if code is None else refused_row(row, code)


def commit_request(group: str, rows: list[OffsetRow]) -> OffsetCommitRequest:
    """Return the request of a parcel, whose rows stand in the order of their topics."""
    topics: list[tuple[str, list[OffsetCommitRequestPartition]]] = []
    for row in rows:
        if not topics or topics[-1][0] != row.topic:
            topics.append((row.topic, []))
        topics[-1][1].append(
            OffsetCommitRequestPartition(
                partition_index=row.partition,
                committed_offset=row.offset,
                committed_leader_epoch=-1 if row.leader_epoch is None else row.leader_epoch,
                committed_metadata=row.metadata or "",
            )
        )
    return OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(parts)) for name, parts in topics),
    )
