"""Entries as bytes: taken apart without decoding them, they are the same entries."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsetd.record import (
    NO_SLOT,
    Generation,
    GenerationMember,
    Reason,
    TopicOffsets,
    UnknownEntry,
    Who,
    decode_entries,
    decode_entry,
    encode_commit,
    encode_generation,
    encode_group_tombstone,
    encode_opening,
    encode_tombstone,
    encode_touch,
    generation_entry,
    read_generation,
    split_entries,
)

WHO = Who("a client", "/127.0.0.1", "")
SLOTS = st.sampled_from([0, 1, 49, 127, 128, 255, 256, 9_999, 65_535])


def body_of(entries: list[bytes]) -> bytes:
    return b"\xdd" + len(entries).to_bytes(4, "big") + b"".join(entries)


@given(slots=st.lists(SLOTS, max_size=8), group=st.text(max_size=300), size=st.integers(1, 400))
def test_a_body_taken_apart_is_the_body_decoded(slots: list[int], group: str, size: int) -> None:
    topic = TopicOffsets("orders", bytes(4 * size), bytes(8 * size), metadata=((0, "m" * size),))
    member = GenerationMember(group, None, "client", "/host", -1, 6_000, bytes(size), b"")
    generation = Generation("consumer", size, None, group, (member,) * 2)
    entries = [encode_opening(3, 1_800_000_000_000, "0.1.0")]
    for slot in slots:
        entries += [
            encode_commit(slot, group, 1_800_000_000_000, WHO, [topic]),
            encode_touch(slot, group, 5, WHO, [("orders", bytes(4))]),
            encode_tombstone(slot, group, 5, WHO, Reason.EXPIRED, [("orders", bytes(4))]),
            encode_group_tombstone(slot, group, 5, WHO, Reason.DELETED),
            encode_generation(slot, group, 5, WHO, generation),
        ]
    body = body_of(entries)

    pieces = list(split_entries(body))

    assert [piece for _, piece in pieces] == entries
    assert [slot for slot, _ in pieces] == [NO_SLOT, *(slot for slot in slots for _ in range(5))]
    assert tuple(decode_entry(piece) for _, piece in pieces) == decode_entries(body)


@pytest.mark.parametrize("entry", [(99, 1, 0), (1, 2, 0), (1, 0, 0)])
def test_an_entry_of_a_later_release_is_refused(entry: tuple[int, int, int]) -> None:
    body = body_of([msgpack.packb(entry)])

    with pytest.raises(UnknownEntry):
        list(split_entries(body))
    with pytest.raises(UnknownEntry):
        decode_entries(body)


@given(
    names=st.lists(st.text(max_size=20), max_size=4),
    instance=st.none() | st.text(max_size=5),
    said=st.binary(max_size=300),
    number=st.integers(0, (1 << 31) - 1),
    protocol=st.none() | st.text(max_size=5),
)
def test_a_generation_comes_back_from_the_log_as_it_was_applied(
    names: list[str], instance: str | None, said: bytes, number: int, protocol: str | None
) -> None:
    members = tuple(GenerationMember(name, instance, name, "/host", -1, number, said, said[::-1]) for name in names)
    generation = Generation("consumer", number, protocol, names[0] if names else None, members)

    live = generation_entry(3, "g", 5, WHO, generation)
    replayed = decode_entry(encode_generation(3, "g", 5, WHO, generation))

    assert replayed[:5] == live[:5]
    assert Who(*replayed[5]) == live[5]
    assert read_generation(replayed[6]) == read_generation(live[6]) == generation
