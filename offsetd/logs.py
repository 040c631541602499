"""How log lines leave the daemon: set-up of structlog, escaping, and a limit for lines that a peer can cause.

One line per event that an operator would want. What a client sent is never trusted to be printable.
"""

import json
import logging
import sys
import unicodedata
from typing import TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

# Controls, formatting (bidirectional marks), surrogates, line and paragraph separators: what could forge a line.
ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
LEVEL_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
LEVEL_COLOURS = {"debug": "\x1b[2m", "info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m"}
COLOUR_END = "\x1b[0m"
KEYS_MAX = 1000
OTHER_KEYS = "(others)"


def escaped(text: str) -> str:
    """Write everything that could forge a line as a backslash escape; different texts stay different."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(_escaped_character(character) for character in text)


def _escaped_character(character: str) -> str:
    if character == "\\" or unicodedata.category(character) in ESCAPED_CATEGORIES:
        return character.encode("unicode_escape").decode("ascii")
    return character


def configure_logs(*, level: str, form: str, stream: TextIO | None = None) -> None:
    """Send structlog's and the standard library's lines to ``stream`` (stderr).

    Args:
        level: debug, info, warning or error.
        form: json, console, or auto: console when the stream is a terminal.
    """
    stream = stream or sys.stderr
    terminal = stream.isatty()
    console = form == "console" or (form == "auto" and terminal)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            ConsoleLine(colours=terminal) if console else _json_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVEL_NUMBERS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    # asyncio reports lost exceptions through the standard library; they must not bypass the escaping.
    logging.basicConfig(handlers=[_StandardLines()], level=max(LEVEL_NUMBERS[level], logging.INFO), force=True)


def _json_line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    # ASCII only: that escapes every character which could forge a line, and lone surrogates too.
    first = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return json.dumps({**first, **event}, default=repr, ensure_ascii=True)


class ConsoleLine:
    """One line for people: time, level, event, facts; a traceback follows behind a bar, so that it forges none."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> str:
        time, level = event.pop("timestamp", ""), str(event.pop("level", ""))
        name, trace = event.pop("event", ""), event.pop("exception", None)
        tag = f"{level:<7}"
        if self._colours:
            tag = f"{LEVEL_COLOURS.get(level, '')}{tag}{COLOUR_END}"
        facts = "".join(f" {escaped(str(key))}={_fact(value)}" for key, value in event.items())
        line = f"{time} {tag} {escaped(str(name))}{facts}"
        if trace is not None:
            line += "".join(f"\n    | {escaped(part)}" for part in str(trace).split("\n"))
        return line


def _fact(value: object) -> str:
    """Write a value so that its end is plain: text with blanks, quotes or an equals sign stands in quotes."""
    text = escaped(value if isinstance(value, str) else repr(value))
    if isinstance(value, str) and (not text or any(mark in text for mark in ' "=')):
        return '"' + text.replace('"', '\\"') + '"'
    return text


class _StandardLines(logging.Handler):
    """Lines of the standard library's logging, as events."""

    def emit(self, record: logging.LogRecord) -> None:
        log: FilteringBoundLogger = structlog.get_logger()
        level = min(max(record.levelno, logging.DEBUG), logging.ERROR)
        log.log(level, "library_message", library=record.name, message=record.getMessage(), exc_info=record.exc_info)


class _Window:
    """What one key has written since its interval began."""

    __slots__ = ("event", "lines", "since_ms", "suppressed")

    def __init__(self, since_ms: int, event: str) -> None:
        self.since_ms = since_ms
        self.event = event
        self.lines = 0
        self.suppressed = 0


class RateLimited:
    """Warnings that a peer can cause at will: so many per interval and key, then one line that counts the rest."""

    def __init__(self, log: FilteringBoundLogger, *, lines_max: int = 5, interval_ms: int = 10_000) -> None:
        self._log = log
        self._lines_max = lines_max
        self._interval_ms = interval_ms
        self._windows: dict[str, _Window] = {}

    def warning(self, now_ms: int, key: str, event: str, **facts: object) -> None:
        """Write one warning, or count it. ``now_ms`` is monotonic; keys beyond a thousand share one window."""
        window = self._windows.get(key)
        if window is None and len(self._windows) >= KEYS_MAX:
            self.flush(now_ms)
            if len(self._windows) >= KEYS_MAX:
                key = OTHER_KEYS
                window = self._windows.get(key)
        if window is not None and now_ms - window.since_ms >= self._interval_ms:
            self._close(key, window)
            window = None
        if window is None:
            window = self._windows[key] = _Window(now_ms, event)
        if window.lines < self._lines_max:
            window.lines += 1
            self._log.warning(event, **facts)
        else:
            window.suppressed += 1

    def flush(self, now_ms: int, *, everything: bool = False) -> None:
        """Close the windows whose interval is over (or all, at the end), so that their counts are said."""
        for key, window in list(self._windows.items()):
            if everything or now_ms - window.since_ms >= self._interval_ms:
                self._close(key, window)

    def _close(self, key: str, window: _Window) -> None:
        del self._windows[key]
        if window.suppressed:
            self._log.warning("lines_suppressed", of=window.event, key=key, suppressed=window.suppressed)
