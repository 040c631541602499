"""Rows put together to requests: one group each, no larger than a broker takes; pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from offsetd.pipeline.bulk.row import OffsetRow

#: A broker takes 1 MiB of records per request. Kafka's record of an offset repeats group and topic; this is well below.
PARCEL_BYTES_MAX: Final = 512 * 1024
#: Of a record, beside its texts: key and value headers, partition, offset, epoch, times, batch overhead.
_ROW_BYTES: Final = 80


@dataclass(slots=True, kw_only=True)
class Parcel:
    """Offsets of one group that travel in one request, and how many rows of the input each stands for."""

    group: str
    rows: list[OffsetRow] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    attempts: int = 0


@dataclass(slots=True, kw_only=True)
class Conflict:
    """Rows that name one partition of a group with different offsets: which one is meant cannot be told."""

    rows: list[OffsetRow]


def row_bytes(row: OffsetRow) -> int:
    """Return how large a row's record is at most."""
    # A character has four bytes at most, and those of most names one.
    return _ROW_BYTES + sum(len(text.encode()) for text in (row.group, row.topic, row.metadata or ""))


class Packer:
    """Takes rows in the order of group, topic and partition, and gives parcels."""

    def __init__(self, *, parcel_bytes_max: int = PARCEL_BYTES_MAX) -> None:
        self._limit_bytes = parcel_bytes_max
        self._parcel: Parcel | None = None
        self._size_bytes = 0
        self._run: list[OffsetRow] = []

    def feed(self, row: OffsetRow) -> Iterator[Parcel | Conflict]:
        """Take the next row; yield what is complete."""
        if self._run and self._run[0][:3] != row[:3]:
            yield from self._end_run()
        self._run.append(row)

    def finish(self) -> Iterator[Parcel | Conflict]:
        """Yield what is left."""
        if self._run:
            yield from self._end_run()
        if self._parcel is not None:
            yield self._parcel
            self._parcel = None

    def _end_run(self) -> Iterator[Parcel | Conflict]:
        rows, self._run = self._run, []
        row = rows[0]
        if len(rows) > 1 and any(other != row for other in rows):
            yield Conflict(rows=rows)
            return
        size_bytes = row_bytes(row)
        parcel = self._parcel
        if parcel is None or parcel.group != row.group or self._size_bytes + size_bytes > self._limit_bytes:
            if parcel is not None:
                yield parcel
            parcel = self._parcel = Parcel(group=row.group)
            self._size_bytes = 0
        parcel.rows.append(row)
        parcel.times.append(len(rows))
        self._size_bytes += size_bytes
