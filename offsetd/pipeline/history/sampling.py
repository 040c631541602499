"""Sampling: the data cluster is asked where its logs end, once or again and again, and each answer is kept."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from offsetd.journal.files import Files, OsFiles
from offsetd.pipeline.history.samples import LogEnds, append_sample
from offsetd.pipeline.load.plan import Logs
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused
from offsetd.pipeline.load.upstream import Topics, ask_logs


@dataclass(frozen=True, slots=True)
class Sampled:
    """How one sample went."""

    time: datetime
    partitions: int = 0
    problem: str | None = None
    """Why there is none, if so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What is sampled, and when."""

    upstream: str
    topics: Topics
    out: Path
    every: timedelta | None = None
    """None for a single sample."""
    lasting: timedelta | None = None
    """For how long; the last sample is taken before that is over."""

    def run(
        self,
        *,
        files: Files | None = None,
        ask: Callable[[str, Topics], Logs] = ask_logs,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Sampled]:
        """Yield each sample when it is kept. A cluster that is away for a while costs those samples only.

        Raises:
            BadRequest: there are no such topics.
            OSError: samples cannot be written.
        """
        files = files or OsFiles()
        began = monotonic()
        number = 0
        while True:
            # Taken before the cluster is asked: a group must not seem to be ahead of the log.
            moment = now()
            try:
                logs = ask(self.upstream, self.topics)
            except BadRequest:
                raise
            except LoadRefused as refused:
                yield Sampled(moment, problem=str(refused))
            else:
                ends = [LogEnds(key.topic, key.partition, logs.starts[key], high) for key, high in logs.highs.items()]
                append_sample(files, self.out, moment, ends)
                yield Sampled(moment, len(ends))
            if self.every is None or self.lasting is None:
                return
            # A sample that took long is not made up for by several at once.
            width = self.every.total_seconds()
            number = max(number + 1, int((monotonic() - began) / width))
            if number * width >= self.lasting.total_seconds():
                return
            sleep(max(0.0, began + number * width - monotonic()))
