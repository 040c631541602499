"""What clients must know before they can commit: brokers, topics, the coordinator of a group. Pure answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from offsetd.coordinator.topics import Topics, is_legal
from protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse, ApiVersionsResponseApiKey
from protocol.describe_cluster import DescribeClusterRequest, DescribeClusterResponse, DescribeClusterResponseBroker
from protocol.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse, DescribeConfigsResponseResult
from protocol.errors import Code
from protocol.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NO_ID = bytes(16)
#: What Kafka answers for the operations that somebody may do where no ACLs are set.
_TOPIC_OPERATIONS = 3576
_CLUSTER_OPERATIONS = 8096
_UNASKED = -(1 << 31)
_GROUP_KEY, _TRANSACTION_KEY = 0, 1


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this broker is to its clients: the same words in every answer, or librdkafka resets its connection."""

    cluster_id: str
    broker_id: int
    host: str
    port: int


def answer_api_versions(
    request: ApiVersionsRequest, *, version: int, served: Sequence[tuple[int, int, int]]
) -> ApiVersionsResponse:
    """List what is served; a client that misspells its software is told so, as in Kafka."""
    if version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            return ApiVersionsResponse(error_code=Code.INVALID_REQUEST, api_keys=())
    return ApiVersionsResponse(
        error_code=Code.NONE,
        api_keys=tuple(
            ApiVersionsResponseApiKey(api_key=key, min_version=low, max_version=high) for key, low, high in served
        ),
    )


def refuse_api_versions(own: Sequence[tuple[int, int, int]]) -> ApiVersionsResponse:
    """Say that this version of ApiVersions is not known, with the range that is: always in the layout of version 0."""
    return answer_api_versions(ApiVersionsRequest(), version=0, served=own)._replace(
        error_code=Code.UNSUPPORTED_VERSION
    )


def answer_metadata(request: MetadataRequest, *, version: int, identity: Identity, topics: Topics) -> MetadataResponse:
    """Name this broker as the only one, controller and leader of everything, and describe the topics asked for."""
    brokers = (MetadataResponseBroker(node_id=identity.broker_id, host=identity.host, port=identity.port),)
    asked = request.topics
    wants_all = asked is None or (version == 0 and not asked)
    for topic in asked or ():
        if topic.name is None and (version < 12 or topic.topic_id == _NO_ID):
            # Kafka's own answers to a topic without a name: all that was asked fails, and no broker is named.
            return _refused_metadata(asked or (), Code.INVALID_REQUEST if version < 12 else Code.UNKNOWN_SERVER_ERROR)
    operations = _TOPIC_OPERATIONS if request.include_topic_authorized_operations else _UNASKED
    found: dict[str | bytes, MetadataResponseTopic] = {}
    missing: dict[str | bytes, MetadataResponseTopic] = {}
    if wants_all:
        for name in topics.names():
            found[name] = _topic(name, identity, topics, operations)
    for topic in () if wants_all else asked or ():
        if version >= 12 and topic.topic_id != _NO_ID:
            known = topics.name_of(topic.topic_id)
            if known is None:
                missing[topic.topic_id] = MetadataResponseTopic(
                    error_code=Code.UNKNOWN_TOPIC_ID, name=None, topic_id=topic.topic_id
                )
            else:
                found[known] = _topic(known, identity, topics, operations)
            continue
        name = topic.name or ""
        if not is_legal(name):
            missing[name] = MetadataResponseTopic(error_code=Code.INVALID_TOPIC_EXCEPTION, name=name)
        elif topics.exists(name) or (request.allow_auto_topic_creation and topics.ask(name)):
            found[name] = _topic(name, identity, topics, operations)
        else:
            missing[name] = MetadataResponseTopic(error_code=Code.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    return MetadataResponse(
        brokers=brokers,
        cluster_id=identity.cluster_id,
        controller_id=identity.broker_id,
        topics=(*found.values(), *missing.values()),
        cluster_authorized_operations=(
            _CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else _UNASKED
        ),
    )


def _refused_metadata(asked: Sequence[MetadataRequestTopic], code: Code) -> MetadataResponse:
    return MetadataResponse(
        topics=tuple(MetadataResponseTopic(error_code=code, name=topic.name or "") for topic in asked),
        cluster_id=None,
    )


def _topic(name: str, identity: Identity, topics: Topics, operations: int) -> MetadataResponseTopic:
    here = (identity.broker_id,)
    return MetadataResponseTopic(
        name=name,
        topic_id=topics.topic_id(name),
        is_internal=name == "__consumer_offsets",
        partitions=tuple(
            MetadataResponsePartition(
                partition_index=partition,
                leader_id=identity.broker_id,
                leader_epoch=0,
                replica_nodes=here,
                isr_nodes=here,
            )
            for partition in range(topics.partitions(name))
        ),
        topic_authorized_operations=operations,
    )


def answer_find_coordinator(
    request: FindCoordinatorRequest, *, version: int, identity: Identity
) -> FindCoordinatorResponse:
    """Name this broker for every group; it may still be loading, which a commit or a fetch will be told."""
    code = _refuse_key_type(request.key_type, version)
    found = code is Code.NONE
    node = (identity.broker_id, identity.host, identity.port) if found else (-1, "", -1)
    if version >= 4:
        return FindCoordinatorResponse(
            coordinators=tuple(
                FindCoordinatorResponseCoordinator(
                    key=key, node_id=node[0], host=node[1], port=node[2], error_code=code, error_message=""
                )
                for key in request.coordinator_keys
            )
        )
    # Kafka writes the word NONE here on success, and some clients print it.
    return FindCoordinatorResponse(
        error_code=code, error_message=code.name, node_id=node[0], host=node[1], port=node[2]
    )


def _refuse_key_type(key_type: int, version: int) -> Code:
    if version == 0 or key_type == _GROUP_KEY:
        return Code.NONE
    # Transactions and share groups have coordinators of their own, which offsetd is not.
    return Code.COORDINATOR_NOT_AVAILABLE if key_type == _TRANSACTION_KEY else Code.INVALID_REQUEST


def answer_describe_cluster(request: DescribeClusterRequest, *, identity: Identity) -> DescribeClusterResponse:
    """Describe the cluster of one; only the brokers' endpoints are served here."""
    if request.endpoint_type != 1:
        code = Code.MISMATCHED_ENDPOINT_TYPE if request.endpoint_type == 2 else Code.UNSUPPORTED_ENDPOINT_TYPE
        return DescribeClusterResponse(
            error_code=code,
            error_message="this listener serves brokers: ask for endpoint type 1",
            endpoint_type=request.endpoint_type,
            cluster_id="",
        )
    return DescribeClusterResponse(
        cluster_id=identity.cluster_id,
        controller_id=identity.broker_id,
        brokers=(DescribeClusterResponseBroker(broker_id=identity.broker_id, host=identity.host, port=identity.port),),
        cluster_authorized_operations=(
            _CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else _UNASKED
        ),
    )


def answer_describe_configs(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Answer with no entries: a topic has none here, and Sarama and kafka-topics only need to be answered."""
    return DescribeConfigsResponse(
        results=tuple(
            DescribeConfigsResponseResult(
                error_code=Code.NONE,
                error_message="",
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        )
    )
