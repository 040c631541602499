"""Times and spans of time as people write them on a command line."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

_SPAN: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|m|h|d|w)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_SPAN_MAX: Final = timedelta(days=36_525)


class Span(click.ParamType[timedelta]):
    """A span of time: 90s, 5m, 2h, 7d."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read it."""
        if isinstance(value, timedelta):
            return value
        span = _span(value)
        if span is None:
            self.fail(f"{value!r} is not a span of time: want 90s, 5m, 2h or 7d, and more than nothing", param, ctx)
        return span


class Moment(click.ParamType[datetime]):
    """A time, or a span of time for so long ago."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it; UTC unless it says otherwise."""
        if isinstance(value, datetime):
            return value
        span = _span(value)
        if span is not None:
            return datetime.now(UTC) - span
        try:
            if value.isascii() and value.isdecimal() and len(value) > 4:
                return datetime.fromtimestamp(int(value) / 1000, UTC)
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            self.fail(
                f"{value!r} is no time: want ISO 8601 (2026-01-31T14:05:00Z, UTC if not said), milliseconds since "
                "1970, or a span for so long ago (2h)",
                param,
                ctx,
            )


def _span(text: str) -> timedelta | None:
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        return None
    span = float(found[1]) * _UNITS[found[2]]
    return span if timedelta(0) < span <= _SPAN_MAX else None
