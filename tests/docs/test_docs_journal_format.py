"""The page of the journal's format: its example, its tables and its names are those of the code."""

import re
from pathlib import Path
from struct import pack, unpack

import crc32c
import msgpack
import pytest

from offsetd.history.columns import schema
from offsetd.journal.batch import cluster_seed, encode_batch, frame_crc
from offsetd.journal.checkpoint import Checkpoint, row_key
from offsetd.journal.compact import compact
from offsetd.journal.marker import Marker, encode_marker
from offsetd.journal.segment import encode_header, segment_name
from offsetd.record import KNOWN, Kind, Reason, TopicOffsets, Who, encode_commit, encode_opening
from offsetd.settings import TABLE
from tests.segments import CLUSTER, CLUSTER_ID

PAGE = (Path(__file__).parents[2] / "docs" / "journal-format.md").read_text()
OPENED_MS = 1_767_225_600_000
COMMITTED_MS = OPENED_MS + 1_234


def example() -> bytes:
    """Return the segment that the page shows: one slot, an opening, a commit of two partitions."""
    header = encode_header(
        cluster=CLUSTER, first_number=1, previous_crc=0, epoch=1, created_ms=OPENED_MS, next_sequences=[0]
    )
    orders = TopicOffsets("orders", pack(">2i", 0, 1), pack(">2q", 42, 1_000_000), metadata=((1, "hi"),))
    entries = [
        (encode_opening(1, OPENED_MS, "0.1.0"), OPENED_MS),
        (encode_commit(0, "billing", COMMITTED_MS, Who("app", "/10.0.0.7", ""), [orders]), COMMITTED_MS),
    ]
    frames: list[bytes] = []
    for number, (entry, time_ms) in enumerate(entries, start=1):
        frames.append(
            encode_batch(
                [entry],
                seed=cluster_seed(CLUSTER),
                number=number,
                previous_crc=frame_crc(frames[-1]) if frames else 0,
                synced_number=number - 1,
                epoch=1,
                time_ms=time_ms,
            )
        )
    return b"".join((header, *frames))


def hex_lines(data: bytes) -> str:
    """Return bytes as the page prints them: position, sixteen bytes, what of them can be read."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:04x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {text}".rstrip())
    return "\n".join(lines)


def section(title: str) -> str:
    """Return the text under a heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"the page has no section {title!r}"
    return found[1]


