"""What is asked once: ApiVersions, FindCoordinator, DescribeCluster and DescribeConfigs."""

from collections.abc import Callable
from typing import Final

from protocol.api import API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_CONFIGS, FIND_COORDINATOR
from protocol.api_versions import ApiVersionsRequest
from protocol.describe_cluster import DescribeClusterRequest
from protocol.describe_configs import DescribeConfigsRequest, DescribeConfigsRequestResource
from protocol.find_coordinator import FindCoordinatorRequest
from tests.conformance.scenario import ORDERS, Scenario, Step

TOPIC: Final = 2
BROKER: Final = 4
LOGGERS: Final = 8
METRICS: Final = 16
GROUP: Final = 32


def _software(name: str, version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


def _coordinator(*keys: str, key_type: int = 0) -> Callable[[int], FindCoordinatorRequest]:
    def ask(version: int) -> FindCoordinatorRequest:
        if version < 4:
            return FindCoordinatorRequest(key=keys[0], key_type=key_type)
        return FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type)

    return ask


def _configs(*resources: tuple[int, str, tuple[str, ...] | None]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsRequestResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in resources
        )
    )


SCENARIOS: Final = (
    Scenario("api versions: served", API_VERSIONS, (Step("all", _software("conformance"), unordered=True),)),
    Scenario(
        "api versions: software",
        API_VERSIONS,
        (
            Step("empty name", _software("")),
            Step("empty version", _software("x", "")),
            Step("hyphen first", _software("-x")),
            Step("hyphen last", _software("x-")),
            Step("dot last", _software("x", "1.")),
            Step("blank", _software("a b")),
            Step("underscore", _software("a_b")),
            Step("umlaut", _software("ä")),
            Step("newline last", _software("a\n")),
        ),
        versions="3+",
    ),
    Scenario(
        "find coordinator: groups",
        FIND_COORDINATOR,
        (
            Step("one", _coordinator("@g")),
            Step("empty", _coordinator("")),
            Step("long", _coordinator("g" * 2000)),
            Step("letters of all kinds", _coordinator("@ä群😀\0")),
            Step("several", _coordinator("@g", "@h", ""), "4+"),
            Step("twice", _coordinator("@g", "@h", "@g"), "4+"),
            Step("none", _coordinator(), "4+"),
        ),
    ),
    Scenario(
        "find coordinator: other types",
        FIND_COORDINATOR,
        (
            Step("transaction", _coordinator("@t", key_type=1)),
            Step("share group", _coordinator("@s", key_type=2)),
            Step("3", _coordinator("@x", key_type=3)),
            Step("-1", _coordinator("@x", key_type=-1)),
            Step("several of type 3", _coordinator("@x", "@y", key_type=3), "4+"),
            Step("none of type 3", _coordinator(key_type=3), "4+"),
        ),
        versions="1+",
    ),
    Scenario(
        "describe cluster: brokers",
        DESCRIBE_CLUSTER,
        (
            Step("plain", DescribeClusterRequest()),
            Step("operations", DescribeClusterRequest(include_cluster_authorized_operations=True)),
            Step("with fenced ones", DescribeClusterRequest(include_fenced_brokers=True), "2+"),
        ),
    ),
    Scenario(
        "describe cluster: endpoint types",
        DESCRIBE_CLUSTER,
        tuple(
            Step(f"{kind}", DescribeClusterRequest(endpoint_type=kind, include_cluster_authorized_operations=asked))
            for kind, asked in ((2, False), (0, False), (3, True), (-1, False))
        ),
        versions="1+",
    ),
    Scenario(
        "describe configs",
        DESCRIBE_CONFIGS,
        (
            Step("nothing", _configs()),
            Step("a key that is none", _configs((TOPIC, ORDERS, ("no.such.key",)))),
            Step("all keys of a topic", _configs((TOPIC, ORDERS, None)), unordered=True),
            Step("no keys of a topic", _configs((TOPIC, ORDERS, ())), unordered=True),
            Step("unknown topic", _configs((TOPIC, "@nowhere", None))),
            Step("illegal name", _configs((TOPIC, "a b", None))),
            Step("empty name", _configs((TOPIC, "", None))),
            Step("this broker", _configs((BROKER, "1", ("no.such.key",)))),
            Step("all brokers", _configs((BROKER, "", ("no.such.key",)))),
            Step("another broker", _configs((BROKER, "77", None))),
            Step("a broker by a word", _configs((BROKER, "first", None))),
            Step("loggers of this broker", _configs((LOGGERS, "1", ("no.such.key",)))),
            Step("loggers of another broker", _configs((LOGGERS, "77", None))),
            Step("loggers of all brokers", _configs((LOGGERS, "", None))),
            Step("clients' metrics", _configs((METRICS, "x", ("no.such.key",)))),
            Step("clients' metrics without a name", _configs((METRICS, "", None))),
            Step("a group", _configs((GROUP, "@g", ("no.such.key",)))),
            Step("a group without a name", _configs((GROUP, "", None))),
            Step("unknown type", _configs((99, "x", None))),
            Step("type 0", _configs((0, "x", None))),
            Step("the same twice", _configs((TOPIC, ORDERS, ("no.such.key",)), (TOPIC, ORDERS, ("no.such.key",)))),
        ),
    ),
)
