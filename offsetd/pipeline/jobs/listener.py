"""The ear at Spark's streaming queries: hears, puts into the mailbox, and never raises or waits."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from offsetd.pipeline.jobs.checkpoint import checkpoint_of_query, read_position
from offsetd.pipeline.jobs.committer import PositionCommitter
from offsetd.pipeline.jobs.position import QueryPosition, group_of, position_of_progress

#: Of the Spark driver, not of the daemon.
_driver_log: Final = logging.getLogger(__name__)


class PositionListener(StreamingQueryListener):  # type: ignore[misc]  # pyspark is Any here
    """Tells a committer the position of every named query of a session."""

    def __init__(self, session: SparkSession, committer: PositionCommitter, checkpoints: Mapping[str, str]) -> None:
        self._session = session
        self._committer = committer
        self._checkpoints = dict(checkpoints)
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Hear that a query starts; Spark's `start` waits for this method to return."""
        try:
            if not event.name:
                _driver_log.warning(
                    "query %s has no name, so no group shows its position: name it with queryName(...)", event.id
                )
                return
            self._names[str(event.runId)] = event.name
            self._committer.mailbox.begin(group_of(event.name))
            self._repair(event.name, str(event.id))
        except Exception as error:  # noqa: BLE001  # a query must not fail for its display
            self._committer.note_failure("the start of a query was not understood", error)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Hear how far a query has come."""
        try:
            progress = json.loads(event.progress.json)
            if progress.get("name"):
                position = position_of_progress(progress)
                if position is not None:
                    self._committer.put(position)
        except Exception as error:  # noqa: BLE001  # a query must not fail for its display
            self._committer.note_failure("the progress of a query was not understood", error)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Hear that nothing is to be read: nothing moves."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Hear that a query has ended: its checkpoint knows the last batch, also if the event of it was lost."""
        try:
            name = self._names.pop(str(event.runId), None)
            if name is not None and name in self._checkpoints:
                self._repair(name, str(event.id))
        except Exception as error:  # noqa: BLE001  # nobody could handle it
            self._committer.note_failure("the end of a query was not understood", error)

    def repair(self, query_name: str, checkpoint: str) -> None:
        """Let the position of a checkpoint be committed; also a later start of the query looks there."""
        self._checkpoints[query_name] = checkpoint
        self._repair(query_name, None)

    def _repair(self, name: str, query_id: str | None) -> None:
        def find() -> QueryPosition | None:
            place = self._checkpoints.get(name)
            if place is None and query_id is not None:
                place = checkpoint_of_query(self._session, query_id)
                if place is not None:
                    self._checkpoints[name] = place
            return None if place is None else read_position(self._session, place, group_of(name))

        self._committer.mailbox.put_finding(group_of(name), find)
