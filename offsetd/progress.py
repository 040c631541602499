"""The progress of a load, on a terminal: one line that is rewritten, and nothing where nobody looks."""

import time
from typing import TextIO

_WIDTH = 30
_EVERY_SECONDS = 0.1


class Progress:
    """Draws a bar on a terminal; elsewhere the log lines and metrics tell the same."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shows = stream.isatty()
        self._began = time.monotonic()
        self._drawn_at = 0.0
        self._drawn = False

    def scanned(self, count: int) -> None:
        """Show how much of the journal's tail has been read."""
        self._draw(f"reading the journal: {count / 1e6:,.1f} MB")

    def loaded(self, count: int, share: float) -> None:
        """Show how many offsets are in memory, and which share of the slots answers."""
        rate = count / max(time.monotonic() - self._began, 1e-9)
        full = int(share * _WIDTH)
        self._draw(f"loading [{'#' * full}{'.' * (_WIDTH - full)}] {share:4.0%}  {count:,} offsets, {rate:,.0f}/s")

    def _draw(self, text: str) -> None:
        now = time.monotonic()
        if self._shows and now - self._drawn_at >= _EVERY_SECONDS:
            self._drawn_at = now
            self._drawn = True
            # Back to the line's beginning, so that a log line that comes between stands over the bar, not behind it.
            self._stream.write(f"\r\x1b[K{text}\r")
            self._stream.flush()

    def close(self) -> None:
        """Leave a clean line for what follows."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
