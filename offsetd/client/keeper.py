"""Keeping positions for an application that reads its data elsewhere: when to commit, by what the application can bear.

    AtMostOnce      commit, then process     a crash loses what was under way, and does nothing twice
    AtLeastOnce     process, then commit     a crash does some of it twice, and loses nothing
    ExactlyOnce     store the offsets with the output, in the application's own transaction, then tell the broker

The first two rest on the broker alone. The third rests on the application's store: the broker is told so that lag
monitors, operators and other tools see where the group is, and what it holds counts at a restart if it is larger.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from offsetd.client.errors import ClientError, MembershipLost
from offsetd.client.group import Positions
from offsetd.client.position import Committed, Offsets, TopicPartition, checked_offsets, checked_partitions
from offsetd.client.resumption import Resumption, resume_committed, resume_stored

logger = logging.getLogger(__name__)


class Keeper(ABC):
    """The positions of one application."""

    def __init__(self, positions: Positions, *, first_offset: int = 0) -> None:
        """Keep positions in a group, as an outsider or as a member.

        Args:
            first_offset: where a partition begins that nothing is known of.
        """
        self._positions = positions
        self._first_offset = first_offset

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def resume(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, Resumption]:
        """Return where to go on with each partition, and why."""
        wanted = checked_partitions(partitions)
        held = await self._positions.fetch(wanted)
        return {
            partition: resume_committed(partition, _offset(held.get(partition)), first_offset=self._first_offset)
            for partition in wanted
        }

    @asynccontextmanager
    async def processing(self, offsets: Offsets) -> AsyncIterator[None]:
        """Run a block that processes records; a block that fails is not taken for processed.

        Args:
            offsets: where to go on once these records are processed, each the offset behind the last of them.
        """
        await self.before(offsets)
        yield
        await self.after(offsets)

    @abstractmethod
    async def before(self, offsets: Offsets) -> None:
        """Do what the discipline does before records are processed."""

    @abstractmethod
    async def after(self, offsets: Offsets) -> None:
        """Do what the discipline does when they are."""

    async def close(self) -> None:
        """Finish what is under way, which is nothing where everything has been waited for."""
        return


class AtMostOnce(Keeper):
    """Commits before records are processed: none is processed twice, those under way in a crash are lost."""

    async def before(self, offsets: Offsets) -> None:
        """Commit. If that fails nothing may be processed, though it may have happened: the records are then lost."""
        await self._positions.commit(offsets)

    async def after(self, offsets: Offsets) -> None:
        """Do nothing."""


class AtLeastOnce(Keeper):
    """Commits when records are processed: none is lost, those under way in a crash are processed again."""

    async def before(self, offsets: Offsets) -> None:
        """Do nothing."""

    async def after(self, offsets: Offsets) -> None:
        """Commit."""
        await self._positions.commit(offsets)


class ExactlyOnce(Keeper):
    """Leaves the truth to the application's own transaction, and tells the broker behind it.

    The application stores the offsets of a block in the same transaction as the block's output. The broker is told in
    the background and never waited for, so a broker that is away holds nothing up; what it was not told is told with
    the next block, at the latest by `close`.
    """

    def __init__(self, positions: Positions, *, first_offset: int = 0) -> None:
        super().__init__(positions, first_offset=first_offset)
        self._untold: dict[TopicPartition, Committed] = {}
        self._telling: asyncio.Task[None] | None = None

    async def resume(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, Resumption]:
        """Return where to go on with each partition, and why: the larger truth wins.

        Args:
            partitions: a mapping, by partition, of the offsets that the application has stored; None where it has none.
        """
        if not isinstance(partitions, Mapping):
            raise TypeError(
                "exactly once needs what the application stored: a mapping of partitions to offsets or None"
            )
        stored: Mapping[tuple[str, int], int | None] = partitions
        wanted = checked_partitions(stored)
        held = await self._positions.fetch(wanted)
        found = {}
        for partition in wanted:
            committed = _offset(held.get(partition))
            found[partition] = resume_stored(partition, stored[partition], committed, first_offset=self._first_offset)
            if stored[partition] is not None and found[partition].offset != committed:
                self._untold[partition] = Committed(found[partition].offset)
        self._tell()
        return found

    async def before(self, offsets: Offsets) -> None:
        """Do nothing."""

    async def after(self, offsets: Offsets) -> None:
        """Tell the broker, behind the application's transaction; nobody waits for it."""
        self._untold |= checked_offsets(offsets)
        self._tell()

    async def close(self) -> None:
        """Tell the broker what it was not told.

        Raises:
            ClientError: it could not be told. The application's store is right nevertheless, and so is the next start.
        """
        if self._telling is not None:
            await self._telling
        if self._untold:
            await self._tell_all()

    def _tell(self) -> None:
        if self._untold and (self._telling is None or self._telling.done()):
            self._telling = asyncio.create_task(self._tell_in_peace())

    async def _tell_in_peace(self) -> None:
        try:
            await self._tell_all()
        except MembershipLost as error:
            # Whoever owns the partitions now tells what becomes of them; an older word would only set them back.
            self._untold.clear()
            logger.warning("the broker was not told of offsets that are stored: %s", error)
        except ClientError as error:
            logger.warning("the broker was not told of offsets that are stored, and will be later: %s", error)

    async def _tell_all(self) -> None:
        while self._untold:
            told = dict(self._untold)
            await self._positions.commit(told)
            for partition, committed in told.items():
                if self._untold.get(partition) == committed:
                    del self._untold[partition]


def _offset(committed: Committed | None) -> int | None:
    return None if committed is None else committed.offset
