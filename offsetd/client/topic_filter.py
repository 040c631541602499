"""Which topics a member reads: named ones, or all that a filter lets through, as in the older high-level consumer.

A filter is a regular expression that must match a topic's whole name; commas in it are alternatives, spaces and quotes
around it (property files bring them) count for nothing. Internal topics are never let through.
"""

import re
from collections.abc import Iterable
from typing import TypeAlias


class WhiteList:
    """Lets through the topics that match."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self._pattern = _compile(expression)

    def allows(self, topic: str) -> bool:
        """Tell whether a topic is let through."""
        return self._pattern.fullmatch(topic) is not None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.expression!r})"


class BlackList(WhiteList):
    """Lets through the topics that do not match."""

    def allows(self, topic: str) -> bool:
        """Tell whether a topic is let through."""
        return not super().allows(topic)


#: What a member reads.
Topics: TypeAlias = Iterable[str] | WhiteList | BlackList


def _compile(expression: str) -> "re.Pattern[str]":
    plain = expression.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(plain)
    except re.error as error:
        raise ValueError(f"topic filter {expression!r} is no regular expression: {error}") from error
