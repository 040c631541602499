"""What clients must know before they can commit: brokers, topics, the coordinator of a group. Pure answers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

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
#: What can have settings: topics, brokers and their loggers; subscriptions to clients' metrics, and groups.
_TOPIC_RESOURCE, _BROKER_RESOURCE, _LOGGERS_RESOURCE = 2, 4, 8
_RESOURCES = (_TOPIC_RESOURCE, _BROKER_RESOURCE, _LOGGERS_RESOURCE, 16, 32)
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
#: These, and share groups.
_KEY_TYPES = (_GROUP_KEY, _TRANSACTION_KEY, 2)


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


def answer_metadata(
    request: MetadataRequest, *, version: int, identity: Identity, topics: Topics, refusal: Code = Code.NONE
) -> tuple[MetadataResponse, Iterator[MetadataResponseTopic]]:
    """Name this broker as the only one, controller and leader of everything, and describe the topics asked for.

    They may be many, so they come one by one beside a response without them.

    Args:
        refusal: what to say of each topic instead of describing it.
    """
    brokers = (MetadataResponseBroker(node_id=identity.broker_id, host=identity.host, port=identity.port),)
    asked = request.topics
    wants_all = asked is None or (version == 0 and not asked)
    ids = [topic.topic_id for topic in asked or () if topic.topic_id != _NO_ID]
    nameless = any(topic.name is None for topic in asked or ())
    # Kafka's own answers: an id before its time, or neither name nor id. All that was asked fails, no broker is named.
    if version < 12 and (ids or nameless):
        return _refused_metadata(asked or (), Code.INVALID_REQUEST)
    if nameless and not ids:
        return _refused_metadata(asked or (), Code.UNKNOWN_SERVER_ERROR)
    operations = _TOPIC_OPERATIONS if request.include_topic_authorized_operations else _UNASKED
    answers: Iterator[MetadataResponseTopic]
    if wants_all:
        answers = (_topic(name, identity, topics, operations, refusal) for name in topics.names())
    elif ids:
        answers = _topics_by_id(ids, identity, topics, operations, refusal)
    else:
        names = [topic.name or "" for topic in asked or ()]
        create = request.allow_auto_topic_creation
        answers = _topics_by_name(names, identity, topics, operations, refusal, create=create)
    response = MetadataResponse(
        brokers=brokers,
        cluster_id=identity.cluster_id,
        controller_id=identity.broker_id,
        cluster_authorized_operations=(
            _CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else _UNASKED
        ),
    )
    return response, answers


def _refused_metadata(
    asked: Sequence[MetadataRequestTopic], code: Code
) -> tuple[MetadataResponse, Iterator[MetadataResponseTopic]]:
    refused = (
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id) for topic in asked
    )
    return MetadataResponse(cluster_id=None, error_code=code), refused


def _topics_by_id(
    ids: Sequence[bytes], identity: Identity, topics: Topics, operations: int, refusal: Code
) -> Iterator[MetadataResponseTopic]:
    """Describe each id once, the unknown ones first; once a client asks by id, its names are not looked at."""
    names = {topic_id: topics.name_of(topic_id) for topic_id in ids}
    for topic_id, name in names.items():
        if name is None:
            yield MetadataResponseTopic(error_code=Code.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    for name in names.values():
        if name is not None:
            yield _topic(name, identity, topics, operations, refusal)


def _topics_by_name(
    names: Sequence[str], identity: Identity, topics: Topics, operations: int, refusal: Code, *, create: bool
) -> Iterator[MetadataResponseTopic]:
    """Describe each name once, the known ones first."""
    known = {
        name: is_legal(name) and (topics.exists(name) or (create and topics.ask(name))) for name in dict.fromkeys(names)
    }
    # While slots are being loaded a topic may yet turn out to exist, and clients ask again after this code.
    nowhere = Code.UNKNOWN_TOPIC_OR_PARTITION if topics.are_whole() else Code.LEADER_NOT_AVAILABLE
    return chain(
        (_topic(name, identity, topics, operations, refusal) for name, exists in known.items() if exists),
        (
            MetadataResponseTopic(
                error_code=nowhere if is_legal(name) else Code.INVALID_TOPIC_EXCEPTION,
                name=name,
                topic_authorized_operations=operations,
            )
            for name, exists in known.items()
            if not exists
        ),
    )


def _topic(name: str, identity: Identity, topics: Topics, operations: int, refusal: Code) -> MetadataResponseTopic:
    here = (identity.broker_id,)
    return MetadataResponseTopic(
        error_code=refusal,
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
            for partition in range(topics.partitions(name) if refusal is Code.NONE else 0)
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
        # Kafka has words only for a request that fails as a whole.
        words = "" if request.key_type in _KEY_TYPES else f"there is no key type {request.key_type}"
        return FindCoordinatorResponse(
            coordinators=tuple(
                FindCoordinatorResponseCoordinator(
                    key=key, node_id=node[0], host=node[1], port=node[2], error_code=code, error_message=words
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


def answer_describe_configs(
    request: DescribeConfigsRequest, *, identity: Identity, topics: Topics
) -> DescribeConfigsResponse:
    """Answer with no entries: nothing has any here, and Sarama and kafka-topics only need to be answered."""
    results = []
    for resource in request.resources:
        code, words = _refuse_resource(resource.resource_type, resource.resource_name, identity, topics)
        results.append(
            DescribeConfigsResponseResult(
                error_code=code,
                error_message=words,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return DescribeConfigsResponse(results=tuple(results))


def _refuse_resource(kind: int, name: str, identity: Identity, topics: Topics) -> tuple[Code, str]:
    if kind == _TOPIC_RESOURCE:
        if not is_legal(name):
            return Code.INVALID_TOPIC_EXCEPTION, f"no topic can be named {name!r}"
        return (Code.NONE if topics.exists(name) else Code.UNKNOWN_TOPIC_OR_PARTITION), ""
    if kind not in _RESOURCES:
        return Code.INVALID_REQUEST, f"there is no resource type {kind}"
    if not name:
        # Only of brokers can all be meant at once.
        return (Code.NONE, "") if kind == _BROKER_RESOURCE else (Code.INVALID_REQUEST, "it has no name")
    if kind in {_BROKER_RESOURCE, _LOGGERS_RESOURCE} and name != str(identity.broker_id):
        return Code.INVALID_REQUEST, f"this is broker {identity.broker_id}"
    return Code.NONE, ""
