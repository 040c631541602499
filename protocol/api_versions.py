"""ApiVersions (key 18): which APIs and versions a broker serves. The first thing nearly every client asks."""

from typing import NamedTuple

from protocol.schema import array, boolean, int16, int32, int64, message, string, struct


@message(api_key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest(NamedTuple):
    """Asks what the broker serves, and says who asks."""

    client_software_name: str = string("3+")
    client_software_version: str = string("3+")


@struct
class ApiVersionsResponseApiKey(NamedTuple):
    """One API with the range of its versions."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class ApiVersionsResponseSupportedFeature(NamedTuple):
    """A feature the broker could run."""

    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


@struct
class ApiVersionsResponseFinalizedFeature(NamedTuple):
    """A feature the whole cluster has agreed to run."""

    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


@message(api_key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse(NamedTuple):
    """The served ranges. The throttle time stands behind them, so that version 0 is a prefix of version 1."""

    error_code: int = int16()
    api_keys: tuple[ApiVersionsResponseApiKey, ...] = array(ApiVersionsResponseApiKey)
    throttle_time_ms: int = int32("1+")
    supported_features: tuple[ApiVersionsResponseSupportedFeature, ...] = array(
        ApiVersionsResponseSupportedFeature, "3+", tag=0
    )
    finalized_features_epoch: int = int64("3+", default=-1, tag=1)
    finalized_features: tuple[ApiVersionsResponseFinalizedFeature, ...] = array(
        ApiVersionsResponseFinalizedFeature, "3+", tag=2
    )
    zk_migration_ready: bool = boolean("3+", tag=3)
