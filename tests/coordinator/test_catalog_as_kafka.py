"""Metadata by id, coordinators of other types, clusters and settings: odd questions get Kafka's answers."""

import pytest

from offsetd.coordinator.catalog import (
    Identity,
    answer_describe_cluster,
    answer_describe_configs,
    answer_find_coordinator,
    answer_metadata,
)
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.table import TopicIndex
from protocol.describe_cluster import DescribeClusterRequest
from protocol.describe_configs import DescribeConfigsRequest, DescribeConfigsRequestResource
from protocol.errors import Code
from protocol.find_coordinator import FindCoordinatorRequest
from protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

HERE = Identity(cluster_id="c", broker_id=1, host="127.0.0.1", port=9092)
TOPICS = Topics(
    cluster_id="c",
    index=TopicIndex(),
    limits=Limits(),
    known={"orders": KnownTopic(1), "payments": KnownTopic(1)},
)
ORDERS = TOPICS.topic_id("orders")
UNKNOWN = bytes(range(16))
NO_ID = bytes(16)


def described(*asked: tuple[bytes, str | None], version: int, operations: bool = False) -> MetadataResponse:
    request = MetadataRequest(
        topics=tuple(MetadataRequestTopic(topic_id=topic_id, name=name) for topic_id, name in asked),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
    )
    response, topics = answer_metadata(request, version=version, identity=HERE, topics=TOPICS)
    return response._replace(topics=tuple(topics))


@pytest.mark.parametrize("asked", [(ORDERS, None), (ORDERS, "orders"), (NO_ID, None)])
def test_an_id_before_version_12_refuses_all_that_was_asked(asked: tuple[bytes, str | None]) -> None:
    found = described(asked, (NO_ID, "payments"), version=11)

    assert [(topic.error_code, topic.topic_id) for topic in found.topics] == [(42, asked[0]), (42, NO_ID)]
    assert (found.brokers, found.cluster_id, found.controller_id) == ((), None, -1)


def test_neither_name_nor_id_refuses_all_that_was_asked_and_the_request() -> None:
    found = described((NO_ID, None), (NO_ID, "payments"), version=13)

    assert [topic.error_code for topic in found.topics] == [-1, -1]
    assert found.error_code == Code.UNKNOWN_SERVER_ERROR


def test_once_a_client_asks_by_id_its_names_are_not_looked_at() -> None:
    found = described((ORDERS, "payments"), (NO_ID, "payments"), (NO_ID, None), version=12)

    assert [(topic.name, topic.error_code) for topic in found.topics] == [("orders", 0)]


def test_unknown_ids_come_first_and_each_id_once() -> None:
    found = described((ORDERS, None), (UNKNOWN, None), (ORDERS, None), (UNKNOWN, None), version=12)

    assert [(topic.name, topic.error_code) for topic in found.topics] == [(None, 100), ("orders", 0)]


def test_unknown_names_come_last_and_say_what_may_be_done_with_them() -> None:
    found = described((NO_ID, "nowhere"), (NO_ID, "orders"), (NO_ID, "a b"), version=13, operations=True)

    assert [(topic.name, topic.error_code, topic.topic_authorized_operations) for topic in found.topics] == [
        ("orders", 0, 3576),
        ("nowhere", 3, 3576),
        ("a b", 17, 3576),
    ]


@pytest.mark.parametrize(("key_type", "code", "words"), [(0, 0, False), (1, 15, False), (2, 42, False), (3, 42, True)])
def test_only_a_key_type_that_nobody_knows_is_refused_in_words(key_type: int, code: int, words: bool) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=("a", "b"))
    found = answer_find_coordinator(request, version=6, identity=HERE).coordinators

    assert [(one.error_code, bool(one.error_message)) for one in found] == [(code, words)] * 2


@pytest.mark.parametrize(("endpoint_type", "code"), [(2, 114), (0, 115), (3, 115)])
def test_a_refused_endpoint_type_is_answered_as_what_this_is(endpoint_type: int, code: int) -> None:
    found = answer_describe_cluster(DescribeClusterRequest(endpoint_type=endpoint_type), identity=HERE)

    assert (found.error_code, found.endpoint_type, found.cluster_id, found.brokers) == (code, 1, "", ())


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "orders", 0),
        (2, "nowhere", Code.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a b", Code.INVALID_TOPIC_EXCEPTION),
        (2, "", Code.INVALID_TOPIC_EXCEPTION),
        (4, "1", 0),
        (4, "", 0),
        (4, "2", Code.INVALID_REQUEST),
        (8, "1", 0),
        (8, "", Code.INVALID_REQUEST),
        (16, "x", 0),
        (16, "", Code.INVALID_REQUEST),
        (32, "g", 0),
        (32, "", Code.INVALID_REQUEST),
        (99, "x", Code.INVALID_REQUEST),
    ],
)
def test_settings_of_what_does_not_exist_are_refused(kind: int, name: str, code: int) -> None:
    request = DescribeConfigsRequest(resources=(DescribeConfigsRequestResource(kind, name, None),))
    (found,) = answer_describe_configs(request, identity=HERE, topics=TOPICS).results

    assert (found.error_code, found.resource_type, found.resource_name, found.configs) == (code, kind, name, ())
    assert bool(found.error_message) is (code in {Code.INVALID_REQUEST, Code.INVALID_TOPIC_EXCEPTION})
