"""What clients are told before they can commit: APIs, brokers, topics, coordinators."""

import pytest

from offsetd.coordinator.catalog import (
    Identity,
    answer_api_versions,
    answer_describe_cluster,
    answer_find_coordinator,
    answer_metadata,
    refuse_api_versions,
)
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics
from offsetd.table import TopicIndex
from protocol.api import API_VERSIONS, APIS, decode_response, encode_response
from protocol.api_versions import ApiVersionsRequest
from protocol.describe_cluster import DescribeClusterRequest
from protocol.errors import Code
from protocol.find_coordinator import FindCoordinatorRequest
from protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

HERE = Identity(cluster_id="abcdefghijklmnopqrstug", broker_id=3, host="broker.example", port=19092)
SERVED = [(api.key, api.min_version, api.max_version) for api in APIS.values()]
UNASKED = -(1 << 31)


def topics(*names: str, asked_max: int = 10, partitions: int = 1) -> Topics:
    return Topics(
        cluster_id=HERE.cluster_id,
        index=TopicIndex(),
        limits=Limits(topics_asked_max=asked_max, topic_partitions=partitions),
        known={name: KnownTopic(2) for name in names},
    )


# --- ApiVersions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
def test_every_api_is_listed_with_its_versions(version: int) -> None:
    request = ApiVersionsRequest(client_software_name="rdkafka", client_software_version="2.16.0")

    answer = answer_api_versions(request, version=version, served=SERVED)

    assert answer.error_code == 0
    assert [tuple(one) for one in answer.api_keys] == SERVED


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("a", True),
        ("apache-kafka-java", True),
        ("a.b-c", True),
        ("", False),
        ("-a", False),
        ("a-", False),
        (".", False),
        ("a b", False),
        ("a_b", False),
        ("\u00e4", False),
        ("a\n", False),
    ],
)
@pytest.mark.parametrize("version", [2, 3, 4])
def test_software_must_be_named_as_kafka_wants_it_from_version_3_on(version: int, name: str, legal: bool) -> None:
    for names in ((name, "1.0"), ("client", name)):
        answer = answer_api_versions(ApiVersionsRequest(*names), version=version, served=SERVED)

        refused = version >= 3 and not legal
        assert answer.error_code == (Code.INVALID_REQUEST if refused else 0)
        assert bool(answer.api_keys) is not refused


def test_an_unknown_version_is_told_the_known_ones_in_a_layout_that_everybody_reads() -> None:
    frame = encode_response(API_VERSIONS, 0, 9, refuse_api_versions([(API_VERSIONS, 0, 4)]))

    assert frame[4:] == b"\0\0\0\x09" + b"\0\x23" + b"\0\0\0\x01" + b"\0\x12\0\0\0\x04"
    assert decode_response(API_VERSIONS, 0, frame[4:])[1].error_code == Code.UNSUPPORTED_VERSION  # type: ignore[union-attr]


# --- Metadata -------------------------------------------------------------------------------------------------------


def described(
    known: Topics, asked: list[str] | None, *, version: int = 9, create: bool = False, operations: bool = False
) -> MetadataResponse:
    request = MetadataRequest(
        topics=None if asked is None else tuple(MetadataRequestTopic(name=name) for name in asked),
        allow_auto_topic_creation=create,
        include_cluster_authorized_operations=operations,
        include_topic_authorized_operations=operations,
    )
    response, found = answer_metadata(request, version=version, identity=HERE, topics=known)
    return response._replace(topics=tuple(found))


def names(response: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", range(14))
def test_this_broker_is_the_only_one_and_controller_and_leader_of_everything(version: int) -> None:
    """A null cluster id or a controller of -1 breaks admin clients, some with a crash."""
    answer = described(topics("orders"), ["orders"], version=version)

    assert [tuple(broker) for broker in answer.brokers] == [(3, "broker.example", 19092, None)]
    assert (answer.cluster_id, answer.controller_id, answer.error_code) == (HERE.cluster_id, 3, 0)
    assert [(row.partition_index, row.leader_id, row.error_code) for row in answer.topics[0].partitions] == [
        (0, 3, 0),
        (1, 3, 0),
    ]
    assert {(row.replica_nodes, row.isr_nodes, row.offline_replicas) for row in answer.topics[0].partitions} == {
        ((3,), (3,), ())
    }


@pytest.mark.parametrize("version", range(14))
def test_all_topics_are_asked_for_by_null_and_in_version_0_by_none(version: int) -> None:
    known = topics("b", "a")
    everything = described(known, None if version else [], version=version)
    nothing = described(known, [], version=max(version, 1))

    assert names(everything) == [("a", 0), ("b", 0)]
    assert names(nothing) == []


def test_each_topic_is_described_once_the_known_ones_first() -> None:
    answer = described(topics("orders", "payments"), ["nowhere", "payments", "a b", "orders", "payments", "nowhere"])

    assert names(answer) == [("payments", 0), ("orders", 0), ("nowhere", 3), ("a b", 17)]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "\u00e4", "a/b", "n" * 250])
