"""How amounts are written for people: numbers, bytes, time and rates, each in as few characters as tell it. Pure."""

import re
from typing import Final

_DECIMAL: Final = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))
_BINARY: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_BYTES: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])i?b?|b)?", re.IGNORECASE)
_POWERS: Final = {"k": 10, "m": 20, "g": 30, "t": 40}


def short(value: float) -> str:
    """Return a number with three digits that count: 1.23 M."""
    for unit, name in _DECIMAL:
        # What would be rounded up to 1000 of a unit is 1 of the next.
        if abs(value) >= 0.9995 * unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def in_bytes(size: float) -> str:
    """Return a size: 12.3 MiB."""
    for unit, name in _BINARY:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} B"


def in_seconds(seconds: float) -> str:
    """Return a span of time: 0.42 s, 12.3 s, 4 m 05 s, 2 h 10 m."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m"


def per_second(amount: float, seconds: float) -> str:
    """Return a rate: 210 k/s; a dash where no time has passed."""
    return f"{short(amount / seconds)}/s" if seconds > 0 else "–"  # noqa: RUF001  # a dash that stands for nothing


def parse_bytes(text: str) -> int:
    """Return the bytes that a person wrote as 128MiB, 128m or 134217728; all units are powers of 1024.

    Raises:
        ValueError: it is not a size.
    """
    found = _BYTES.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size; want a number with KiB, MiB, GiB or TiB behind it, or of bytes")
    number, unit = found.groups()
    return int(float(number) * (1 << _POWERS[unit.lower()] if unit else 1))
