"""The table of APIs, and whole frames to messages and back, in both directions.

Which APIs and versions a broker advertises is its own decision; here stand those that can be read and written.
"""

from typing import Final, NamedTuple, TypeAlias, cast

from protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from protocol.decoding import Decoder, compile_decoder
from protocol.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from protocol.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from protocol.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.encoding import Encoder, compile_encoder
from protocol.fetch import FetchRequest, FetchResponse
from protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.header import (
    RequestHeader,
    peek_key_and_version,
    read_request_header,
    read_response_header,
    write_request_frame,
    write_response_frame,
)
from protocol.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from protocol.metadata import MetadataRequest, MetadataResponse
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from protocol.produce import ProduceRequest, ProduceResponse
from protocol.schema import message_info
from protocol.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.wire import REQUEST_ELEMENTS_MAX, UnsupportedApi

Request: TypeAlias = (
    ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | MetadataRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | FindCoordinatorRequest
    | ApiVersionsRequest
    | DescribeConfigsRequest
    | DescribeClusterRequest
    | JoinGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | SyncGroupRequest
    | DescribeGroupsRequest
    | ListGroupsRequest
    | DeleteGroupsRequest
    | OffsetDeleteRequest
    | ConsumerGroupHeartbeatRequest
)
Response: TypeAlias = (
    ProduceResponse
    | FetchResponse
    | ListOffsetsResponse
    | MetadataResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | FindCoordinatorResponse
    | ApiVersionsResponse
    | DescribeConfigsResponse
    | DescribeClusterResponse
    | JoinGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | SyncGroupResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | DeleteGroupsResponse
    | OffsetDeleteResponse
    | ConsumerGroupHeartbeatResponse
)

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
OFFSET_COMMIT: Final = 8
OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
API_VERSIONS: Final = 18
DESCRIBE_CONFIGS: Final = 32
DELETE_GROUPS: Final = 42
OFFSET_DELETE: Final = 47
DESCRIBE_CLUSTER: Final = 60
CONSUMER_GROUP_HEARTBEAT: Final = 68


class Api(NamedTuple):
    """One API: its number, its versions, its messages."""

    key: int
    name: str
    min_version: int
    max_version: int
    first_flexible: int
    request: type[Request]
    response: type[Response]


def _api(key: int, name: str, request: type[Request], response: type[Response]) -> Api:
    info = message_info(request)
    # One version number stands for both directions, so both must say the same about it.
    answer = message_info(response)
    assert (info.api_key, info.versions, info.flexible) == (key, answer.versions, answer.flexible)
    return Api(
        key=key,
        name=name,
        min_version=info.versions.first,
        max_version=info.versions.last,
        first_flexible=info.flexible.first,
        request=request,
        response=response,
    )


