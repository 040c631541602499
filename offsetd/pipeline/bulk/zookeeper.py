"""Offsets in a dump of ZooKeeper's tree, where Kafka's old consumers kept them; pure.

An offset is the decimal text of ``/consumers/GROUP/offsets/TOPIC/PARTITION``, under a chroot or not. As text, a line
is the path and its value, with ``:`` (as Kafka's own ExportZkOffsets wrote it), ``=`` or blanks between them. As JSON,
a dump is a map of paths to values, a tree of maps, or objects with ``path`` and ``data`` (a list, or one per line).
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from offsetd.pipeline.bulk.row import Malformed, OffsetRow, make_row

_OFFSET: Final = re.compile(r"(?:/[^/]+)*?/consumers/(?P<group>[^/]+)/offsets/(?P<topic>[^/]+)/(?P<partition>[^/]+)")
#: The partition and its value, which no slash can be in; the path before it is cut off first.
_VALUE: Final = re.compile(r"(?P<partition>\d+(?:-\d+)?)\s*(?:[:=]|\s)\s*(?P<value>.*)|(?P<bare>\S*)")
_VALUE_KEYS: Final = ("data", "value")


class Znode(NamedTuple):
    """A path and what it holds."""

    path: str
    value: str | None


def parse_znode(znode: Znode) -> OffsetRow | None:
    """Return the offset that a znode holds; None if it is another kind of znode.

    Raises:
        Malformed: it is where an offset should be, and is none.
    """
    found = _OFFSET.fullmatch(znode.path)
    if found is None:
        return None
    if re.fullmatch(r"\d+-\d+", found["partition"]):
        raise Malformed("it is of Kafka 0.7, which kept BROKER-PARTITION: such offsets mean nothing to later releases")
    if znode.value is None or znode.value.strip() in ("", "null"):
        raise Malformed("the znode is empty")
    return make_row(found["group"], found["topic"], found["partition"], znode.value.strip())


def znode_of_line(line: str) -> Znode:
    """Cut a line of a text dump into path and value."""
    head, slash, tail = line.strip().rpartition("/")
    found = _VALUE.fullmatch(tail)
    if not slash or found is None or found["bare"] is not None:
        return Znode(line.strip(), None)
    return Znode(f"{head}/{found['partition']}", found["value"])


def znodes_of_json(text: str) -> Iterator[Znode]:
    """Yield the znodes of a JSON dump.

    Raises:
        Malformed: it is not JSON.
    """
    try:
        documents = [json.loads(text)]
    except ValueError:
        try:
            documents = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise Malformed(f"the dump is not JSON: {error}") from error
    for document in documents:
        yield from _walk("", document)


def _walk(path: str, value: Any) -> Iterator[Znode]:
    if isinstance(value, list):
        for item in value:
            yield from _walk(path, item)
    elif isinstance(value, dict) and isinstance(value.get("path"), str):
        held = next((value[key] for key in _VALUE_KEYS if key in value), None)
        yield Znode(value["path"], None if held is None else str(held))
        yield from _walk(path, value.get("children") or [])
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(name if name.startswith("/") else f"{path}/{name}", inner)
    else:
        yield Znode(path, None if value is None else str(value))
