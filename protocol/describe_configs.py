"""DescribeConfigs (key 32): settings of topics, brokers and groups."""

from typing import NamedTuple

from protocol.schema import (
    array,
    boolean,
    int8,
    int16,
    int32,
    message,
    nullable_array,
    nullable_string,
    string,
    struct,
)


@struct
class DescribeConfigsRequestResource(NamedTuple):
    """One thing with settings; null keys ask for all of them."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = nullable_array(string())


@message(api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsRequest(NamedTuple):
    """Asks for settings."""

    resources: tuple[DescribeConfigsRequestResource, ...] = array(DescribeConfigsRequestResource)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@struct
class DescribeConfigsResponseSynonym(NamedTuple):
    """Where a value could also come from."""

    name: str = string("1+")
    value: str | None = nullable_string("1+")
    source: int = int8("1+")


@struct
class DescribeConfigsResponseConfig(NamedTuple):
    """One setting."""

    name: str = string()
    value: str | None = nullable_string()
    read_only: bool = boolean()
    config_source: int = int8("1+", default=-1)
    is_sensitive: bool = boolean()
    synonyms: tuple[DescribeConfigsResponseSynonym, ...] = array(DescribeConfigsResponseSynonym, "1+")
    config_type: int = int8("3+")
    documentation: str | None = nullable_string("3+")


@struct
class DescribeConfigsResponseResult(NamedTuple):
    """The settings of one thing."""

    error_code: int = int16()
    error_message: str | None = nullable_string()
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResponseConfig, ...] = array(DescribeConfigsResponseConfig)


@message(api_key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse(NamedTuple):
    """The settings, in the order asked for."""

    throttle_time_ms: int = int32()
    results: tuple[DescribeConfigsResponseResult, ...] = array(DescribeConfigsResponseResult)