def test_a_name_that_no_topic_can_have_is_refused_and_never_made(name: str) -> None:
    known = topics()
    answer = described(known, [name], create=True)

    assert names(answer) == [(name, Code.INVALID_TOPIC_EXCEPTION)]
    assert known.names() == []


def test_a_topic_is_made_known_only_where_that_is_allowed() -> None:
    known = topics(partitions=4)
    refused = described(known, ["orders"], create=False)
    made = described(known, ["n" * 249], create=True)

    assert names(refused) == [("orders", Code.UNKNOWN_TOPIC_OR_PARTITION)]
    assert names(made) == [("n" * 249, 0)]
    assert len(made.topics[0].partitions) == 4
    assert known.names() == ["n" * 249]


def test_asking_for_more_than_the_bound_forgets_the_oldest() -> None:
    known = topics("stated", asked_max=2)
    answer = described(known, ["a", "b", "c", "stated"], create=True)

    assert names(answer) == [("a", 0), ("b", 0), ("c", 0), ("stated", 0)]
    assert known.names() == ["b", "c", "stated"]


def test_with_a_bound_of_none_nothing_is_made_known() -> None:
    known = topics("stated", asked_max=0)
    answer = described(known, ["a", "stated"], create=True)

    assert names(answer) == [("stated", 0), ("a", Code.UNKNOWN_TOPIC_OR_PARTITION)]
    assert known.names() == ["stated"]


def test_ids_lead_back_to_the_names_they_came_with() -> None:
    known = topics("orders")
    by_name = described(known, ["orders"], version=12)
    request = MetadataRequest(topics=(MetadataRequestTopic(topic_id=by_name.topics[0].topic_id, name=None),))

    _, by_id = answer_metadata(request, version=12, identity=HERE, topics=known)

    assert tuple(by_id) == by_name.topics


def test_operations_are_told_only_to_those_who_ask() -> None:
    known = topics("orders")
    asked = described(known, ["orders"], operations=True)
    unasked = described(known, ["orders"])

    assert (asked.cluster_authorized_operations, asked.topics[0].topic_authorized_operations) == (8096, 3576)
    assert (unasked.cluster_authorized_operations, unasked.topics[0].topic_authorized_operations) == (UNASKED, UNASKED)


# --- FindCoordinator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(7))
def test_every_group_is_sent_to_the_broker_that_metadata_names(version: int) -> None:
    """With another host string, librdkafka resets its connection again and again."""
    answer = answer_find_coordinator(
        FindCoordinatorRequest(key="g", coordinator_keys=("b", "", "a")), version=version, identity=HERE
    )

    if version >= 4:
        assert [tuple(one) for one in answer.coordinators] == [
            (key, 3, "broker.example", 19092, 0, "") for key in ("b", "", "a")
        ]
    else:
        assert (answer.node_id, answer.host, answer.port, answer.error_code) == (3, "broker.example", 19092, 0)
        assert answer.error_message == "NONE"


@pytest.mark.parametrize(("key_type", "code"), [(0, 0), (1, 15), (2, 42), (3, 42), (-1, 42)])
@pytest.mark.parametrize("version", range(1, 7))
def test_only_groups_have_their_coordinator_here(version: int, key_type: int, code: int) -> None:
    """An unknown coordinator is 15 and no other code: kafkajs takes any other for the end."""
    request = FindCoordinatorRequest(key="t", key_type=key_type, coordinator_keys=("t",))
    answer = answer_find_coordinator(request, version=version, identity=HERE)

    found = answer.coordinators[0] if version >= 4 else answer
    assert found.error_code == code
    assert (found.node_id, found.host, found.port) == ((3, "broker.example", 19092) if code == 0 else (-1, "", -1))


def test_no_keys_have_no_coordinators() -> None:
    assert answer_find_coordinator(FindCoordinatorRequest(), version=4, identity=HERE).coordinators == ()


# --- DescribeCluster ------------------------------------------------------------------------------------------------


def test_the_cluster_is_described_in_the_words_of_metadata() -> None:
    answer = answer_describe_cluster(DescribeClusterRequest(), identity=HERE)
    asked = answer_describe_cluster(DescribeClusterRequest(include_cluster_authorized_operations=True), identity=HERE)

    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, HERE.cluster_id, 3)
    assert [tuple(broker) for broker in answer.brokers] == [(3, "broker.example", 19092, None, False)]
    assert (answer.cluster_authorized_operations, asked.cluster_authorized_operations) == (UNASKED, 8096)
