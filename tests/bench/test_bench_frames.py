"""The generator's frames and its eye for wrong replies: a bench that cannot see a wrong answer measures nothing."""

import pytest

from offsetd.bench.frames import GroupFrames, make_groups
from offsetd.bench.verdict import Verdict, judge_commit, judge_fetch
from protocol.api import OFFSET_COMMIT, OFFSET_FETCH, decode_request, decode_response, encode_response
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

CORRELATION = (77).to_bytes(4, "big")


def group_of(partitions: int, number: int = 3) -> GroupFrames:
    return make_groups(first=number, count=1, partitions=partitions)[0]


@pytest.mark.parametrize("partitions", [1, 10, 100])
def test_a_commit_frame_is_what_the_codec_would_write(partitions: int) -> None:
    group = group_of(partitions)

    header, request = decode_request(bytes(group.next_commit(CORRELATION, 500))[4:])

    assert isinstance(request, OffsetCommitRequest)
    assert (header.api_key, header.correlation_id, request.group_id) == (OFFSET_COMMIT, 77, group.name.decode())
    rows = [
        (topic.name, row.partition_index, row.committed_offset) for topic in request.topics for row in topic.partitions
    ]
    assert rows == [(*place, 500 + step) for step, place in enumerate(group.layout.order)]
    assert len(rows) == partitions


def test_a_fetch_frame_asks_for_all_that_was_committed() -> None:
    group = group_of(10)

    header, request = decode_request(bytes(group.next_fetch(CORRELATION))[4:])

    assert isinstance(request, OffsetFetchRequest)
    asked = request.groups[0]
    assert (header.api_key, asked.group_id) == (OFFSET_FETCH, group.name.decode())
    assert asked.topics is not None
    assert [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes] == group.layout.order


def fetched(group: GroupFrames, value: int) -> OffsetFetchResponse:
    """Return the reply that shows a commit that began at a value."""
    group.value, group.fetch_tail = value, None
    _, reply = decode_response(OFFSET_FETCH, 8, group.wanted_fetch_reply(CORRELATION)[4:])
    assert isinstance(reply, OffsetFetchResponse)
    return reply


def fetch_verdict(group: GroupFrames, reply: OffsetFetchResponse, value: int) -> Verdict:
    frame = encode_response(OFFSET_FETCH, 8, 77, reply)
    return judge_fetch(frame, CORRELATION, group, value)[0]


def test_a_fetch_that_shows_the_last_commit_is_right_in_any_order_of_topics() -> None:
    group = group_of(100)
    reply = fetched(group, 9000)
    shown = reply.groups[0]

    turned = reply._replace(groups=(shown._replace(topics=shown.topics[::-1]),))

    assert fetch_verdict(group, turned, 9000) is Verdict.RIGHT


def test_an_older_value_is_stale() -> None:
    group = group_of(10)

    assert fetch_verdict(group, fetched(group, 8999), 9000) is Verdict.STALE


def test_an_offset_that_is_not_there_is_missing() -> None:
    group = group_of(10)
    reply = fetched(group, 9000)
    shown = reply.groups[0]
    topic = shown.topics[0]
    lost = (topic.partitions[0]._replace(committed_offset=-1), *topic.partitions[1:])

    broken = reply._replace(groups=(shown._replace(topics=(topic._replace(partitions=lost),)),))

    assert fetch_verdict(group, broken, 9000) is Verdict.MISSING


def test_a_partition_that_was_left_out_is_malformed() -> None:
    group = group_of(10)
    reply = fetched(group, 9000)
    shown = reply.groups[0]
    topic = shown.topics[0]

    short = reply._replace(groups=(shown._replace(topics=(topic._replace(partitions=topic.partitions[1:]),)),))

    assert fetch_verdict(group, short, 9000) is Verdict.MALFORMED


def test_another_groups_reply_is_malformed() -> None:
    group, other = group_of(10, 3), group_of(10, 13)

    assert fetch_verdict(group, fetched(other, 9000), 9000) is Verdict.MALFORMED


def test_a_commit_reply_is_judged_by_its_codes_its_partitions_and_its_correlation() -> None:
    group = group_of(10)
    frame = group.wanted_commit_reply(CORRELATION)
    _, reply = decode_response(OFFSET_COMMIT, 8, frame[4:])
    assert isinstance(reply, OffsetCommitResponse)
    topic = reply.topics[0]
    refused = topic._replace(partitions=(topic.partitions[0]._replace(error_code=15), *topic.partitions[1:]))

    assert judge_commit(frame, CORRELATION, group) == (Verdict.RIGHT, 0)
    assert judge_commit(
        encode_response(OFFSET_COMMIT, 8, 77, reply._replace(topics=(refused,))), CORRELATION, group
    ) == (
        Verdict.ERROR,
        15,
    )
    assert judge_commit(encode_response(OFFSET_COMMIT, 8, 78, reply), CORRELATION, group)[0] is Verdict.MALFORMED
    assert judge_commit(encode_response(OFFSET_COMMIT, 8, 77, reply._replace(topics=())), CORRELATION, group)[0] is (
        Verdict.MALFORMED
    )
    assert judge_commit(frame[:-3], CORRELATION, group)[0] is Verdict.MALFORMED


@pytest.mark.parametrize("partitions", [0, 11, 25, 110])
def test_a_number_of_partitions_that_cannot_be_spread_evenly_is_refused(partitions: int) -> None:
    with pytest.raises(ValueError, match="partitions"):
        make_groups(first=0, count=1, partitions=partitions)
