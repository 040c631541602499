"""What the data cluster knows of topics: partitions, where logs start and end, offsets of a time, what is compacted."""

import asyncio
import logging
import re
from collections.abc import Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.plan import Logs
from offsetd.pipeline.load.refusal import BadRequest, LoadRefused

T = TypeVar("T")

_TIMEOUT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Which topics: by name, or all whose whole name a pattern matches."""

    names: tuple[str, ...] = ()
    pattern: str | None = None

    def __post_init__(self) -> None:
        if bool(self.names) == (self.pattern is not None):
            raise BadRequest("name topics with --topic, or give a --pattern, and not both.")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise BadRequest(f"--pattern {self.pattern!r} is no regular expression: {error}.") from error

    def __str__(self) -> str:
        return ", ".join(self.names) if self.pattern is None else f"those that match {self.pattern!r}"

    def choose(self, there: Collection[str]) -> list[str]:
        """Return the wanted ones of those that are there.

        Raises:
            BadRequest: a name is not among them, or the pattern matches none.
        """
        if self.pattern is not None:
            # Kafka's own topics are for those who name them.
            chosen = sorted(t for t in there if re.fullmatch(self.pattern, t) and not t.startswith("__"))
            if not chosen:
                raise BadRequest(f"no topic matches {self.pattern!r}: the cluster has {len(there)}.")
            return chosen
        unknown = sorted(set(self.names) - set(there))
        if unknown:
            raise BadRequest(f"the cluster has no topic {', '.join(unknown)}: check the name and --upstream.")
        return sorted(set(self.names))


def ask_logs(bootstrap: str, topics: Topics, *, time_ms: int | None = None) -> Logs:
    """Ask everything that a plan needs.

    Args:
        time_ms: also ask for the first offsets at this time, in milliseconds since 1970.

    Raises:
        BadRequest: there are no such topics.
        LoadRefused: the cluster cannot be asked.
    """
    return _run(bootstrap, _ask_logs(bootstrap, topics, time_ms))


def ask_ends(bootstrap: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Ask where logs end now, for readers of committed records.

    Raises:
        LoadRefused: the cluster cannot be asked.
    """
    return _run(bootstrap, _ask_ends(bootstrap, tuple(partitions)))


def _run(bootstrap: str, work: Coroutine[Any, Any, T]) -> T:
    from aiokafka.errors import KafkaError  # noqa: PLC0415  # not there without the extra

    async def bounded() -> T:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await work

    # What it has to say reaches us as exceptions; without a handler it would say it on standard error too.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    try:
        return asyncio.run(bounded())
    except (KafkaError, OSError, TimeoutError) as error:
        words = str(error) or type(error).__name__
        raise LoadRefused(f"the Kafka cluster at {bootstrap} cannot be asked: {words}. Is --upstream right?") from error


async def _ask_logs(bootstrap: str, topics: Topics, time_ms: int | None) -> Logs:
    from aiokafka.admin import AIOKafkaAdminClient  # noqa: PLC0415

    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, client_id="offsetd-load")
    await admin.start()
    try:
        chosen = topics.choose(await admin.list_topics())
        partitions = await _partitions(admin, chosen)
        compacted = await _compacted(admin, chosen)
    finally:
        await admin.close()
    async with _consumer(bootstrap, "read_committed") as consumer:
        starts = _plain(await consumer.beginning_offsets(partitions))
        ends = _plain(await consumer.end_offsets(partitions))
        times: dict[TopicPartition, int] = {}
        if time_ms is not None:
            found = await consumer.offsets_for_times(dict.fromkeys(partitions, time_ms))
            times = {
                TopicPartition(key.topic, key.partition): ends[key] if value is None else value.offset
                for key, value in found.items()
            }
    async with _consumer(bootstrap, "read_uncommitted") as consumer:
        highs = _plain(await consumer.end_offsets(partitions))
    return Logs(starts=starts, ends=ends, highs=highs, times=times, compacted=compacted)


async def _ask_ends(bootstrap: str, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, int]:
    from aiokafka import TopicPartition as Theirs  # noqa: PLC0415

    if not partitions:
        return {}
    async with _consumer(bootstrap, "read_committed") as consumer:
        return _plain(await consumer.end_offsets([Theirs(*key) for key in partitions]))


def _consumer(bootstrap: str, isolation_level: str) -> Any:
    """Return a consumer of nothing: it belongs to no group, and only asks."""
    from aiokafka import AIOKafkaConsumer  # noqa: PLC0415

    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id="offsetd-load",
        group_id=None,
        enable_auto_commit=False,
        isolation_level=isolation_level,
    )


def _plain(found: Any) -> dict[TopicPartition, int]:
    return {TopicPartition(key.topic, key.partition): offset for key, offset in found.items()}


async def _partitions(admin: Any, topics: list[str]) -> list[Any]:
    from aiokafka import TopicPartition as Theirs  # noqa: PLC0415

    return [
        Theirs(described["topic"], partition["partition"])
        for described in await admin.describe_topics(topics)
        for partition in described["partitions"]
    ]


async def _compacted(admin: Any, topics: list[str]) -> frozenset[str]:
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # noqa: PLC0415

    asked = [ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": None}) for topic in topics]
    found = set()
    for response in await admin.describe_configs(asked):
        for error_code, message, _, topic, entries in response.resources:
            if error_code:
                raise LoadRefused(f"the cluster does not tell the settings of {topic}: {message or error_code}.")
            found |= {topic for entry in entries if entry[0] == "cleanup.policy" and "compact" in (entry[1] or "")}
    return frozenset(found)
