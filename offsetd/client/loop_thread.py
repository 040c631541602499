"""A loop in a thread of its own, for callers that have none: they hand in coroutines from any thread and wait."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from offsetd.client.errors import Closed

T = TypeVar("T")

_STOP_SECONDS_MAX: Final = 30.0


class LoopThread:
    """A running loop. Nothing here refers to whoever uses it, so that it can end when they are gone."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stopped = False
        # A daemon thread: the interpreter would otherwise wait for it before it says that it is about to end.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return what it returns. A caller that is interrupted takes it along.

        Raises:
            Closed: `stop` came first.
        """
        try:
            future = self.submit(coroutine)
        except BaseException:
            # Or its author would be told that nobody ever awaited it.
            coroutine.close()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Closed from None
        except BaseException:
            future.cancel()
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Run a coroutine on the loop, and wait for nothing; raises as `run` does."""
        if os.getpid() != self._pid:
            raise RuntimeError("this client was made by the process that forked this one: make a new one here")
        if self.is_here:
            raise RuntimeError("a blocking call was made on the client's own loop, which it would wait for")
        with self._lock:
            if self._stopped:
                raise Closed
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @property
    def is_here(self) -> bool:
        """Whether the caller runs on this loop."""
        return threading.current_thread() is self._thread

    def stop(self, clean_up: Callable[[], Awaitable[None]]) -> None:
        """Run a last coroutine, end what is left, and the thread. Only the first call does anything."""
        with self._lock:
            # In a process that was forked the thread is not there to be stopped.
            if self._stopped or os.getpid() != self._pid:
                return
            self._stopped = True
        last = asyncio.run_coroutine_threadsafe(self._end(clean_up), self._loop)
        last.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._loop.stop))
        if not self.is_here:
            last.result(_STOP_SECONDS_MAX)
            self._thread.join(_STOP_SECONDS_MAX)

    async def _end(self, clean_up: Callable[[], Awaitable[None]]) -> None:
        try:
            await clean_up()
        finally:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()