APIS: Final[dict[int, Api]] = {
    api.key: api
    for api in (
        _api(PRODUCE, "Produce", ProduceRequest, ProduceResponse),
        _api(FETCH, "Fetch", FetchRequest, FetchResponse),
        _api(LIST_OFFSETS, "ListOffsets", ListOffsetsRequest, ListOffsetsResponse),
        _api(METADATA, "Metadata", MetadataRequest, MetadataResponse),
        _api(OFFSET_COMMIT, "OffsetCommit", OffsetCommitRequest, OffsetCommitResponse),
        _api(OFFSET_FETCH, "OffsetFetch", OffsetFetchRequest, OffsetFetchResponse),
        _api(FIND_COORDINATOR, "FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse),
        _api(JOIN_GROUP, "JoinGroup", JoinGroupRequest, JoinGroupResponse),
        _api(HEARTBEAT, "Heartbeat", HeartbeatRequest, HeartbeatResponse),
        _api(LEAVE_GROUP, "LeaveGroup", LeaveGroupRequest, LeaveGroupResponse),
        _api(SYNC_GROUP, "SyncGroup", SyncGroupRequest, SyncGroupResponse),
        _api(DESCRIBE_GROUPS, "DescribeGroups", DescribeGroupsRequest, DescribeGroupsResponse),
        _api(LIST_GROUPS, "ListGroups", ListGroupsRequest, ListGroupsResponse),
        _api(API_VERSIONS, "ApiVersions", ApiVersionsRequest, ApiVersionsResponse),
        _api(DESCRIBE_CONFIGS, "DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse),
        _api(DELETE_GROUPS, "DeleteGroups", DeleteGroupsRequest, DeleteGroupsResponse),
        _api(OFFSET_DELETE, "OffsetDelete", OffsetDeleteRequest, OffsetDeleteResponse),
        _api(DESCRIBE_CLUSTER, "DescribeCluster", DescribeClusterRequest, DescribeClusterResponse),
        _api(
            CONSUMER_GROUP_HEARTBEAT,
            "ConsumerGroupHeartbeat",
            ConsumerGroupHeartbeatRequest,
            ConsumerGroupHeartbeatResponse,
        ),
    )
}


class _Decoders(dict[tuple[int, int], Decoder]):
    """Decoders by key and version, compiled when first asked for: few of them are used in one process."""

    def __init__(self, *, of_requests: bool) -> None:
        self._of_requests = of_requests

    def __missing__(self, route: tuple[int, int]) -> Decoder:
        api = _served(*route)
        if self._of_requests:
            decoder = compile_decoder(api.request, route[1], elements_max=REQUEST_ELEMENTS_MAX)
        else:
            # Whoever asked for all offsets of a group wants them all.
            decoder = compile_decoder(api.response, route[1])
        self[route] = decoder
        return decoder


class _Encoders(dict[tuple[int, int], Encoder]):
    """Encoders, as above."""

    def __init__(self, *, of_requests: bool) -> None:
        self._of_requests = of_requests

    def __missing__(self, route: tuple[int, int]) -> Encoder:
        api = _served(*route)
        encoder = compile_encoder(api.request if self._of_requests else api.response, route[1])
        self[route] = encoder
        return encoder


_request_decoders: Final = _Decoders(of_requests=True)
_response_decoders: Final = _Decoders(of_requests=False)
_request_encoders: Final = _Encoders(of_requests=True)
_response_encoders: Final = _Encoders(of_requests=False)


def _served(api_key: int, api_version: int) -> Api:
    api = APIS.get(api_key)
    if api is None or not api.min_version <= api_version <= api.max_version:
        raise UnsupportedApi(api_key=api_key, api_version=api_version)
    return api


def is_supported(api_key: int, api_version: int) -> bool:
    """Return whether this version of this API can be read and written."""
    api = APIS.get(api_key)
    return api is not None and api.min_version <= api_version <= api.max_version


def decode_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Return a request's header and the position of its body.

    ApiVersions is read in any version, because its sender cannot know better yet and is owed an answer; its body
    must then be left alone.

    Raises:
        ProtocolError: the header is broken, or nobody could read what follows it.
    """
    key, version = peek_key_and_version(frame)
    api = APIS.get(key)
    if api is None or (not api.min_version <= version <= api.max_version and key != API_VERSIONS):
        raise UnsupportedApi(api_key=key, api_version=version)
    return read_request_header(frame, flexible=version >= api.first_flexible)


def decode_body(header: RequestHeader, frame: bytes, position: int) -> Request:
    """Return the request that begins at ``position``.

    Raises:
        ProtocolError: it is broken, or its version is not served.
    """
    return cast("Request", _request_decoders[header.api_key, header.api_version](frame, position))


def decode_request(frame: bytes | bytearray | memoryview) -> tuple[RequestHeader, Request]:
    """Return a request and its header from a frame without its size.

    Raises:
        ProtocolError: it is broken, or its version is not served.
    """
    data = frame if isinstance(frame, bytes) else bytes(frame)
    header, position = decode_header(data)
    return header, decode_body(header, data, position)


def encode_response(api_key: int, api_version: int, correlation_id: int, response: Response) -> bytes:
    """Return a whole frame, its size first.

    Raises:
        StringTooLong: a name grew beyond the limit when its bad bytes were replaced.
    """
    body = _response_encoders[api_key, api_version](response)
    return write_response_frame(correlation_id, body, flexible=_flexible_response(api_key, api_version))


def encode_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, request: Request
) -> bytes:
    """Return a whole frame, its size first."""
    body = _request_encoders[api_key, api_version](request)
    header = RequestHeader(api_key, api_version, correlation_id, client_id)
    return write_request_frame(header, body, flexible=api_version >= APIS[api_key].first_flexible)


def decode_response(api_key: int, api_version: int, frame: bytes | bytearray | memoryview) -> tuple[int, Response]:
    """Return the correlation id and the response from a frame without its size.

    Raises:
        ProtocolError: it is broken.
    """
    data = frame if isinstance(frame, bytes) else bytes(frame)
    decode = _response_decoders[api_key, api_version]
    flexible = _flexible_response(api_key, api_version)
    correlation_id, position = read_response_header(data, flexible=flexible)
    return correlation_id, cast("Response", decode(data, position))


def _flexible_response(api_key: int, api_version: int) -> bool:
    # A client that asked in a version too new for the broker must be able to read the answer's header.
    return api_key != API_VERSIONS and api_version >= APIS[api_key].first_flexible
