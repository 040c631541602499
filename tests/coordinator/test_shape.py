"""A shape takes a frame only if every byte but the offsets is its own, and then writes what the encoder writes."""

from struct import pack

import pytest

from offsetd.coordinator.commit import decide_commit
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.shape import Shape, shape_key, variant_key
from offsetd.coordinator.topics import Topics
from offsetd.record import TopicOffsets, Who, encode_commit
from offsetd.table import TopicIndex
from protocol.api import OFFSET_COMMIT, decode_request, encode_request
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.shape import offset_positions

NOW = 1_800_000_000_000
WHO = Who("client", "/10.0.0.1", "m-1")
VERSIONS = range(10)


def request_of(offset: int, *, group: str = "g", first: int = 0) -> OffsetCommitRequest:
    """Two topics with metadata and epochs; the offsets count up."""
    rows = tuple(
        OffsetCommitRequestPartition(
            partition_index=first + number,
            committed_offset=offset + number,
            committed_leader_epoch=number - 1,
            committed_metadata=("", None, "note")[number],
        )
        for number in range(3)
    )
    topics = (OffsetCommitRequestTopic("orders", rows), OffsetCommitRequestTopic("payments", rows[:1]))
    return OffsetCommitRequest(group_id=group, member_id="m-1", topics=topics)


def frame_of(request: OffsetCommitRequest, version: int, *, client_id: str | None = "client", number: int = 5) -> bytes:
    return encode_request(OFFSET_COMMIT, version, number, client_id, request)[4:]


def shape_of(frame: bytes) -> Shape:
    header, request = decode_request(frame)
    assert isinstance(request, OffsetCommitRequest)
    topics = Topics(cluster_id="c", index=TopicIndex(), limits=Limits(), known={})
    decision = decide_commit(
        request, version=header.api_version, group=None, topics=topics, limits=Limits(), now_ms=NOW
    )
    return Shape(
        frame,
        offset_positions(frame),
        version=header.api_version,
        request=request,
        slot=7,
        who=WHO,
        topics=decision.topics,
        reply=b"size5678the rest",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_other_offsets_and_another_correlation_id_fit(version: int) -> None:
    shape = shape_of(frame_of(request_of(100), version))

    fitting = shape.offsets(frame_of(request_of(-7), version, number=-1))

    assert fitting == pack(">4q", -7, -6, -5, -7)
    assert shape.partitions == 4
    assert shape.highest == (("orders", 2), ("payments", 0))
    assert (shape.reply_head, shape.reply_tail) == (b"size", b"the rest")


@pytest.mark.parametrize("version", VERSIONS)
def test_any_other_byte_that_differs_does_not_fit(version: int) -> None:
    frame = frame_of(request_of(100), version)
    shape = shape_of(frame)
    holes = {4, 5, 6, 7} | {place + byte for place in offset_positions(frame) for byte in range(8)}

    for place in range(len(frame)):
        changed = bytearray(frame)
        changed[place] ^= 0x01
        # The first four bytes are part of the key by which a shape is found.
        if place >= 4:
            assert (shape.offsets(bytes(changed)) is not None) is (place in holes), place
    assert shape.offsets(frame[:-1]) is None
    assert shape.offsets(frame + b"\0") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_entry_is_the_one_that_the_encoder_makes(version: int) -> None:
    shape = shape_of(frame_of(request_of(100), version))
    later = frame_of(request_of(9000), version)
    offsets = shape.offsets(later)
    assert offsets is not None

    entry, topics = shape.fill(offsets, NOW + 77)

    assert entry == encode_commit(7, "g", NOW + 77, WHO, shape_topics(later))
    assert topics == tuple(tuple(topic) for topic in shape_topics(later))


def shape_topics(frame: bytes) -> tuple[TopicOffsets, ...]:
    """Return the columns that the ordinary way makes of a frame."""
    return tuple(topic for topic, _, _ in shape_of(frame).plan)


def test_a_time_that_msgpack_writes_shorter_is_a_fault_of_ours() -> None:
    shape = shape_of(frame_of(request_of(100), 9))

    with pytest.raises(AssertionError, match="a clock before"):
        shape.fill(bytes(32), (1 << 32) - 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_key_tells_versions_clients_and_groups_apart_and_nothing_else(version: int) -> None:
    base = shape_key(frame_of(request_of(1), version))
    same = shape_key(frame_of(request_of(2, first=5), version, number=9))
    others = [
        shape_key(frame_of(request_of(1), (version + 1) % 10)),
        shape_key(frame_of(request_of(1), version, client_id="other")),
        shape_key(frame_of(request_of(1), version, client_id=None)),
        shape_key(frame_of(request_of(1, group="h"), version)),
        shape_key(frame_of(request_of(1, group="gg"), version)),
    ]

    assert same == base
    assert base not in others
    assert len(set(others)) == len(others)


@pytest.mark.parametrize("version", VERSIONS)
def test_variants_of_a_key_differ_by_their_first_partition_and_their_size(version: int) -> None:
    frames = [frame_of(request_of(1, first=first), version) for first in (0, 1)]
    longer = frame_of(request_of(1)._replace(topics=request_of(1).topics[:1]), version)
    shape = shape_of(frames[0])

    variants = {variant_key(b"key", frame, shape.first) for frame in (*frames, longer)}

    assert len(variants) == 3
    assert variant_key(b"key", frames[0], shape.first) == variant_key(
        b"key", frame_of(request_of(77), version), shape.first
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_frame_too_short_for_a_key_is_left_to_the_decoder(version: int) -> None:
    frame = frame_of(request_of(1), version)

    for size in range(8, 11):
        with pytest.raises(IndexError):
            shape_key(frame[:size])
