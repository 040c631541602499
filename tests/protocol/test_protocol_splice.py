"""A frame put together from rows is the frame that the ordinary encoder writes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.api import APIS, LIST_GROUPS, METADATA, OFFSET_FETCH, encode_response
from protocol.list_groups import ListGroupsResponse, ListGroupsResponseGroup
from protocol.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from protocol.offset_fetch import OffsetFetchResponse, OffsetFetchResponsePartition, OffsetFetchResponseTopic
from protocol.splice import Rows, around_last_array, row_encoder, splice, splice_last, write_count
from tests.protocol.messages import messages

_NO_TOPIC = OffsetFetchResponseTopic(
    name="", partitions=(OffsetFetchResponsePartition(partition_index=-1, committed_offset=-1),)
)
_NO_DESCRIPTION = MetadataResponseTopic(
    name="", partitions=(MetadataResponsePartition(partition_index=-1, leader_id=-1, leader_epoch=-1),)
)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(data=st.data(), version=st.integers(0, APIS[METADATA].max_version))
def test_descriptions_of_topics_put_in_one_by_one_make_the_same_frame(data: st.DataObject, version: int) -> None:
    response: MetadataResponse = data.draw(messages(MetadataResponse, version))
    rows = [row_encoder(METADATA, version, MetadataResponseTopic)(topic) for topic in response.topics]

    made = splice(
        METADATA, version, 7, response._replace(topics=(_NO_DESCRIPTION,)), _NO_DESCRIPTION, Rows(len(rows), rows)
    )

    assert made == encode_response(METADATA, version, 7, response)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(data=st.data(), version=st.integers(0, 7))
def test_offsets_put_in_row_by_row_make_the_same_frame(data: st.DataObject, version: int) -> None:
    response: OffsetFetchResponse = data.draw(messages(OffsetFetchResponse, version))
    pieces: list[bytes] = []
    for topic in response.topics:
        head, tail = around_last_array(OFFSET_FETCH, version, topic._replace(partitions=()))
        encode = row_encoder(OFFSET_FETCH, version, OffsetFetchResponsePartition)
        count = write_count(OFFSET_FETCH, version, len(topic.partitions))
        pieces += (head, count, *map(encode, topic.partitions), tail)

    made = splice(
        OFFSET_FETCH,
        version,
        -7,
        response._replace(topics=(_NO_TOPIC,)),
        _NO_TOPIC,
        Rows(len(response.topics), pieces),
    )

    assert made == encode_response(OFFSET_FETCH, version, -7, response)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(data=st.data(), version=st.integers(0, APIS[LIST_GROUPS].max_version))
def test_a_last_array_put_in_row_by_row_makes_the_same_frame(data: st.DataObject, version: int) -> None:
    response: ListGroupsResponse = data.draw(messages(ListGroupsResponse, version))
    rows = [row_encoder(LIST_GROUPS, version, ListGroupsResponseGroup)(group) for group in response.groups]

    made = splice_last(LIST_GROUPS, version, 7, response._replace(groups=()), Rows(len(rows), rows))

    assert made == encode_response(LIST_GROUPS, version, 7, response)


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 20_000])
@pytest.mark.parametrize("version", [5, 6])
def test_any_number_of_rows_is_counted_as_the_encoder_counts_them(version: int, count: int) -> None:
    topic = OffsetFetchResponseTopic(name="t")
    response = OffsetFetchResponse(topics=(topic,) * count)
    rows = Rows(count, [row_encoder(OFFSET_FETCH, version, OffsetFetchResponseTopic)(topic)] * count)

    made = splice(OFFSET_FETCH, version, 1, OffsetFetchResponse(topics=(_NO_TOPIC,)), _NO_TOPIC, rows)

    assert made == encode_response(OFFSET_FETCH, version, 1, response)


def test_a_marker_that_a_text_could_hold_is_a_fault_of_ours() -> None:
    marker = OffsetFetchResponseTopic(name="marker")

    with pytest.raises(AssertionError, match="a marker that a text could hold"):
        splice(OFFSET_FETCH, 5, 1, OffsetFetchResponse(topics=(marker,)), marker, Rows(0, []))
