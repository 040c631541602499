"""How a load went on over time: what was counted at which moment, thinned out so that a long load fits. Pure."""

from typing import Final

#: Samples that are kept; with twice as many every second one goes.
SAMPLES_MAX: Final = 600
#: Points of a curve of rates: finer ones show the clock of whoever counted, not the load.
RATES_MAX: Final = 60


class Pace:
    """Counts of one stage, in the order of time."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, int]] = [(0.0, 0)]

    def add(self, seconds: float, records: int) -> None:
        """Take a count: so many records after so many seconds of the stage. One that goes back is passed over."""
        last_seconds, last_records = self._samples[-1]
        if seconds <= last_seconds or records < last_records:
            return
        self._samples.append((seconds, records))
        if len(self._samples) > 2 * SAMPLES_MAX:
            self._samples = [*self._samples[:-1:2], self._samples[-1]]

    def counts(self) -> list[tuple[float, float]]:
        """Return seconds and the records up to then."""
        return [(seconds, float(records)) for seconds, records in self._samples]

    def rates(self) -> list[tuple[float, float]]:
        """Return seconds and records per second, each over an equal part of the time."""
        length = self._samples[-1][0] / RATES_MAX
        found: list[tuple[float, float]] = []
        from_seconds, from_records = self._samples[0]
        for seconds, records in self._samples[1:]:
            # Samples are not evenly spaced, and one that is far away stands for all of its time.
            if seconds - from_seconds >= length * 0.999:
                found.append((seconds, (records - from_records) / (seconds - from_seconds)))
                from_seconds, from_records = seconds, records
        return found
