"""One group of a client: what can be done with its offsets, without naming it each time."""

from collections.abc import Iterable
from typing import Protocol

from offsetd.client.position import Committed, Offsets, TopicPartition


class Positions(Protocol):
    """Somewhere offsets of one group are kept: a `Group`, or a member of it."""

    async def commit(self, offsets: Offsets, *, timeout_s: float | None = None) -> None:
        """Return when every offset, or a newer one, is durable."""

    async def fetch(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets; partitions without one are left out."""


class _Client(Protocol):
    async def commit(self, group: str, offsets: Offsets, *, timeout_s: float | None = None) -> None: ...
    async def fetch(
        self, group: str, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]: ...


class Group:
    """The offsets of one group, committed from outside: nobody may be a member of it."""

    def __init__(self, client: _Client, group: str) -> None:
        self._client = client
        self.group = group

    async def commit(self, offsets: Offsets, *, timeout_s: float | None = None) -> None:
        """Return when every offset, or a newer one committed through the same client, is durable."""
        await self._client.commit(self.group, offsets, timeout_s=timeout_s)

    async def fetch(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets; partitions without one are left out."""
        return await self._client.fetch(self.group, partitions, timeout_s=timeout_s)
