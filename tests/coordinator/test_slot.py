"""Slots agree with Kafka's on every group: the table was read off a real broker's arithmetic."""

import pytest

from offsetd.coordinator.slot import java_hash, slot_of, utf16_units


@pytest.mark.parametrize(
    ("group", "hashed", "slot"),
    [
        ("", 0, 0),
        ("g1", 3242, 42),
        ("grp", 102629, 29),
        ("my-group", -1906497762, 12),
        ("test-consumer-group", -1793216381, 31),
        ("console-consumer-12345", 158455506, 6),
        ("connect-cluster", 1440343063, 13),
        ("grüppe", -1233264812, 12),
        ("群组", 1045408, 8),
        ("\U0001f600", 1772899, 49),
        ("polygenelubricants", -2147483648, 0),
    ],
)
def test_a_group_has_the_slot_that_kafka_gives_it(group: str, hashed: int, slot: int) -> None:
    assert java_hash(group) == hashed
    assert slot_of(group, 50) == slot


def test_metadata_is_measured_in_utf16_units() -> None:
    assert [utf16_units(text) for text in ("", "abc", "ü", "\U0001f600")] == [0, 3, 1, 2]
