"""Records that follow from where they stand, so that every row of a table can be held against what was produced.

Key, value, header and time of a record follow from a seed, its partition and its offset. A table is right if each
partition has the offsets from 0 up to its position, each once, each with the bytes that were produced.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from offsetd.client import BlockingClient, Committed, TopicPartition

_EPOCH: Final = datetime(2026, 1, 31, tzinfo=UTC)
_SECONDS_MAX: Final = 120.0
_LOAD: Final = re.compile(r"load=(\d+)")


class ProducedTopic:
    """A topic that one producer fills, and what it has put there."""

    def __init__(self, bootstrap: str, name: str, *, partitions: int, seed: int = 1, value_bytes: int = 40) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

        self.bootstrap = bootstrap
        self.name = name
        self.seed = seed
        self.value_bytes = value_bytes
        self.ends = [0] * partitions
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        # The records are of a fixed day, which retention by time would think old.
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config={"retention.ms": "-1"})
        self._admin.create_topics([topic])[name].result(_SECONDS_MAX)

    def key(self, partition: int, offset: int) -> bytes:
        """Return the key of the record at a place."""
        return f"{self.seed}/{partition}/{offset}".encode()

    def value(self, partition: int, offset: int) -> bytes:
        """Return the value of the record at a place: bytes that no compression makes smaller."""
        return hashlib.shake_128(self.key(partition, offset)).digest(self.value_bytes)

    def time(self, offset: int) -> datetime:
        """Return the time of the record at an offset."""
        return _EPOCH + timedelta(milliseconds=offset)

    def produce(self, *counts: int) -> None:
        """Append so many records to each partition."""
        from confluent_kafka import Producer  # noqa: PLC0415

        assert len(counts) == len(self.ends)
        refused: list[Any] = []
        placed: list[tuple[int, int]] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                refused.append(error)
            else:
                placed.append((message.partition(), message.offset()))

        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 20})
        wanted = []
        for partition, count in enumerate(counts):
            first = self.ends[partition]
            for offset in range(first, first + count):
                producer.produce(
                    self.name,
                    key=self.key(partition, offset),
                    value=self.value(partition, offset),
                    partition=partition,
                    timestamp=round(self.time(offset).timestamp() * 1000),
                    headers=[("place", self.key(partition, offset))],
                    on_delivery=delivered,
                )
                wanted.append((partition, offset))
                if len(wanted) % 1000 == 0:
                    producer.poll(0)
            self.ends[partition] += count
        assert producer.flush(_SECONDS_MAX) == 0, "Kafka did not take all records"
        assert not refused, refused
        assert sorted(placed) == wanted, "Kafka put records elsewhere than was expected"

    def drop_before(self, partition: int, offset: int) -> None:
        """Let Kafka forget the records before an offset, as retention does."""
        from confluent_kafka import TopicPartition as Theirs  # noqa: PLC0415

        dropped = self._admin.delete_records([Theirs(self.name, partition, offset)])
        for future in dropped.values():
            future.result(_SECONDS_MAX)


class LoadedTable:
    """A table, read as any program reads it, by its files alone."""

    def __init__(self, out: Path, topic: ProducedTopic) -> None:
        self.out = out
        self.topic = topic

    def numbers(self) -> list[int]:
        """Return the numbers of the published loads."""
        found = [_LOAD.fullmatch(path.name) for path in self.out.iterdir()] if self.out.exists() else []
        return sorted(int(match[1]) for match in found if match is not None)

    def staged(self) -> list[Path]:
        """Return the data files, with something in them, that stand in staging."""
        return [path for path in self.out.glob("_staging/**/*.parquet") if path.stat().st_size]

    def check_rows(self) -> list[int]:
        """Hold every row against what was produced; return where the partitions end, which may be before the topic."""
        offsets: list[list[int]] = [[] for _ in self.topic.ends]
        for row in self._rows():
            partition, offset = row["partition"], row["offset"]
            key = self.topic.key(partition, offset)
            assert row["key"] == key
            assert row["value"] == self.topic.value(partition, offset), f"the value of {key!r} is another"
            assert row["headers"] == [{"key": "place", "value": key}]
            assert row["timestamp"] == self.topic.time(offset)
            offsets[partition].append(offset)
        for partition, found in enumerate(offsets):
            assert sorted(found) == list(range(len(found))), f"partition {partition} lacks records, or has some twice"
        return [len(found) for found in offsets]

    def check_complete(self, address: str, group: str) -> None:
        """After a run that ended well: every record is there once, and the group stands at the end, marked by us."""
        assert self.check_rows() == self.topic.ends
        assert self._plain_count() == sum(self.topic.ends), "a plain reader sees other rows than those of the loads"
        with BlockingClient(address) as client:
            committed = client.fetch(group)
        numbers = self.numbers()
        assert numbers == list(range(1, len(numbers) + 1))
        wanted = {TopicPartition(self.topic.name, p): end for p, end in enumerate(self.topic.ends)}
        assert {key: found.offset for key, found in committed.items()} == wanted
        for key, found in committed.items():
            self._check_mark(key, found, numbers)

    def _check_mark(self, key: TopicPartition, found: Committed, numbers: list[int]) -> None:
        """The mark names the newest load or, where that brought nothing of the partition, none older than its own."""
        mark, _, number = found.metadata.partition(":")
        own = max((n for n in numbers if key in self._ranges(n)), default=numbers[0])
        assert (mark, own <= int(number) <= numbers[-1]) == ("load", True), f"{key} is marked {found.metadata!r}"

    def _ranges(self, number: int) -> set[tuple[str, int]]:
        return {(item["topic"], item["partition"]) for item in self._manifest(number)["ranges"]}

    def _manifest(self, number: int) -> dict[str, Any]:
        return dict(json.loads((self.out / f"load={number:06d}" / "_offsets.json").read_text()))

    def _rows(self) -> Iterator[dict[str, Any]]:
        from pyarrow import parquet  # noqa: PLC0415

        for path in self._files():
            assert f"topic={self.topic.name}" in path.parts
            yield from parquet.ParquetFile(path).read().to_pylist()

    def _files(self) -> list[Path]:
        return sorted(self.out.glob("load=*/**/*.parquet"))

    def _plain_count(self) -> int:
        from pyarrow import dataset  # noqa: PLC0415

        count: int = dataset.dataset(self.out, format="parquet", partitioning="hive").count_rows()
        return count


class LoadedDelta(LoadedTable):
    """A Delta table, read by its log as Delta's protocol says, action by action from the first commit on."""

    def numbers(self) -> list[int]:
        """Return the numbers of the committed loads."""
        return sorted(txn["version"] for txn in self._actions("txn") if txn["appId"] == "offsetd.load")

    def _manifest(self, number: int) -> dict[str, Any]:
        texts = [domain["configuration"] for domain in self._actions("domainMetadata")]
        return next(found for found in map(json.loads, texts) if found["load"] == number)

    def _files(self) -> list[Path]:
        removed = {file["path"] for file in self._actions("remove")}
        return [self.out / file["path"] for file in self._actions("add") if file["path"] not in removed]

    def _plain_count(self) -> int:
        return sum(json.loads(file["stats"])["numRecords"] for file in self._actions("add"))

    def _actions(self, kind: str) -> Iterator[dict[str, Any]]:
        for commit in sorted(self.out.glob("_delta_log/*.json")):
            for line in commit.read_text().splitlines():
                action = json.loads(line)
                if kind in action:
                    yield action[kind]