def tables(text: str) -> list[list[list[str]]]:
    """Return the cells of each table in a text, without its head and ruler."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [[[cell.strip() for cell in line.split("|")[1:-1]] for line in each.splitlines()[2:]] for each in found]


def test_the_example_is_what_the_code_writes() -> None:
    assert f"```\n{hex_lines(example())}\n```" in section("An example")


def test_each_line_that_explains_the_example_quotes_its_bytes() -> None:
    data = example()
    explained = 0
    for cells in tables(section("An example"))[0]:
        quoted = re.fullmatch(r"`([0-9a-f ]+)`", cells[1])
        assert quoted is not None, cells
        start = int(cells[0], 16)
        expected = bytes.fromhex(quoted[1])

        assert data[start : start + len(expected)] == expected, cells
        assert start == explained, f"the line before {cells} ends elsewhere"
        explained += len(expected)
    assert explained == len(data)


def test_a_reader_written_from_the_page_finds_the_commit() -> None:
    """Positions as the tables of the page give them, and nothing of ours."""
    data = example()
    length = int.from_bytes(data[12:16], "little")
    opening = length
    second = opening + 56 + int.from_bytes(data[opening + 12 : opening + 16], "little")
    second += -second % 8
    size = int.from_bytes(data[second + 12 : second + 16], "little")
    ((kind, version, slot, group, time_ms, who, topics),) = msgpack.unpackb(data[second + 56 : second + 56 + size])
    name, partitions, offsets, epochs, times, expiries, metadata = topics[0]

    for frame in (data[opening:second], data[second:]):
        assert crc32c.crc32c(data[16:32] + frame[24:32] + frame[8:]) == int.from_bytes(frame[4:8], "little")
    assert (kind, version, slot, group, time_ms) == (1, 1, 0, "billing", COMMITTED_MS)
    assert (who, name) == (["app", "/10.0.0.7", ""], "orders")
    assert (unpack(">2i", partitions), unpack(">2q", offsets)) == ((0, 1), (42, 1_000_000))
    assert (epochs, times, expiries, metadata) == (None, None, None, [[1, "hi"]])


def test_the_table_of_kinds_is_the_code_s() -> None:
    kinds = {int(number): (name, version) for number, name, version, _ in tables(section("Entries"))[0]}

    assert set(kinds) == set(Kind)
    for kind in Kind:
        name, version = kinds[kind]
        assert name.replace("-", " ") == kind.name.lower().replace("_", " ")
        assert version == (str(KNOWN[kind]) if kind in KNOWN else "reserved")


@pytest.mark.parametrize("reason", Reason)
def test_the_reasons_of_a_tombstone_are_the_code_s(reason: Reason) -> None:
    assert f"{int(reason)} {reason.name.lower()}" in section("Entries")


def test_the_marker_s_positions_are_the_code_s() -> None:
    data = encode_marker(Marker(number=1, first_number=2, position=3, crc=4))

    (fields,) = tables(section("Durable marker and clean-stop file"))
    table = [(int(at), int(size)) for at, size, _ in fields]
    assert [int.from_bytes(data[at : at + size], "little") for at, size in table[1:5]] == [1, 2, 3, 4]
    assert sum(size for _, size in table) == len(data)


def test_the_checkpoint_s_keys_and_values_are_the_code_s(tmp_path: Path) -> None:
    text = section("Checkpoint")
    path = tmp_path / segment_name(1)
    path.write_bytes(example())
    with Checkpoint.create(tmp_path / "checkpoint", cluster_id=CLUSTER_ID, made_by="test") as checkpoint:
        compact(checkpoint, [path], cluster_id=CLUSTER_ID, history=None)
        keys = dict(checkpoint._db.iterator())

    meta = {key.decode(): msgpack.unpackb(value) for key, value in keys.items() if key.startswith(b"m")}
    assert sorted(meta) == sorted(re.findall(r"^\| `(m\w+)`", text, re.MULTILINE))
    crc = frame_crc(example()[0xA8:])
    assert meta["mplace"] == [2, crc, 1, COMMITTED_MS]
    assert meta["mslots"] == [[0, 2, COMMITTED_MS]]
    key = row_key(0, "billing", "orders")
    cells = pack(">4q2i", 42, 1_000_000, COMMITTED_MS, COMMITTED_MS, -1, -1)
    assert msgpack.unpackb(keys[key]) == [cells, None, [[1, "hi"]], None]
    assert msgpack.unpackb(keys[row_key(0, "billing", "")]) == [["app", "/10.0.0.7", ""]]
    assert f"`{key.hex(' ')}`" in text
    assert f"`{keys[key].hex(' ')}`" in text


def test_the_columns_of_sealed_history_are_the_code_s() -> None:
    text = section("Sealed history")
    columns = [(cells[0].strip("`"), cells[1]) for cells in tables(text)[0]]

    assert columns == [(field.name, re.split(r"[<\[]", str(field.type))[0]) for field in schema()]
    for kind in map(Kind, KNOWN):
        assert f"{int(kind)} {kind.name.lower().replace('_', ' ')}" in text
    (_, members) = text.split("| `members` | list |")
    assert re.findall(r"`(\w+)`", members.splitlines()[0]) == [
        field.name for field in schema().field("members").type.value_type
    ]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:disk|log|history|journal)\.[a-z.]+)`", PAGE))))
def test_the_settings_that_the_page_names_exist(name: str) -> None:
    assert name in {about.name for about in TABLE}
