"""What a load writes beside its data: its ranges, its files, and where every partition of the table stands after it.

Pure: text in, text out. A manifest carries all positions, so that planning reads the newest alone.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from offsetd.client.position import TopicPartition
from offsetd.pipeline.load.plan import Check, Range, Reason
from offsetd.pipeline.load.refusal import LoadRefused

NAME: Final = "_offsets.json"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file of a load. It holds offsets of one partition, rising, each once."""

    path: str
    """Below the load's directory."""
    topic: str
    partition: int
    rows: int
    bytes: int
    first: int
    """Its smallest offset."""
    last: int
    """Its largest offset."""
    unparsed: int = 0
    """Rows whose value is kept as it came."""

    @property
    def key(self) -> TopicPartition:
        """Its partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One published load."""

    number: int
    group: str | None
    writer: str
    """Drawn by the loader that wrote it, so that of two it can tell its own."""
    created_at: str
    """ISO 8601, in UTC."""
    value_format: str
    ranges: tuple[Range, ...]
    rows: Mapping[TopicPartition, int]
    """Of each range; of none where they are counted after publishing."""
    positions: Mapping[TopicPartition, int]
    checks: Mapping[str, Check]
    """By topic, the check that the rows passed."""
    files: tuple[DataFile, ...] = ()
    skipped: tuple[Range, ...] = ()
    supersedes: tuple[int, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What later versions or other tools wrote, kept as it is."""


def encode(manifest: Manifest, *, indent: int | None = 1) -> str:
    """Return the text of `_offsets.json`.

    Args:
        indent: for people; None where only programs read it.
    """
    return json.dumps(
        {
            **manifest.facts,
            "format": FORMAT,
            "load": manifest.number,
            "group": manifest.group,
            "writer": manifest.writer,
            "created_at": manifest.created_at,
            "value_format": manifest.value_format,
            "supersedes": list(manifest.supersedes),
            "positions": encode_positions(manifest.positions),
            "checks": {topic: check.value for topic, check in manifest.checks.items()},
            "ranges": [{**_encode_range(item), "rows": manifest.rows.get(item.key)} for item in manifest.ranges],
            "skipped": [_encode_range(item) for item in manifest.skipped],
            "files": [{name: getattr(file, name) for name in DataFile.__slots__} for file in manifest.files],
        },
        indent=indent,
    )


def decode(text: str, where: str) -> Manifest:
    """Return the manifest in a text.

    Args:
        where: how an error names the text.

    Raises:
        LoadRefused: it is no manifest, or a newer offsetd wrote it.
    """
    try:
        read = json.loads(text)
        if read["format"] > FORMAT:
            raise LoadRefused(
                f"{where} has format {read['format']}, and this offsetd knows {FORMAT}: a newer one wrote it. Update."
            )
        return _decode(read)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LoadRefused(
            f"{where} is no manifest of a load ({error!r}): is it damaged, or another program's?"
        ) from error


def _decode(read: dict[str, Any]) -> Manifest:
    ours = {"format", "load", "group", "writer", "created_at", "value_format", "supersedes", "positions", "checks"}
    ours |= {"ranges", "skipped", "files"}
    return Manifest(
        number=read["load"],
        group=read["group"],
        writer=read["writer"],
        created_at=read["created_at"],
        value_format=read["value_format"],
        ranges=_decode_ranges(read["ranges"]),
        rows={
            TopicPartition(item["topic"], item["partition"]): item["rows"]
            for item in read["ranges"]
            if item["rows"] is not None
        },
        positions=decode_positions(read["positions"]),
        checks={topic: Check(check) for topic, check in read["checks"].items()},
        files=tuple(DataFile(**file) for file in read["files"]),
        skipped=_decode_ranges(read["skipped"]),
        supersedes=tuple(read["supersedes"]),
        facts={name: value for name, value in read.items() if name not in ours},
    )


def encode_positions(positions: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition, as JSON can hold them and Spark's options want them."""
    found: dict[str, dict[str, int]] = {}
    for key, offset in sorted(positions.items()):
        found.setdefault(key.topic, {})[str(key.partition)] = offset
    return found


def decode_positions(read: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Return what `encode_positions` made."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in read.items()
        for partition, offset in partitions.items()
    }


def _encode_range(item: Range) -> dict[str, Any]:
    return {
        "topic": item.topic,
        "partition": item.partition,
        "start": item.start,
        "end": item.end,
        "reason": item.reason.name.lower(),
    }


def _decode_ranges(read: Iterable[Mapping[str, Any]]) -> tuple[Range, ...]:
    return tuple(
        Range(
            topic=item["topic"],
            partition=item["partition"],
            start=item["start"],
            end=item["end"],
            reason=Reason[item["reason"].upper()],
        )
        for item in read
    )
