"""What members say to one another: read and written as other libraries do, and nothing breaks on what is no word."""

import importlib
import warnings

import pytest
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.client.consumer_protocol import (
    Subscription,
    read_assignment,
    read_streams,
    read_subscription,
    write_assignment,
    write_sticky,
    write_streams,
    write_subscription,
)
from offsetd.client.position import TopicPartition

with warnings.catch_warnings():
    # kafka-python's way to read its own schemas is deprecated, which is no fault of ours.
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka_python = importlib.import_module("kafka.protocol.consumer.metadata")
ConsumerProtocolAssignment = kafka_python.ConsumerProtocolAssignment
ConsumerProtocolSubscription = kafka_python.ConsumerProtocolSubscription

steady = settings(derandomize=True, deadline=None, database=None, max_examples=150)
TOPICS = frozenset({"orders", "bills"})
PARTS = (TopicPartition("bills", 7), TopicPartition("orders", 0), TopicPartition("orders", 2))
ROWS = [("bills", [7]), ("orders", [0, 2])]


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_a_subscription_is_read(version: int) -> None:
    said = ConsumerProtocolSubscription(topics=["bills", "orders"], user_data=b"", version=version).encode()

    assert read_subscription(said).topics == TOPICS


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_an_assignment_is_read(version: int) -> None:
    rows = [ConsumerProtocolAssignment.TopicPartition(topic, parts) for topic, parts in ROWS]
    said = ConsumerProtocolAssignment(assigned_partitions=rows, user_data=None, version=version).encode()

    assert read_assignment(said) == PARTS


def test_what_is_written_is_read_by_kafka_python_and_aiokafka() -> None:
    subscription, assignment = write_subscription(TOPICS, b"user data"), write_assignment(PARTS)
    ours = ConsumerProtocolSubscription.decode(subscription)
    theirs = ConsumerProtocolMemberMetadata.decode(subscription)
    given_ours = ConsumerProtocolAssignment.decode(assignment)
    given_theirs = ConsumerProtocolMemberAssignment.decode(assignment)

    assert (ours.version, ours.topics, ours.user_data) == (1, ["bills", "orders"], b"user data")
    assert (theirs.subscription, theirs.user_data) == (["bills", "orders"], b"user data")
    assert [(row.topic, row.partitions) for row in given_ours.assigned_partitions] == ROWS
    assert sorted(given_theirs.partitions()) == list(PARTS)


def test_what_a_sticky_member_had_is_said_as_in_kafka() -> None:
    data = write_sticky(PARTS, 7)
    theirs = StickyAssignorUserDataV1.decode(data)
    found = read_subscription(write_subscription(TOPICS, data), sticky=True)

    assert (theirs.previous_assignment, theirs.generation) == (ROWS, 7)
    assert (found.owned, found.generation, found.streams) == (PARTS, 7, 1)


def test_an_older_sticky_member_says_no_generation() -> None:
    data = write_sticky(PARTS, 7)[:-4]

    assert read_subscription(write_subscription(TOPICS, data), sticky=True)[2:] == (PARTS, -1)


def test_what_a_member_had_is_also_read_from_the_newer_fields() -> None:
    rows = [ConsumerProtocolSubscription.TopicPartition(topic, parts) for topic, parts in ROWS]
    said = ConsumerProtocolSubscription(
        topics=["orders"], user_data=b"", owned_partitions=rows, generation_id=4, version=3
    ).encode()

    assert read_subscription(said, sticky=True) == Subscription(frozenset({"orders"}), 1, PARTS, 4)


def test_streams_travel_in_the_user_data_of_our_own_members() -> None:
    said = write_subscription(TOPICS, write_streams(4))

    assert read_subscription(said) == Subscription(TOPICS, 4)
    assert write_streams(1) is None


@pytest.mark.parametrize(
    "user_data", [b"", b"\x00", b"ofs\x01", b"ofs\x01\x00\x00", b"ofs\x01\xff\xff", b"abcd\x00\x07"]
)
def test_user_data_of_strangers_is_one_stream(user_data: bytes) -> None:
    assert read_streams(user_data) == 1


def test_a_version_of_tomorrow_is_read_as_far_as_it_is_known() -> None:
    said = write_subscription(TOPICS, None)
    longer = b"\x00\x63" + ConsumerProtocolSubscription(topics=["orders"], version=3).encode()[2:] + b"and more"

    assert read_subscription(longer).topics == {"orders"}
    assert read_subscription(b"\xff\xff" + said[2:]) == Subscription()


def test_an_empty_assignment_is_none() -> None:
    assert read_assignment(b"") == ()


def test_partitions_and_topics_that_cannot_be_are_left_out() -> None:
    rows = [ConsumerProtocolAssignment.TopicPartition("orders", [-1, 3, 3])]
    said = ConsumerProtocolAssignment(assigned_partitions=rows, user_data=None, version=0).encode()
    odd = write_subscription(frozenset({"orders", "", "x" * 250, "\ufffd" * 9_000}), None)

    assert read_assignment(said) == (TopicPartition("orders", 3),)
    assert read_subscription(odd).topics == {"orders"}


@steady
@given(data=st.binary(max_size=200))
def test_no_bytes_of_strangers_break_us(data: bytes) -> None:
    for found in (data, b"\x00\x01" + data, b"\x00\x03" + data, write_subscription(TOPICS, data)):
        read_subscription(found)
        read_subscription(found, sticky=True)
        read_assignment(found)


@pytest.mark.parametrize("whole", [write_subscription(TOPICS, write_sticky(PARTS, 7)), write_assignment(PARTS)])
def test_no_part_of_a_word_breaks_us(whole: bytes) -> None:
    for end in range(len(whole)):
        read_subscription(whole[:end], sticky=True)
        read_assignment(whole[:end])


def test_a_count_alone_takes_no_memory() -> None:
    assert read_subscription(b"\x00\x00\x7f\xff\xff\xff") == Subscription()
    assert read_assignment(b"\x00\x00\x7f\xff\xff\xff") == ()
