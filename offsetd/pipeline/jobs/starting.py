"""`start_from_group`: options for Spark's Kafka source that let a read begin where a group stands."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from offsetd.client import BlockingClient, Limits, TopicPartition

#: What to do about a partition that the group has no offset of.
Missing: TypeAlias = Literal["refuse", "earliest", "latest"]

TIMEOUT_S: Final = 60.0
#: How Spark's Kafka source says the two ends of a log in its JSON.
_ENDS: Final = {"earliest": -2, "latest": -1}
_SHOWN_MAX: Final = 10


class StartRefused(Exception):
    """A read cannot start where the group stands; says which partitions, and what would help."""


def start_from_group(
    group: str,
    bootstrap: str,
    *,
    topics: Iterable[str] | None = None,
    upstream: str | None = None,
    missing: Missing = "refuse",
    for_stream: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> dict[str, str]:
    """Return options for ``spark.read`` or ``spark.readStream`` of format ``kafka``.

    Args:
        bootstrap: where the group's offsets are.
        topics: those to read; all that the group has offsets of if not given.
        upstream: where the messages are. Given, every partition of the topics is read, and ``kafka.bootstrap.servers``
            is among the options; not given, the partitions that the group has offsets of.
        missing: what to do about partitions that the group has no offset of.
        for_stream: let the query subscribe to the topics, so that it also finds partitions made later. A query that
            has a checkpoint goes on from there, whatever is said here.

    Raises:
        StartRefused: there is nothing to start from, or a partition has no offset and `missing` says refuse.
        ClientError: the offsets could not be read.
    """
    if missing not in ("refuse", *_ENDS):
        raise ValueError(f"missing is {missing!r}, want 'refuse', 'earliest' or 'latest'")
    with BlockingClient(bootstrap, client_id="offsetd-spark", limits=Limits(total_timeout_s=timeout_s)) as client:
        committed = {at: found.offset for at, found in client.fetch(group).items()}
    names = sorted(set(topics) if topics is not None else {at.topic for at in committed})
    if not names:
        raise StartRefused(f"group {group!r} has no offsets: name the topics, or check the group's name")
    there = asyncio.run(_partitions(upstream, names, timeout_s)) if upstream is not None else None
    starts = choose_starts(group, names, committed, there, missing)
    return options(starts, upstream=upstream, subscribe=for_stream and upstream is not None)


def choose_starts(
    group: str,
    topics: list[str],
    committed: Mapping[TopicPartition, int],
    there: Iterable[TopicPartition] | None,
    missing: Missing,
) -> dict[TopicPartition, int]:
    """Return where each partition starts; -2 and -1 stand for the ends of its log.

    Args:
        there: the partitions that the topics have; None if nobody was asked.

    Raises:
        StartRefused: as `start_from_group`.
    """
    held = {at: offset for at, offset in committed.items() if at.topic in topics}
    if there is None:
        unknown = sorted(set(topics) - {at.topic for at in held})
        if unknown:
            raise StartRefused(
                f"group {group!r} has no offset of {', '.join(unknown)}, so their partitions are not known: "
                "say upstream=HOST:PORT"
            )
        return held
    wanted = sorted(there)
    lacking = [at for at in wanted if at not in held]
    if lacking and missing == "refuse":
        shown = ", ".join(map(str, lacking[:_SHOWN_MAX])) + (" …" if len(lacking) > _SHOWN_MAX else "")
        raise StartRefused(
            f"group {group!r} has no offset of {len(lacking)} partitions ({shown}): say missing='earliest' or 'latest'"
        )
    return {at: held[at] if at in held else _ENDS[missing] for at in wanted}


def options(starts: Mapping[TopicPartition, int], *, upstream: str | None, subscribe: bool) -> dict[str, str]:
    """Say starts as Spark's Kafka source wants them."""
    by_topic: dict[str, dict[str, int]] = {}
    for at, offset in sorted(starts.items()):
        by_topic.setdefault(at.topic, {})[str(at.partition)] = offset
    said = {"startingOffsets": json.dumps(by_topic)}
    if subscribe:
        said["subscribe"] = ",".join(by_topic)
    else:
        said["assign"] = json.dumps({topic: [int(number) for number in row] for topic, row in by_topic.items()})
    if upstream is not None:
        said["kafka.bootstrap.servers"] = upstream
    return said


async def _partitions(upstream: str, topics: list[str], timeout_s: float) -> list[TopicPartition]:
    # Imported here: it comes with the extra.
    from aiokafka.admin import AIOKafkaAdminClient  # noqa: PLC0415
    from aiokafka.errors import KafkaError  # noqa: PLC0415

    admin: Any = AIOKafkaAdminClient(bootstrap_servers=upstream, request_timeout_ms=int(timeout_s * 1000))
    try:
        await admin.start()
        described = await admin.describe_topics(topics)
    except KafkaError as error:
        raise StartRefused(f"the partitions could not be asked of {upstream}: {error}") from error
    finally:
        await admin.close()
    unknown = [row["topic"] for row in described if row["error_code"] or not row["partitions"]]
    if unknown:
        raise StartRefused(f"{upstream} has no topic {', '.join(sorted(unknown))}: check the names")
    return [TopicPartition(row["topic"], part["partition"]) for row in described for part in row["partitions"]]
