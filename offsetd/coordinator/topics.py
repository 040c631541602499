"""Topics are names: known by a commit, by the settings, or by being asked for. offsetd holds no messages of them."""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from offsetd.coordinator.latest import LISTED_PARTITIONS_MAX, Latest
from offsetd.coordinator.limits import Limits
from offsetd.table import TopicIndex

#: Kafka's rule for names, which keeps a name from being a path or a metric's separator.
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


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

    def __init__(
        self,
        *,
        cluster_id: str,
        index: TopicIndex,
        limits: Limits,
        known: dict[str, KnownTopic],
        are_whole: Callable[[], bool] = lambda: True,
    ) -> None:
        # Tells whether every slot is loaded: before that a topic may exist, or end further on, than is known here.
        self.are_whole = are_whole
        self._cluster_id = cluster_id
        self._index = index
        self._limits = limits
        self._known = known
        # Names that were asked for, with no value; forgetting starts with the oldest, which a plain dict finds slowly.
        self._asked: OrderedDict[str, None] = OrderedDict()
        self._asked_changes = 0
        self._names_by_id: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self._named_changes = -1
        self.ends = Latest(index)

    def __len__(self) -> int:
        return len(self._known.keys() | self._index.groups.keys() | self._asked.keys())

    @property
    def changes(self) -> int:
        """Moves when any topic comes or goes, or has another number of partitions."""
        return self._index.changes + self._asked_changes

    def exists(self, name: str) -> bool:
        """Tell whether the topic is known, by whatever way."""
        return name in self._known or name in self._index.groups or name in self._asked

    def has(self, name: str, partition: int) -> bool:
        """Tell whether the partition of a known topic exists."""
        return self.exists(name) and 0 <= partition < self.partitions(name)

    def ask(self, name: str) -> bool:
        """Make a topic known because a client asked for it; tell whether there was room."""
        if not self.exists(name):
            if self._limits.topics_asked_max == 0:
                return False
            if len(self._asked) >= self._limits.topics_asked_max:
                self._asked.popitem(last=False)
            self._asked[name] = None
            self._asked_changes += 1
        return True

    def names(self) -> list[str]:
        """Return every known topic, sorted."""
        return sorted(self._known.keys() | self._index.groups.keys() | self._asked.keys())

    def partitions(self, name: str) -> int:
        """Return how many partitions the topic shows: what is stated, or more as commits have named more."""
        stated = self._known[name].partitions if name in self._known else self._limits.topic_partitions
        index = self._index
        named = index.partitions.get(name)
        if named is None:
            named = max((group.partitions(name) for group in index.groups.get(name, ())), default=0)
            if name in index.groups:
                index.partitions[name] = named
        return min(max(stated, named), LISTED_PARTITIONS_MAX)

    def topic_id(self, name: str) -> bytes:
        """Return the topic's id: made from cluster and name, so that it survives a restart without being stored."""
        known = self._ids.get(name)
        if known is not None:
            return known
        made = bytearray(sha256(f"{self._cluster_id}\0{name}".encode()).digest()[:16])
        made[6] = made[6] & 0x0F | 0x80
        made[8] = made[8] & 0x3F | 0x80
        return bytes(made)

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the known topic of that id."""
        name = self._names_by_id.get(topic_id)
        if name is None and self._named_changes != self.changes:
            self._named_changes = self.changes
            self._ids = {known: self.topic_id(known) for known in self.names()}
            self._names_by_id = {made: known for known, made in self._ids.items()}
            name = self._names_by_id.get(topic_id)
        return name if name is not None and self.exists(name) else None

    def latest(self, name: str, partition: int) -> int:
        """Return the highest offset that any group holds there, or what the operator stated if that is higher."""
        ends = self._known[name].latest if name in self._known else ()
        stated = ends[partition] if partition < len(ends) else ends[0] if len(ends) == 1 else 0
        return max(stated, self.ends.get(name, partition))
