"""Metadata: which topics there are, by name and by id, and in which order they come."""

from typing import Final

from protocol.api import METADATA
from protocol.metadata import MetadataRequest, MetadataRequestTopic
from tests.conformance.requests import metadata
from tests.conformance.scenario import EMPTY, ORDERS, PAYMENTS, Scenario, Step, id_of

UNKNOWN_ID: Final = bytes(range(16))
OFFSETS: Final = "__consumer_offsets"
#: Other scenarios make more topics, and make others grow.
LISTED: Final = (ORDERS, PAYMENTS, EMPTY, OFFSETS)


def _scenario(name: str, *steps: Step, versions: str = "0+") -> Scenario:
    return Scenario(f"metadata: {name}", METADATA, steps, versions)


def _by_id(*topics: tuple[bytes, str | None]) -> MetadataRequest:
    asked = tuple(MetadataRequestTopic(topic_id=topic_id, name=name) for topic_id, name in topics)
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False)


SCENARIOS: Final = (
    _scenario(
        "known topics",
        Step("one", metadata(EMPTY)),
        Step("several", metadata(PAYMENTS, EMPTY, ORDERS)),
        Step("twice", metadata(ORDERS, PAYMENTS, ORDERS)),
        Step("none", metadata(), "1+"),
    ),
    _scenario(
        "all topics",
        Step("null", MetadataRequest(topics=None), "1+", unordered=True, only=LISTED),
        Step("empty list", MetadataRequest(topics=()), "0", unordered=True, only=LISTED),
    ),
    _scenario(
        "unknown topics",
        Step("one", metadata("@nowhere")),
        Step("between known ones", metadata("@nowhere", ORDERS, "@neither", EMPTY)),
        Step("twice", metadata("@nowhere", "@nowhere", ORDERS)),
        versions="4+",
    ),
    _scenario(
        "illegal names",
        *(
            Step(words, metadata(name))
            for words, name in {
                "empty": "",
                "dot": ".",
                "two dots": "..",
                "three dots": "...",
                "blank": "a b",
                "umlaut": "ä",
                "slash": "a/b",
                "zero byte": "a\0b",
                "249 letters": "n" * 249,
                "250 letters": "n" * 250,
            }.items()
        ),
        # With five names or more Kafka's order is that of a hash map.
        Step("between others", metadata("a b", ORDERS, "@nowhere", EMPTY)),
        Step("twice", metadata("a b", "a b")),
        versions="4+",
    ),
    _scenario(
        "illegal names where creation is allowed",
        Step("blank", metadata("a b", create=True)),
        Step("two dots", metadata("..", create=True)),
        Step("250 letters", metadata("n" * 250, create=True)),
    ),
    _scenario("making a topic", Step("asked for", metadata("@made", create=True))),
    _scenario("the offsets topic", Step("by name", metadata(OFFSETS)), versions="4+"),
    _scenario(
        "ids",
        Step("known", _by_id((id_of(ORDERS), None))),
        Step("unknown", _by_id((UNKNOWN_ID, None))),
        Step("unknown between known", _by_id((UNKNOWN_ID, None), (id_of(EMPTY), None), (id_of(ORDERS), None))),
        Step("known twice", _by_id((id_of(ORDERS), None), (id_of(ORDERS), None))),
        Step("unknown twice", _by_id((UNKNOWN_ID, None), (UNKNOWN_ID, None))),
        Step("id and its name", _by_id((id_of(ORDERS), ORDERS))),
        Step("id and another name", _by_id((id_of(ORDERS), EMPTY))),
        Step("id and a name, unknown", _by_id((UNKNOWN_ID, ORDERS))),
        Step("id beside a name", _by_id((id_of(ORDERS), None), (bytes(16), EMPTY))),
        Step("id beside neither", _by_id((id_of(ORDERS), None), (bytes(16), None))),
        Step("neither", _by_id((bytes(16), None))),
        Step("neither, beside a name", _by_id((bytes(16), None), (bytes(16), EMPTY))),
        versions="10+",
    ),
    _scenario(
        "operations",
        Step("asked for", metadata(ORDERS, operations=True)),
        Step("of an unknown topic", metadata("@nowhere", operations=True)),
        Step("of an illegal name", metadata("a b", operations=True)),
        Step("of an unknown id", _by_id((UNKNOWN_ID, None))._replace(include_topic_authorized_operations=True), "12+"),
        Step("of no topic", metadata(operations=True)),
        versions="8+",
    ),
)
