"""The frames of vectors.txt, and what each of them says, by its number."""

from pathlib import Path
from typing import NamedTuple

from protocol.api import APIS, Api, Request, Response
from protocol.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseApiKey,
    ApiVersionsResponseFinalizedFeature,
    ApiVersionsResponseSupportedFeature,
)
from protocol.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)


class Vector(NamedTuple):
    """One frame, its size first."""

    number: str
    api: Api
    version: int
    is_request: bool
    frame: bytes

    def __str__(self) -> str:
        return f"{self.number}-{self.api.name}-v{self.version}"

    @property
    def is_served(self) -> bool:
        return self.version <= self.api.max_version


def vectors() -> list[Vector]:
    by_name = {api.name: api for api in APIS.values()}
    lines = Path(__file__).with_name("vectors.txt").read_text().splitlines()
    fields = [line.split() for line in lines if not line.startswith("#")]
    return [
        Vector(number, by_name[name], int(version), direction == "request", bytes.fromhex(frame))
        for number, name, version, direction, frame in fields
    ]


# --- ApiVersions ----------------------------------------------------------------------------------------------------

_ASKS = ApiVersionsRequest(client_software_name="offsetd-test", client_software_version="1.0")
_RANGES = tuple(ApiVersionsResponseApiKey(*each) for each in ((8, 0, 9), (9, 0, 9), (10, 0, 6), (18, 0, 4)))

_API_VERSIONS: dict[str, Request | Response] = {
    "01": ApiVersionsRequest(),
    "02": ApiVersionsRequest(),
    "03": ApiVersionsRequest(),
    "04": _ASKS,
    "05": _ASKS,
    "06": ApiVersionsResponse(api_keys=_RANGES),
    "07": ApiVersionsResponse(api_keys=_RANGES),
    "08": ApiVersionsResponse(api_keys=_RANGES),
    "09": ApiVersionsResponse(
        api_keys=_RANGES[3:],
        throttle_time_ms=5,
        supported_features=(ApiVersionsResponseSupportedFeature("group.version", min_version=0, max_version=1),),
        finalized_features_epoch=9,
        finalized_features=(
            ApiVersionsResponseFinalizedFeature("group.version", max_version_level=1, min_version_level=1),
        ),
    ),
    # Answers a version that is not known, in the oldest layout.
    "10": ApiVersionsResponse(error_code=35, api_keys=_RANGES[3:]),
}

# --- FindCoordinator ------------------------------------------------------------------------------------------------

_FIND_COORDINATOR: dict[str, Request | Response] = {
    "11": FindCoordinatorRequest(key="grp"),
    "12": FindCoordinatorRequest(key="grp", key_type=0),
    "13": FindCoordinatorRequest(key="grp", key_type=0),
    "14": FindCoordinatorRequest(key="grp", key_type=0),
    "15": FindCoordinatorRequest(key_type=0, coordinator_keys=("grp", "g2")),
    "16": FindCoordinatorRequest(key_type=1, coordinator_keys=("tx-1",)),
    "17": FindCoordinatorRequest(key_type=0, coordinator_keys=("grp",)),
    "18": FindCoordinatorResponse(node_id=1, host="h1", port=9092),
    # Java brokers do write this word where nothing is wrong.
    "19": FindCoordinatorResponse(error_message="NONE", node_id=1, host="h1", port=9092),
    "20": FindCoordinatorResponse(error_code=15, error_message=None, node_id=-1, host="", port=-1),
    "21": FindCoordinatorResponse(error_message=None, node_id=1, host="h1", port=9092),
    "22": FindCoordinatorResponse(
        coordinators=(
            FindCoordinatorResponseCoordinator("grp", node_id=1, host="h1", port=9092, error_message=None),
            FindCoordinatorResponseCoordinator("g2", node_id=-1, host="", port=-1, error_code=15, error_message=None),
        )
    ),
}

# --- OffsetCommit ---------------------------------------------------------------------------------------------------


