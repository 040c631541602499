"""The rows of a checkpoint: what it keeps of a group, as bytes, and how they become a table again. Pure."""

from collections.abc import Iterator
from struct import Struct
from sys import intern
from typing import Any

import msgpack

from offsetd.group import ABSENT, ABSENT_MS, ROW_BYTES, Group
from offsetd.record import Who, read_generation
from offsetd.table import WHOS_MAX, SlotTable, known_who


def checkpoint_rows(group: Group) -> Iterator[tuple[str, bytes]]:
    """Yield what a checkpoint keeps of a group: a value per topic, and one under "" for the group itself."""
    yield "", msgpack.packb((group.who,) if group.generation is None else (group.who, *group.generation))
    for name in group.names():
        sides = [None if side is None else side.get(name) for side in (group.sparse, group.metadata, group.expiries)]
        pairs = [None if not side else tuple(side.items()) for side in sides]
        yield name, msgpack.packb((bytes(group.topics.get(name, b"")), *pairs), use_bin_type=True)


# What msgpack writes around columns of up to 255 bytes that have no side tables, which is what most values are.
_PLAIN_HEAD = b"\x94\xc4"
_PLAIN_TAIL = b"\xc0\xc0\xc0"
# Who committed, by packed value: a few clients make most groups.
_packed_whos: dict[bytes, Who | None] = {}


def restore(table: SlotTable, group_id: str, name: str, value: bytes) -> None:
    """Put one value of a checkpoint back; rows of a group may come in any order."""
    group = table.groups.get(group_id)
    if group is None:
        table.version += 1
        group = table.groups[group_id] = Group()
        group.version = table.version
    if name == "":
        _restore_group(group, value)
        return
    rest: tuple[Any, ...] = ()
    if value[:2] == _PLAIN_HEAD and value[-3:] == _PLAIN_TAIL and value[2] == len(value) - 6:
        cells = value[3:-3]
    else:
        cells, *rest = msgpack.unpackb(value, use_list=False)
    name = intern(name)
    rows = len(cells) // ROW_BYTES
    if cells:
        live = rows
        # Eight such bytes may also be an offset, or lie across two times, so only their absence is believed at once.
        if ABSENT in cells:
            holes = Struct(f">{live}q").unpack_from(cells, 8 * live).count(ABSENT_MS)
            if holes:
                group.holes = (group.holes or set()) | {name}
                live -= holes
        group.topics[name] = bytearray(cells)
        group.live += live
        table.live += live
    if rest:
        _restore_sides(table, group, name, *rest)
        rows = group.partitions(name)
    index = table.index
    groups = index.groups.get(name)
    if groups is not None and rows <= index.partitions.get(name, 0):
        groups.add(group)
    else:
        index.add(name, group, rows)


def _restore_sides(table: SlotTable, group: Group, name: str, sparse: Any, metadata: Any, expiries: Any) -> None:
    if sparse:
        group.sparse = group.sparse or {}
        group.sparse[name] = dict(sparse)
        group.live += len(sparse)
        table.live += len(sparse)
    if metadata:
        group.metadata = group.metadata or {}
        group.metadata[name] = dict(metadata)
    if expiries:
        group.expiries = group.expiries or {}
        group.expiries[name] = dict(expiries)


def _restore_group(group: Group, value: bytes) -> None:
    """Put back what is known of a group itself: who committed last, and its last generation of members."""
    if value in _packed_whos:
        group.who = _packed_whos[value]
        return
    who, *generation = msgpack.unpackb(value, use_list=False)
    group.who = None if who is None else known_who(who)
    if generation:
        group.generation = generation[0], read_generation(generation[1])
        return
    if len(_packed_whos) >= WHOS_MAX:
        _packed_whos.clear()
    _packed_whos[value] = group.who
