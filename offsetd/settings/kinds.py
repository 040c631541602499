"""What kinds of values settings have: how each is read from TOML, the environment or a flag, and shown again.

A kind raises ValueError with a phrase that completes "<key> <phrase>"; the loader adds the key and its source.
"""

# ruff: noqa: TRY004  # a value of the wrong type is one more bad value here, and callers expect ValueError

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

from offsetd.settings.address import Address, parse_address

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

FOR_EVER = -1
TOPIC_PARTITIONS_MAX = 100_000
LEGAL_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")
TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})


class Kind(Protocol[T_co]):
    """How the values of a setting are read and what the settings page calls them."""

    @property
    def label(self) -> str:
        """The word or phrase that the settings page shows."""

    def read(self, value: object) -> T_co:
        """Turn a value from any source into what the daemon uses; ValueError says why not."""


class RetentionOverride(NamedTuple):
    """Groups that match the glob keep their offsets this long (-1: for ever)."""

    pattern: str
    minutes: int

    def __str__(self) -> str:
        return f"{self.pattern}={self.minutes}"


class KnownTopic(NamedTuple):
    """A topic stated by the operator; ``latest`` holds one log end per partition, or nothing."""

    name: str
    partitions: int
    latest: tuple[int, ...]

    def __str__(self) -> str:
        ends = ("/".join(map(str, self.latest)),) if self.latest else ()
        return ":".join((self.name, str(self.partitions), *ends))


def shown(value: object) -> str:
    """Write a value the way the environment would carry it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and not isinstance(value, Address | RetentionOverride | KnownTopic):
        return ",".join(map(str, value))
    return str(value)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within a range, or one special value outside of it."""

    low: int
    high: int = 2**63 - 1
    special: int | None = None
    special_means: str = ""

    @property
    def label(self) -> str:
        return "integer"

    def read(self, value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,19}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"is {value!r}, want a whole number")
        if value != self.special and not self.low <= value <= self.high:
            also = f"{self.special} ({self.special_means}) or " if self.special is not None else ""
            raise ValueError(f"is {value}, want {also}{self.low}..{self.high}")
        return value


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share between 0 and 1."""

    label: str = "number from 0 to 1"

    def read(self, value: object) -> float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise ValueError(f"is {value!r}, want a number from 0 to 1") from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ValueError(f"is {value!r}, want a number from 0 to 1")
        return float(value)


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off."""

    label: str = "true or false"

    def read(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        word = value.strip().lower() if isinstance(value, str) else ""
        if word in TRUE_WORDS or word in FALSE_WORDS:
            return word in TRUE_WORDS
        raise ValueError(f"is {value!r}, want true or false")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def label(self) -> str:
        return " or ".join(f"`{word}`" for word in self.words)

    def read(self, value: object) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in self.words:
            raise ValueError(f"is {value!r}, want one of {', '.join(self.words)}")
        return word


@dataclass(frozen=True, slots=True)
class Directory:
    """A path; a relative one starts from the folder that the daemon was started in."""

    label: str = "path"

    def read(self, value: object) -> Path:
        if isinstance(value, str | Path) and str(value) and "\0" not in str(value):
            return Path(value)
        raise ValueError(f"is {value!r}, want a path")


@dataclass(frozen=True, slots=True)
class ClusterId:
    """Kafka's form of a cluster id: 16 bytes in url-safe base64."""

    label: str = "22 characters of A-Z a-z 0-9 _ -"

    def read(self, value: object) -> str:
        if isinstance(value, str) and CLUSTER_ID.fullmatch(value):
            return value
        raise ValueError(f"is {value!r}, want {self.label}")


@dataclass(frozen=True, slots=True)
class HostPort:
    """Where to listen, or where clients connect."""

    port_low: int = 0
    label: str = "HOST:PORT"

    def read(self, value: object) -> Address:
        if isinstance(value, Address):
            value = str(value)
        if not isinstance(value, str):
            raise ValueError(f"is {value!r}, want HOST:PORT")
        try:
            address = parse_address(value)
        except ValueError as error:
            raise ValueError(f"is {value!r}, which {error}") from None
        if address.port < self.port_low:
            raise ValueError(f"is {value!r}, want a port of {self.port_low}..65535")
        return address


@dataclass(frozen=True, slots=True)
class Maybe(Generic[T]):
    """A value that may be left out; the empty string leaves it out."""

    kind: Kind[T]

    @property
    def label(self) -> str:
        return f"{self.kind.label}, or empty"

    def read(self, value: object) -> T | None:
        return None if value is None or value == "" else self.kind.read(value)


@dataclass(frozen=True, slots=True)
class Retentions:
    """Overrides of the retention, first match first."""

    label: str = "list of `PATTERN=MINUTES`"

    def read(self, value: object) -> tuple[RetentionOverride, ...]:
        overrides = []
        for text in _items(value):
            pattern, equals, minutes_text = text.rpartition("=")
            if not equals or not pattern:
                raise ValueError(f"has {text!r}, want PATTERN=MINUTES such as billing-*=43200")
            try:
                minutes = Integer(1, 2**31 - 1, FOR_EVER, "for ever").read(minutes_text)
            except ValueError as error:
                raise ValueError(f"has {text!r}, whose time {error}") from None
            overrides.append(RetentionOverride(pattern, minutes))
        return tuple(overrides)


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """Topics that exist because the operator says so."""

    label: str = "list of `NAME:PARTITIONS` or `NAME:PARTITIONS:LATEST`"

    def read(self, value: object) -> tuple[KnownTopic, ...]:
        topics = tuple(_known_topic(text) for text in _items(value))
        names = [topic.name for topic in topics]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"names the topic {name} twice")
        return topics


def _known_topic(text: str) -> KnownTopic:
    name, *numbers = text.split(":")
    if not LEGAL_TOPIC.fullmatch(name) or name in {".", ".."}:
        raise ValueError(f"has {text!r}, whose topic name is not a legal one")
    if len(numbers) not in {1, 2}:
        raise ValueError(f"has {text!r}, want NAME:PARTITIONS or NAME:PARTITIONS:LATEST such as orders:12")
    try:
        partitions = Integer(1, TOPIC_PARTITIONS_MAX).read(numbers[0])
        ends = [Integer(0).read(end) for end in numbers[1].split("/")] if len(numbers) == 2 else []
    except ValueError as error:
        raise ValueError(f"has {text!r}, where a number {error}") from None
    if len(ends) == 1:
        ends *= partitions
    if len(ends) not in {0, partitions}:
        raise ValueError(f"has {text!r}, want one LATEST for all partitions or {partitions} joined by /")
    return KnownTopic(name, partitions, tuple(ends))


def _items(value: object) -> list[str]:
    """Split a list setting: TOML gives a list, the environment and flags one text with commas."""
    if isinstance(value, str):
        return [item.strip() for item in value.split(",") if item.strip()]
    if isinstance(value, list | tuple):
        items = cast("list[object]", list(value))
        for item in items:
            if not isinstance(item, str | RetentionOverride | KnownTopic):
                raise ValueError(f"has {item!r}, want a list of strings")
        return [str(item) for item in items]
    raise ValueError(f"is {value!r}, want a list of strings")