def _commit(*, epoch: int = -1) -> OffsetCommitRequest:
    first = OffsetCommitRequestPartition(0, 42, committed_leader_epoch=epoch, committed_metadata="m")
    second = OffsetCommitRequestPartition(1, 100, committed_metadata=None)
    return OffsetCommitRequest(group_id="grp", topics=(OffsetCommitRequestTopic("tp", (first, second)),))


def _member(*, epoch: int = -1, instance: str | None = None) -> OffsetCommitRequest:
    return _commit(epoch=epoch)._replace(generation_id_or_member_epoch=5, member_id="mb", group_instance_id=instance)


_SIMPLE = OffsetCommitRequest(
    group_id="grp",
    topics=(OffsetCommitRequestTopic("tp", (OffsetCommitRequestPartition(0, 42, committed_metadata=""),)),),
)
_COMMITTED = OffsetCommitResponse(
    topics=(
        OffsetCommitResponseTopic(
            "tp", (OffsetCommitResponsePartition(0, 0), OffsetCommitResponsePartition(1, error_code=12))
        ),
    )
)

_OFFSET_COMMIT: dict[str, Request | Response] = {
    "23": _commit(),
    "24": _member(),
    "25": _member(),
    "26": _member(),
    "27": _member(),
    "28": _member(),
    "29": _member(epoch=3),
    "30": _member(epoch=3, instance="inst-1"),
    "31": _member(epoch=3),
    "32": _member(epoch=3),
    "34": _SIMPLE._replace(retention_time_ms=3_600_000),
    "35": _SIMPLE,
    **{str(number): _COMMITTED for number in range(36, 42)},
}

# --- OffsetFetch ----------------------------------------------------------------------------------------------------

_ASKED = (OffsetFetchRequestTopic("tp", (0, 1)),)


def _fetched(*, epoch: int = -1) -> tuple[OffsetFetchResponseTopic, ...]:
    found = OffsetFetchResponsePartition(0, 42, committed_leader_epoch=epoch, metadata="m")
    return (OffsetFetchResponseTopic("tp", (found, OffsetFetchResponsePartition(1, -1, metadata=""))),)


_GROUPS_FETCHED = OffsetFetchResponse(
    groups=(
        OffsetFetchResponseGroup("grp", _fetched(epoch=3)),
        OffsetFetchResponseGroup("g2", error_code=16),
    )
)

_OFFSET_FETCH: dict[str, Request | Response] = {
    **{str(number): OffsetFetchRequest(group_id="grp", topics=_ASKED) for number in range(43, 49)},
    "49": OffsetFetchRequest(group_id="grp", topics=None),
    "50": OffsetFetchRequest(group_id="grp", topics=_ASKED),
    "51": OffsetFetchRequest(group_id="grp", topics=None),
    "52": OffsetFetchRequest(group_id="grp", topics=_ASKED, require_stable=True),
    "53": OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup("grp", topics=_ASKED), OffsetFetchRequestGroup("g2", topics=None))
    ),
    "54": OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup("grp", member_id="mb", member_epoch=5, topics=_ASKED),
            OffsetFetchRequestGroup("g2", topics=None),
        ),
        require_stable=True,
    ),
    **{str(number): OffsetFetchResponse(topics=_fetched()) for number in range(56, 61)},
    **{str(number): OffsetFetchResponse(topics=_fetched(epoch=3)) for number in range(61, 64)},
    "64": _GROUPS_FETCHED,
    "65": _GROUPS_FETCHED,
    "67": OffsetFetchResponse(error_code=14),
    # Before version 2 an error has no place but the partitions.
    "68": OffsetFetchResponse(
        topics=(OffsetFetchResponseTopic("tp", (OffsetFetchResponsePartition(0, -1, error_code=14),)),)
    ),
}

MESSAGES = _API_VERSIONS | _FIND_COORDINATOR | _OFFSET_COMMIT | _OFFSET_FETCH
