"""What a consumer's metadata names, and that no bytes break the reading of it."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsetd.coordinator.subscription import subscribed_topics


def metadata(*topics: str, version: int = 1, user_data: bytes | None = None) -> bytes:
    names = b"".join(pack(">h", len(name.encode())) + name.encode() for name in topics)
    tail = pack(">i", -1) if user_data is None else pack(">i", len(user_data)) + user_data
    return pack(">hi", version, len(topics)) + names + tail


@given(topics=st.lists(st.text(max_size=30), max_size=5), version=st.integers(-1, 9), user_data=st.none() | st.binary())
def test_the_topics_of_every_version_are_found(topics: list[str], version: int, user_data: bytes | None) -> None:
    said = metadata(*topics, version=version, user_data=user_data)

    assert subscribed_topics(said) == frozenset(topics)
    assert subscribed_topics(said + b"fields of a later version") == frozenset(topics)


@given(said=st.binary(max_size=200))
def test_no_bytes_break_it(said: bytes) -> None:
    found = subscribed_topics(said)

    assert found is None or all(isinstance(name, str) for name in found)


@given(topics=st.lists(st.text(max_size=10), max_size=4), user_data=st.binary(max_size=10), cut=st.integers(1, 1000))
def test_metadata_that_ends_early_names_nothing(topics: list[str], user_data: bytes, cut: int) -> None:
    said = metadata(*topics, user_data=user_data)

    assert subscribed_topics(said[: -min(cut, len(said))]) is None


@pytest.mark.parametrize(
    "said",
    [
        pack(">hi", 0, -1) + pack(">i", -1),
        pack(">hi", 0, 2**31 - 1) + bytes(100),
        pack(">hih", 0, 1, -1) + pack(">i", -1),
        pack(">hih", 0, 1, 2**15 - 1) + b"t",
        pack(">hi", 0, 0) + pack(">i", 1),
        pack(">hi", 0, 0) + pack(">i", 2**31 - 1),
    ],
)
def test_counts_and_lengths_that_cannot_be_are_not_believed(said: bytes) -> None:
    assert subscribed_topics(said) is None


def test_letters_that_are_none_name_a_topic_that_nobody_has() -> None:
    said = pack(">hih", 1, 2, 2) + b"\xff\xfe" + pack(">h", 1) + b"t" + pack(">i", -1)

    assert subscribed_topics(said) == frozenset(("\ufffd\ufffd", "t"))
