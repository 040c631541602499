"""Varints, tag sections and the notation of versions."""

import pytest

from protocol.schema import NEVER, Versions, parse_versions
from protocol.wire import (
    Malformed,
    StringTooLong,
    Truncated,
    read_string_length,
    read_uvarint,
    skip_tags,
    write_string_length,
    write_tags,
    write_uvarint,
)

_VARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**21, "80808001"),
    (2**28, "8080808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "data"), _VARINTS)
def test_a_varint_is_written_in_as_few_bytes_as_can_be_and_read_back(value: int, data: str) -> None:
    assert write_uvarint(value).hex() == data
    assert read_uvarint(b"x" + bytes.fromhex(data) + b"x", 1) == (value, 1 + len(data) // 2)


@pytest.mark.parametrize("size", range(2, 6))
def test_a_padded_varint_is_read(size: int) -> None:
    assert read_uvarint(b"\x81" + b"\x80" * (size - 2) + b"\x00", 0) == (1, size)


def test_what_the_fifth_byte_says_beyond_32_bits_is_lost_as_in_kafka() -> None:
    assert read_uvarint(b"\x80\x80\x80\x80\x7f", 0) == (0xF0000000, 5)


def test_a_varint_ends_with_its_fifth_byte() -> None:
    with pytest.raises(Malformed):
        read_uvarint(b"\x80" * 5 + b"\x00", 0)


def test_a_length_of_a_string_stays_within_what_a_plain_string_could_say() -> None:
    assert read_string_length(write_string_length(32767), 0) == (32768, 3)
    with pytest.raises(Malformed):
        read_string_length(write_uvarint(32769), 0)
    with pytest.raises(StringTooLong):
        write_string_length(32768)


def test_a_section_of_tags_is_skipped_to_its_end() -> None:
    section = write_tags([(0, b"zero"), (3, b""), (300, b"x" * 200)])

    assert skip_tags(b"?" + section + b"!", 1) == 1 + len(section)
    for size in range(1, len(section)):
        with pytest.raises((Truncated, IndexError)):
            skip_tags(section[:size], 0)


@pytest.mark.parametrize(
    ("text", "versions"),
    [("", NEVER), ("3", Versions(3, 3)), ("3+", Versions(3, 32767)), ("3-5", Versions(3, 5)), ("0", Versions(0, 0))],
)
def test_versions_are_written_as_kafka_writes_them(text: str, versions: Versions) -> None:
    assert parse_versions(text) == versions


def test_a_range_of_versions_holds_its_ends() -> None:
    found = [version for version in range(10) if version in parse_versions("3-5")]

    assert found == [3, 4, 5]
    assert 0 not in NEVER
