"""`spark.readStream.format("offsetd")`: follows a journal batch by batch, through all the places its segments go to.

A stream's offset is the number of the last batch that it has read. Batch numbers have no gaps and are never given
twice, and only batches that no crash can take back are handed out: so a restart neither repeats nor passes over one.
"""

import logging
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from offsetd.pipeline.history.listing import Lister, Listing
from offsetd.pipeline.history.options import EARLIEST, LATEST, HistoryOptions
from offsetd.pipeline.history.reading import Wanted, read
from offsetd.pipeline.history.refusal import BatchesGone, HistoryRefused
from offsetd.pipeline.history.source import HistoryPartition
from offsetd.pipeline.history.span import Span, format_spans, missing

logger = logging.getLogger(__name__)

_BATCH: Final = "batch"


class StreamReader(DataSourceStreamReader):  # type: ignore[misc]  # pyspark has no types here
    """Plans micro-batches on the driver, where one object serves a query for all its run, and reads them in tasks."""

    def __init__(self, options: HistoryOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._lister: Lister | None = None
        self._reached = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Return where a new query begins."""
        listing = self._look()
        starting = self._options.starting
        first, last = listing.first or 1, listing.last or 0
        if starting == LATEST:
            self._reached = last
        elif starting == EARLIEST:
            self._reached = first - 1
        else:
            assert isinstance(starting, int)
            self._reached = self._start_at(starting, first, last)
        return {_BATCH: self._reached}

    def _start_at(self, starting: int, first: int, last: int) -> int:
        if starting > last + 1:
            raise HistoryRefused(
                f"startingBatch is {starting}, and the newest batch is {last}: latest waits for the next"
            )
        if starting < first:
            self._lost([Span(starting, first - 1)])
            return first - 1
        return starting - 1

    def latestOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Return how far the next micro-batch goes."""
        listing = self._look()
        last = listing.last or 0
        if last < self._reached:
            raise HistoryRefused(
                f"the stream has read up to batch {self._reached}, and the newest one in {self._options.directory} is "
                f"{last}: it is another journal, or was cut by a repair. Begin a new checkpoint"
            )
        return {_BATCH: self._bounded(listing, last)}

    def _bounded(self, listing: Listing, last: int) -> int:
        most = self._options.batches_max
        if most is None or last - self._reached <= most:
            return last
        limit = self._reached + most
        # Files are read as a whole: where one ends within the bound, the micro-batch ends with it.
        return max((span.last for span in listing.spans if self._reached < span.last <= limit), default=limit)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Plan the batches behind one offset up to another; with both the same Spark only tells where it stands."""
        asked = Span(start[_BATCH] + 1, end[_BATCH])
        self._reached = max(self._reached, asked.last)
        if not asked.batches:
            return []
        found = [span for each in self._look().spans if (span := each.within(asked)).batches]
        # An empty run at both ends, so that what is missing there shows too.
        edges = [Span(asked.first, asked.first - 1), Span(asked.last + 1, asked.last)]
        if gaps := missing([*found, *edges]):
            self._lost(gaps)
        strict = self._options.fail_on_data_loss
        places = self._options.locate()
        return [HistoryPartition(Wanted(places, span, self._columns, fail_on_data_loss=strict)) for span in found]

    def read(self, partition: HistoryPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield what a task reads."""
        return iter(()) if partition is None else read(partition.wanted)

    def _look(self) -> Listing:
        # Asked anew each time: a directory that was empty may have become a data directory.
        places = self._options.locate()
        if self._lister is None or self._lister.places != places:
            self._lister = Lister(places)
        return self._lister.look()

    def _lost(self, gaps: list[Span]) -> None:
        what = f"the batches {format_spans(gaps)} are gone before they were read: retention has taken them"
        if self._options.fail_on_data_loss:
            raise BatchesGone(
                f"{what}. Keep more history (history.retention.ms), or pass over them: failOnDataLoss=false"
            )
        logger.warning("%s; the stream goes on behind them", what)
