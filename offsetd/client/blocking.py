"""The client for programs without a loop: the same methods, each of which returns when it is done.

One object may be used from any number of threads; commits of one group from all of them share requests. It is closed by
`close`, by the end of its `with` block, when nobody refers to it any more, or when the interpreter ends.
"""

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from ssl import SSLContext
from types import TracebackType
from typing import Generic, Self, TypeVar

from offsetd.client.client import Client
from offsetd.client.keeper import Keeper
from offsetd.client.limits import Limits
from offsetd.client.loop_thread import LoopThread
from offsetd.client.position import Committed, Offsets, TopicPartition
from offsetd.client.resumption import Resumption

K = TypeVar("K", bound=Keeper)


class BlockingClient:
    """`Client`, with a loop in a thread of its own."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        client_id: str = "offsetd-client",
        limits: Limits | None = None,
        ssl: SSLContext | None = None,
    ) -> None:
        """Make a client; the arguments are those of `Client`."""
        self._client = Client(bootstrap, client_id=client_id, limits=limits, ssl=ssl)
        self._loop = LoopThread("offsetd-client")
        self._finalizer = weakref.finalize(self, self._loop.stop, self._client.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and end the thread. Calls in other threads end with `Closed`."""
        self._finalizer()

    def commit(self, group: str, offsets: Offsets, *, timeout_s: float | None = None) -> None:
        """Return when every offset, or a newer one committed through this client, is durable; see `Client.commit`."""
        self._loop.run(self._client.commit(group, offsets, timeout_s=timeout_s))

    def fetch(
        self, group: str, partitions: Iterable[tuple[str, int]] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Committed]:
        """Return the committed offsets of a group; see `Client.fetch`."""
        return self._loop.run(self._client.fetch(group, partitions, timeout_s=timeout_s))

    def fetch_groups(
        self, asked: Mapping[str, Iterable[tuple[str, int]] | None], *, timeout_s: float | None = None
    ) -> dict[str, dict[TopicPartition, Committed]]:
        """Return the committed offsets of several groups; see `Client.fetch_groups`."""
        return self._loop.run(self._client.fetch_groups(asked, timeout_s=timeout_s))

    def keep(self, discipline: type[K], group: str, *, first_offset: int = 0) -> "BlockingKeeper[K]":
        """Return a keeper of positions: `AtMostOnce`, `AtLeastOnce` or `ExactlyOnce`."""
        return BlockingKeeper(self._loop, self._client.keep(discipline, group, first_offset=first_offset))


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
