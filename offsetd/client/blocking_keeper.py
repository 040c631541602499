"""A keeper of positions for programs without a loop."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Generic, Self, TypeVar

from offsetd.client.keeper import Keeper
from offsetd.client.loop_thread import LoopThread
from offsetd.client.position import Offsets, TopicPartition
from offsetd.client.resumption import Resumption

K = TypeVar("K", bound=Keeper)


class BlockingKeeper(Generic[K]):
    """A `Keeper` for programs without a loop."""

    def __init__(self, loop: LoopThread, keeper: K) -> None:
        self._loop = loop
        self._keeper = keeper

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def resume(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, Resumption]:
        """Return where to go on with each partition, and why; see the discipline's own `resume`."""
        return self._loop.run(self._keeper.resume(partitions))

    @contextmanager
    def processing(self, offsets: Offsets) -> Iterator[None]:
        """Run a block that processes records; see `Keeper.processing`."""
        self._loop.run(self._keeper.before(offsets))
        yield
        self._loop.run(self._keeper.after(offsets))

    def close(self) -> None:
        """Finish what is under way; see the discipline's own `close`."""
        self._loop.run(self._keeper.close())
