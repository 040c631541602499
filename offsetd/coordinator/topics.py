"""Topics are names: known by a commit, by the settings, or by being asked for. offsetd holds no messages of them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from offsetd.coordinator.limits import Limits
from offsetd.table import Group, TopicIndex

#: Kafka's rule for names, which keeps a name from being a path or a metric's separator.
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")

#: Metadata lists at most this many partitions of a topic, whatever number a commit has named.
LISTED_PARTITIONS_MAX = 10_000

#: 2^63-1 is what some tools commit to mean "the end"; it says nothing about where a log ends.
_NO_END = (1 << 63) - 1


def is_legal(name: str) -> bool:
    """Tell whether Kafka could have a topic of this name."""
    return name not in {".", ".."} and _LEGAL.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """What an operator states about a topic in the settings."""

    partitions: int
    # Where its partitions end: nothing stated, one number for each, or one for all.
    latest: tuple[int, ...] = ()


class Topics:
    """Answers which topics exist, with how many partitions, and where they seem to end."""

    def __init__(self, *, cluster_id: str, index: TopicIndex, limits: Limits, known: dict[str, KnownTopic]) -> None:
        self._cluster_id = cluster_id
        self._index = index
        self._limits = limits
        self._known = known
        # Names that were asked for, with no value: a dict keeps their order, and forgetting starts with the oldest.
        self._asked: dict[str, None] = {}
        self._names_by_id: dict[bytes, str] = {}
        self._partitions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._known.keys() | self._index.groups.keys() | self._asked.keys())

    def exists(self, name: str) -> bool:
        """Tell whether the topic is known, by whatever way."""
        return name in self._known or name in self._index.groups or name in self._asked

    def has(self, name: str, partition: int) -> bool:
        """Tell whether the partition of a known topic exists."""
        return self.exists(name) and 0 <= partition < self.partitions(name)

    def ask(self, name: str) -> bool:
        """Make a topic known because a client asked for it; tell whether there was room."""
        if not self.exists(name):
            if len(self._asked) >= self._limits.topics_asked_max:
                self._asked.pop(next(iter(self._asked)))
            self._asked[name] = None
        return True

    def names(self) -> list[str]:
        """Return every known topic, sorted."""
        return sorted(self._known.keys() | self._index.groups.keys() | self._asked.keys())

    def partitions(self, name: str) -> int:
        """Return how many partitions the topic shows: what is stated, or more as commits have named more."""
        stated = self._known[name].partitions if name in self._known else self._limits.topic_partitions
        named = max((group.partitions(name) for group in self._index.groups.get(name, ())), default=0)
        return min(max(stated, named), LISTED_PARTITIONS_MAX)

    def topic_id(self, name: str) -> bytes:
        """Return the topic's id: made from cluster and name, so that it survives a restart without being stored."""
        made = bytearray(sha256(f"{self._cluster_id}\0{name}".encode()).digest()[:16])
        made[6] = made[6] & 0x0F | 0x80
        made[8] = made[8] & 0x3F | 0x80
        return bytes(made)

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the known topic of that id."""
        name = self._names_by_id.get(topic_id)
        if name is None or not self.exists(name):
            self._names_by_id = {self.topic_id(known): known for known in self.names()}
            name = self._names_by_id.get(topic_id)
        return name

    def latest(self, name: str, partition: int) -> int:
        """Return the highest offset that any group holds there, or what the operator stated if that is higher."""
        ends = self._known[name].latest if name in self._known else ()
        stated = ends[partition] if partition < len(ends) else ends[0] if len(ends) == 1 else 0
        return max((stated, *self._committed(self._index.groups.get(name, ()), name, partition)))

    @staticmethod
    def _committed(groups: Iterable[Group], name: str, partition: int) -> Iterator[int]:
        for group in groups:
            found = group.get(name, partition)
            if found is not None and 0 <= found.offset < _NO_END:
                yield found.offset
