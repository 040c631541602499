"""Commits the positions of queries, in a thread of its own: whatever becomes of it, no query waits or fails."""

import logging
from dataclasses import dataclass
from typing import Final

from offsetd.client import BlockingClient, Limits, Unavailable
from offsetd.pipeline.jobs.mailbox import Mailbox
from offsetd.pipeline.jobs.move import Move, decide_move
from offsetd.pipeline.jobs.position import QueryPosition

#: Of the Spark driver, not of the daemon: programs set it up with `logging`, under this module's name.
_driver_log: Final = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Counts:
    """What has become of positions so far."""

    heard: int = 0
    """Positions that events and checkpoints have brought."""
    committed: int = 0
    """Commits that the broker has acknowledged; of positions that come quickly, only the newest is committed."""
    failed: int = 0
    """Attempts that failed; what failed for want of a broker is tried again."""
    partitions_held: int = 0
    """Partitions that were not moved back, counted with every position."""
    last_error: str | None = None
    """What failed last; None again when a commit succeeds."""


class PositionCommitter:
    """One thread, one client, and the newest position of each group."""

    def __init__(self, bootstrap: str, *, allow_rewind: bool, commit_timeout_s: float, retry_pause_s: float) -> None:
        self.counts = Counts()
        self._mailbox = Mailbox()
        self._client = BlockingClient(
            bootstrap, client_id="offsetd-spark", limits=Limits(total_timeout_s=commit_timeout_s)
        )
        self._allow_rewind = allow_rewind
        self._retry_pause_s = retry_pause_s
        self._held: set[str] = set()
        # Imported here: pyspark is not there without the extra. Its own kind of thread closes, when it ends, the
        # connection to the JVM over which checkpoints were read.
        from pyspark import InheritableThread  # noqa: PLC0415

        self._thread = InheritableThread(target=self._run, name="offsetd-spark-positions", daemon=True)
        self._thread.start()

    @property
    def mailbox(self) -> Mailbox:
        """Where positions are put."""
        return self._mailbox

    def put(self, position: QueryPosition) -> None:
        """Take a position to be committed soon."""
        self.counts.heard += 1
        self._mailbox.put(position)

    def close(self) -> None:
        """End the thread. What still waits is not committed."""
        self._mailbox.close()
        # A call that waits for a broker ends with this.
        self._client.close()
        self._thread.join()

    def note_failure(self, words: str, error: BaseException) -> None:
        """Keep and log what went wrong; nobody is asked to handle it."""
        self.counts.failed += 1
        self.counts.last_error = f"{words}: {error}"
        _driver_log.warning("%s: %s", words, error)

    def _run(self) -> None:
        while (work := self._mailbox.take()) is not None:
            try:
                position = work if isinstance(work, QueryPosition) else work()
                if position is not None and position is not work:
                    # It came from a checkpoint, and events may have brought a newer one since.
                    self.put(position)
                elif position is not None:
                    self._commit(position)
            except Exception as error:  # noqa: BLE001  # nothing that happens here may end the reports of all queries
                self.note_failure("a query's position was not committed", error)

    def _commit(self, position: QueryPosition) -> None:
        try:
            committed = self._client.fetch(position.group, position.offsets)
            move = decide_move(position, committed, allow_rewind=self._allow_rewind)
            self._warn_of_back(position, move)
            if move.commit:
                self._client.commit(position.group, dict(move.commit))
                self.counts.committed += 1
            self.counts.last_error = None
        except Unavailable as error:
            self.note_failure(f"group {position.group!r} is shown behind its query", error)
            self._mailbox.put_back(position)
            self._mailbox.pause(self._retry_pause_s)

    def _warn_of_back(self, position: QueryPosition, move: Move) -> None:
        if not move.back:
            if position.group in self._held:
                self._held.discard(position.group)
                _driver_log.info("group %r has been overtaken by its query again", position.group)
            return
        if self._allow_rewind:
            _driver_log.warning("group %r moves back with its query: %s", position.group, move.back_words())
            return
        self.counts.partitions_held += len(move.back)
        if position.group not in self._held:
            self._held.add(position.group)
            _driver_log.warning(
                "group %r is not moved back, though its query is behind it: %s. It stays there until the query has "
                "overtaken it; allow_rewind=True moves it",
                position.group,
                move.back_words(),
            )
