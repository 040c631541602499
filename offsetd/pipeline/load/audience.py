"""Several observers of one load, told as one: whoever draws it, writes its report, counts it."""

import threading
from collections.abc import Sequence

from offsetd.pipeline.load.observer import Observer
from offsetd.pipeline.load.plan import Plan
from offsetd.pipeline.load.summary import Summary


class Unwritten(Exception):
    """A report or a metric could not be delivered; the load itself is not touched by that."""


class Audience:
    """Tells each observer in turn, one call at a time, and goes on when one of them cannot deliver.

    A load that is published is published: a report that finds no room or a gateway that is away must not make it look
    failed. What could not be delivered is told to the others as a note, and stands in `unwritten`.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        # Progress comes from the thread that watches Spark.
        self._lock = threading.RLock()
        self.unwritten: list[str] = []

    def planned(self, plan: Plan) -> None:
        """Tell all."""
        with self._lock:
            for observer in self._observers:
                observer.planned(plan)

    def stage(self, name: str, total_records: int | None) -> None:
        """Tell all."""
        with self._lock:
            for observer in self._observers:
                observer.stage(name, total_records)

    def progressed(self, records: int) -> None:
        """Tell all."""
        with self._lock:
            for observer in self._observers:
                observer.progressed(records)

    def finished(self, summary: Summary) -> None:
        """Tell all, also those behind one that cannot deliver."""
        with self._lock:
            for observer in self._observers:
                try:
                    observer.finished(summary)
                except Unwritten as error:
                    self.unwritten.append(str(error))
            for sentence in self.unwritten:
                self.noted(sentence)

    def noted(self, sentence: str) -> None:
        """Tell all."""
        with self._lock:
            for observer in self._observers:
                observer.noted(sentence)
