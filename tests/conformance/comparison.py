"""Compares what two peers answered, field by field, and takes out the differences that are on purpose. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from protocol.schema import parse_versions

#: Fields that name an element of a list, so that lists without a promised order can be laid side by side.
_NAMES: Final = (
    "group_id",
    "member_id",
    "name",
    "resource_name",
    "topic",
    "partition_index",
    "partition",
    "api_key",
    "key",
    "node_id",
)
#: What clients can tell in an error message; any other is for people, and each peer has its own words.
_TOLD: Final = (None, "", "NONE")
#: A value is shown up to this many characters.
_SHOWN_MAX: Final = 100
#: More than these differences have one cause, and nobody reads them.
_LINES_MAX: Final = 40


class _Any:
    def __repr__(self) -> str:
        return "ANY"


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


#: In the table of differences: whatever the value is.
ANY: Final = _Any()
#: The other side has this element and this side has not.
ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is a peer's own by nature, and says nothing about how it behaves."""

    port: int
    cluster_id: str
    topic_ids: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that the peers answered differently."""

    scenario: str
    step: str
    version: int
    field: str
    kafka: object
    ours: object

    def __str__(self) -> str:
        place = f"{self.scenario} / {self.step} / v{self.version}"
        return f"{place}: {self.field}: Kafka {_short(self.kafka)}, offsetd {_short(self.ours)}"


def _short(value: object) -> str:
    words = repr(value)
    return words if len(words) <= _SHOWN_MAX else f"{words[:_SHOWN_MAX]}…"


@dataclass(frozen=True, slots=True)
class Purpose:
    """A row of the table: a difference that is meant. Steps and fields may have `*` for any part of them."""

    scenario: str
    step: str
    field: str
    kafka: object
    ours: object
    #: The row of the table in docs/protocol.md that tells users about it, by its first cell.
    matter: str
    versions: str = "0+"

    def covers(self, difference: Difference) -> bool:
        """Tell whether this row is about that difference, down to both values."""
        return (
            self.about(difference.scenario, difference.step, difference.version)
            and fnmatchcase(difference.field, self.field.replace("[", "[[]"))
            and (self.kafka is ANY or _same(self.kafka, difference.kafka))
            and (self.ours is ANY or _same(self.ours, difference.ours))
        )

    def about(self, scenario: str, step: str, version: int) -> bool:
        """Tell whether this row speaks of a step in a version."""
        return self.scenario == scenario and fnmatchcase(step, self.step) and version in parse_versions(self.versions)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is left of a comparison when all that is meant has been taken out."""

    unexplained: tuple[Difference, ...]
    explained: int
    #: Rows and the steps that they speak of where nothing differs any more.
    outdated: tuple[tuple[Purpose, str, int], ...]

    def __str__(self) -> str:
        lines = [str(difference) for difference in self.unexplained[:_LINES_MAX]]
        if len(self.unexplained) > _LINES_MAX:
            lines.append(f"… and {len(self.unexplained) - _LINES_MAX} more")
        lines += [
            f"{row.scenario} / {step} / v{version}: {row.field}: in the table, but no longer so ({row.matter})"
            for row, step, version in self.outdated
        ]
        return "\n".join(lines)


def judge(
    compared: Iterable[tuple[str, str, int]], differences: Sequence[Difference], table: Iterable[Purpose]
) -> Verdict:
    """Hold the differences of the compared steps (scenario, step, version) against the table, in both directions."""
    rows = tuple(table)
    unexplained = tuple(one for one in differences if not any(row.covers(one) for row in rows))
    used = {
        (place, (one.scenario, one.step, one.version))
        for place, row in enumerate(rows)
        for one in differences
        if row.covers(one)
    }
    outdated = tuple(
        (row, step, version)
        for scenario, step, version in compared
        for place, row in enumerate(rows)
        if row.about(scenario, step, version) and (place, (scenario, step, version)) not in used
    )
    return Verdict(unexplained, len(differences) - len(unexplained), outdated)


def plain(
    message: Any,
    facts: Facts,
    *,
    unordered: bool = False,
    only: Collection[str] = (),
    own: str = "",
    shown: Callable[[str], str] = lambda text: text,
) -> Any:
    """Turn a decoded reply into dicts, lists and values, with a peer's own facts replaced by what they stand for.

    Args:
        unordered: Lists whose elements have names become dicts by name, so that order is not compared.
        only: Elements that have a name (topics) are left out unless it is one of these.
        own: Elements that have a group are left out unless its id begins so.
        shown: How a text is compared that may be the id of a member.
    """
    names = {topic_id: name for name, topic_id in facts.topic_ids.items()}

    def turn(value: Any, field: str) -> Any:
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return {name: turn(part, name) for name, part in value._asdict().items()}
        if isinstance(value, tuple):
            parts = [turn(part, field) for part in value]
            if only:
                parts = [
                    part for part in parts if not isinstance(part, dict) or part.get("name", only) in (*only, only)
                ]
            parts = [part for part in parts if not isinstance(part, dict) or part.get("group_id", own).startswith(own)]
            return _by_name(parts) if unordered else parts
        if field == "port" and value == facts.port:
            return "<port>"
        if field == "cluster_id" and value == facts.cluster_id:
            return "<cluster id>"
        if field == "error_message" and value not in _TOLD:
            return "<words>"
        if isinstance(value, bytes) and value in names:
            return f"<id of {names[value]}>"
        return shown(value) if isinstance(value, str) else value

    return turn(message, "")


def _by_name(parts: list[Any]) -> Any:
    """Lay a list out by its elements' names; if they have none, or one comes twice, by how they look."""
    names = [next((part[name] for name in _NAMES if name in part), None) for part in parts if isinstance(part, dict)]
    if len(set(names)) < len(parts) or None in names:
        return sorted(parts, key=repr)
    return {_Name(name): part for name, part in zip(names, parts, strict=True)}


class _Name(str):
    """A key that stands for an element of a list, and is written like one in a path."""

    __slots__ = ()


def differing(kafka: Any, ours: Any, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield each field that differs: its path and both values; of lists also their lengths, as `path.#`."""
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in {**kafka, **ours}:
            inner = f"{path}[{name}]" if isinstance(name, _Name) else f"{path}.{name}" if path else name
            yield from differing(kafka.get(name, ABSENT), ours.get(name, ABSENT), inner)
    elif isinstance(kafka, list) and isinstance(ours, list):
        if len(kafka) != len(ours):
            yield f"{path}.#", len(kafka), len(ours)
        for place, (left, right) in enumerate(zip(kafka, ours, strict=False)):
            yield from differing(left, right, f"{path}[{place}]")
    elif not _same(kafka, ours):
        yield path, kafka, ours


def _same(left: object, right: object) -> bool:
    # Python takes 0 for False; the wire does not.
    return isinstance(left, bool) is isinstance(right, bool) and left == right


_GAP: Final = re.compile(r"[^a-zA-Z0-9]+")


def slug(words: str) -> str:
    """Return words as part of a legal topic name."""
    return _GAP.sub("-", words).strip("-")
