"""The one table of differences that are meant. What differs and is not here fails, and what is here must differ.

Each row names the row of the table in docs/protocol.md that tells users of it and why; a test keeps the two together.
"""

from collections.abc import Mapping
from typing import Final

from tests.conformance.comparison import ABSENT, ANY, Purpose
from tests.conformance.scenario import PARTITIONS
from tests.conformance.scenarios.list_offsets import COMMITTED

UNKNOWN_TOPIC: Final = "commit to an unknown topic"
ILLEGAL_TOPIC: Final = "commit to a name that no topic can have"
REFUSED_GROUP: Final = "a group after a commit that was refused whole"
REFUSED_JOIN: Final = "a group after a join that was refused"
LAST_OFFSET: Final = "a group without members when its last offset is deleted"
LONG_GROUP: Final = "group id longer than 1024 bytes"
LONG_NAMES: Final = "other names of members longer than 1024 bytes, metadata over 1 MiB"
GIVEN_BACK: Final = "a member id that is given back unused"
STATIC_ID: Final = "a static member that joins with an id that was given to another"
FULL_RETURN: Final = "a static member that comes back to a full group"
OTHER_NAME: Final = "a static member that comes back under another client id"
NEWER: Final = "groups of the newer protocol (KIP-848)"
OLD_VERSIONS: Final = "OffsetCommit 0 and 1, OffsetFetch 0, ListOffsets 0"
OTHER_APIS: Final = "other APIs, later versions, features"
OFFSETS_TOPIC: Final = "`__consumer_offsets`"
MADE_TOPIC: Final = "a topic that is asked for where creation is allowed"
LATEST: Final = "ListOffsets of the latest"
TRANSACTIONS: Final = "coordinator of transactions"
CONFIGS: Final = "DescribeConfigs"
FETCH: Final = "Fetch"
PRODUCE: Final = "Produce"
ODD_NULL: Final = "a count or length below -1"
SURROGATES: Final = "UTF-8 of half a surrogate pair"

#: Rows of the page that no request can show: they are about time, disks and failures.
NOT_SHOWN: Final = (
    "acknowledgement",
    "OffsetFetch while loading",
    "OffsetFetch when a load failed",
    "commit that times out",
    "two requests of one member that wait",
    "a member that leaves while its SyncGroup waits",
    "a protocol that is named twice in one join",
    "metadata of a consumer that is no subscription",
    "a member for which a full group has no room",
)

#: APIs of Kafka 4.3 that offsetd does not have: transactions, administration, other groups, brokers among themselves.
_ABSENT_APIS: Final = (
    *(17, *range(19, 32), *range(33, 42), *range(43, 47), *range(48, 52), 55, 57),
    *(61, 64, 65, 66, 69, *range(74, 82), *range(83, 93)),
)
_ABSENT_FEATURES: Final = ("eligible.leader.replicas", "group", "metadata", "share", "streams", "transaction")

_CODE: Final = "topics[0].partitions[0].error_code"
_CODES: Final = "topics[*].partitions[*].error_code"
_READ: Final = "responses[0].partitions[0]."
_WRITTEN: Final = "responses[0].partition_responses[0]."
_NO_ID: Final = bytes(16)


def _rows(
    matter: str, scenario: str, step: str, fields: Mapping[str, tuple[object, object]], *, versions: str = "0+"
) -> tuple[Purpose, ...]:
    """Fields of a step that differ for one reason: each with Kafka's value and ours."""
    return tuple(
        Purpose(scenario, step, field, kafka, ours, matter, versions) for field, (kafka, ours) in fields.items()
    )


_COMMITS: Final = (
    *_rows(UNKNOWN_TOPIC, "commit: unknown topics", "unknown topic", {_CODES: (3, 0)}),
    *_rows(UNKNOWN_TOPIC, "commit: unknown topics", "unknown partition", {_CODES: (3, 0)}),
    *_rows(UNKNOWN_TOPIC, "commit: unknown topics", "beside known ones", {_CODES: (3, 0)}),
    # Kafka looks for the topic before it looks for the group.
    *_rows(UNKNOWN_TOPIC, "commit: unknown topics", "with a generation", {_CODE: (3, 22)}, versions="2-8"),
    *_rows(UNKNOWN_TOPIC, "commit: unknown topics", "with a generation", {_CODE: (3, 69)}, versions="9+"),
    *_rows(ILLEGAL_TOPIC, "commit: unknown topics", "illegal name", {_CODE: (3, 17)}),
    *_rows(ILLEGAL_TOPIC, "commit: unknown topics", "empty name", {_CODE: (3, 17)}),
    *_rows(
        REFUSED_GROUP, "commit: all refused leaves no group", "with a generation", {_CODE: (25, 22)}, versions="2-8"
    ),
    *_rows(REFUSED_GROUP, "commit: all refused leaves no group", "with a generation", {_CODE: (25, 69)}, versions="9+"),
    *_rows(LONG_GROUP, "commit: group ids", "1025 bytes", {_CODE: (0, 24)}),
)

_SERVED: Final = (
    *_rows(OTHER_APIS, "api versions: served", "all", {f"api_keys[{key}]": (ANY, ABSENT) for key in _ABSENT_APIS}),
    *_rows(
        OTHER_APIS,
        "api versions: served",
        "all",
        {
            "api_keys[1].max_version": (18, 16),
            "api_keys[8].max_version": (10, 9),
            "api_keys[9].max_version": (10, 9),
        },
    ),
    *_rows(
        OTHER_APIS,
        "api versions: served",
        "all",
        {
            "supported_features[metadata.version]": (ANY, ABSENT),
            "finalized_features_epoch": (ANY, -1),
            **{f"finalized_features[{name}.version]": (ANY, ABSENT) for name in _ABSENT_FEATURES},
        },
        versions="3+",
    ),
    # Version 3 must not list features that may be off.
    *_rows(
        OTHER_APIS,
        "api versions: served",
        "all",
        {f"supported_features[{name}.version]": (ANY, ABSENT) for name in ("kraft", *_ABSENT_FEATURES)},
        versions="4+",
    ),
    *_rows(OTHER_APIS, "frames: APIs and versions", "SaslHandshake", {"connection": ("open", "closed")}),
    *_rows(
        OLD_VERSIONS,
        "api versions: served",
        "all",
        {"api_keys[2].min_version": (1, 0), "api_keys[8].min_version": (2, 0), "api_keys[9].min_version": (1, 0)},
    ),
    *_rows(OLD_VERSIONS, "frames: old versions", "*", {"connection": ("closed", "open")}),
)

_TOPICS: Final = (
    *_rows(OFFSETS_TOPIC, "metadata: all topics", "*", {"topics[__consumer_offsets]": (ANY, ABSENT)}),
    *_rows(
        OFFSETS_TOPIC,
        "metadata: the offsets topic",
        "by name",
        {"topics[0].error_code": (0, 3), "topics[0].is_internal": (True, False), "topics[0].partitions.#": (50, 0)},
    ),
    *_rows(
        OFFSETS_TOPIC, "metadata: the offsets topic", "by name", {"topics[0].topic_id": (ANY, _NO_ID)}, versions="10+"
    ),
    *_rows(
        MADE_TOPIC,
        "metadata: making a topic",
        "asked for",
        {"topics[0].error_code": (3, 0), "topics[0].partitions.#": (0, PARTITIONS)},
    ),
    *_rows(MADE_TOPIC, "metadata: making a topic", "asked for", {"topics[0].topic_id": (_NO_ID, ANY)}, versions="10+"),
    *_rows(
        LATEST, "list offsets: committed positions", "latest", {"topics[orders].partitions[3].offset": (0, COMMITTED)}
    ),
)

_CLUSTER: Final = (
    *_rows(
        TRANSACTIONS,
        "find coordinator: other types",
        "transaction",
        {
            "error_code": (0, 15),
            "error_message": ("NONE", "<words>"),
            "node_id": (1, -1),
            "host": ("127.0.0.1", ""),
            "port": ("<port>", -1),
        },
        versions="1-3",
    ),
    *_rows(
        TRANSACTIONS,
        "find coordinator: other types",
        "transaction",
        {
            "coordinators[0].error_code": (0, 15),
            "coordinators[0].node_id": (1, -1),
            "coordinators[0].host": ("127.0.0.1", ""),
            "coordinators[0].port": ("<port>", -1),
        },
        versions="4+",
    ),
    *_rows(CONFIGS, "describe configs", "all keys of a topic", {"results[orders].configs[*]": (ANY, ABSENT)}),
    *_rows(CONFIGS, "describe configs", "no keys of a topic", {"results[orders].configs[*]": (ANY, ABSENT)}),
)


def _fetch_rows(scenario: str, step: str, code: int, end: int) -> tuple[Purpose, ...]:
    """Kafka refuses a partition and knows no end of it; offsetd has nothing to send."""
    ends = {f"{_READ}{end_of}": (-1, end) for end_of in ("high_watermark", "last_stable_offset")}
    return (
        *_rows(FETCH, scenario, step, {f"{_READ}error_code": (code, 0), **ends}),
        *_rows(FETCH, scenario, step, {f"{_READ}log_start_offset": (-1, 0)}, versions="5+"),
    )


def _accepted_rows(step: str) -> tuple[Purpose, ...]:
    """Kafka has written a message; offsetd refuses it."""
    return (
        *_rows(
            PRODUCE,
            "produce",
            step,
            {f"{_WRITTEN}error_code": (0, 44), f"{_WRITTEN}base_offset": (ANY, -1)},
            versions="3+",
        ),
        *_rows(PRODUCE, "produce", step, {f"{_WRITTEN}log_start_offset": (0, -1)}, versions="5+"),
        *_rows(PRODUCE, "produce", step, {f"{_WRITTEN}error_message": (None, "<words>")}, versions="8+"),
    )


_RECORDS: Final = (
    *_fetch_rows("fetch records: an empty log", "beyond its end", 1, 5),
    *_fetch_rows("fetch records: leader epochs", "ahead", 75, 0),
    *_rows(FETCH, "fetch records: sessions", "a new one", {"session_id": (ANY, 0)}),
    *_rows(FETCH, "fetch records: sessions", "an unknown one", {"error_code": (70, 0), "responses.#": (0, 1)}),
    *_rows(PRODUCE, "produce", "*", {"connection": ("closed", "open")}, versions="0-2"),
    *_accepted_rows("acknowledged by the leader"),
    *_accepted_rows("acknowledged by all"),
    *_rows(PRODUCE, "produce", "acknowledged by two", {f"{_WRITTEN}error_code": (21, 44)}, versions="3+"),
    *_rows(PRODUCE, "produce", "acknowledged by two", {f"{_WRITTEN}error_message": (None, "<words>")}, versions="8+"),
)

_ASKED_FOR: Final = "join: a group that was only asked for"
_TOO_LONG: Final = {
    "error_code": (0, 42),
    "generation_id": (1, -1),
    "protocol_name": (ANY, ""),
    "leader": (ANY, ""),
    "member_id": (ANY, ""),
    "members.#": (1, 0),
}
_SHORTENED: Final = dict.fromkeys(("leader", "member_id", "members[0].member_id"), (ANY, ANY))
_MEMBERS: Final = (
    *_rows(REFUSED_JOIN, _ASKED_FOR, "after no protocols", {"groups[*].group_state": ("Empty", "Dead")}),
    *_rows(REFUSED_JOIN, _ASKED_FOR, "after no type", {"groups[*].group_state": ("Empty", "Dead")}),
    *_rows(LAST_OFFSET, "delete offsets", "the group without offsets", {"groups[0].group_state": ("Empty", "Dead")}),
    *_rows(LAST_OFFSET, "delete offsets", "from nothing", {"error_code": (0, 69), "topics.#": (1, 0)}),
    *_rows(LONG_NAMES, "join: names beyond a bound", "long: *", _TOO_LONG),
    *_rows(LONG_NAMES, "join: names beyond a bound", "a client's name", _SHORTENED),
    *_rows(GIVEN_BACK, "join: an id that is given back", "a beats", {"error_code": (27, 0)}),
    *_rows(
        STATIC_ID,
        "join: ids that were given out",
        "b with an instance",
        {"error_code": (-1, 25), "member_id": ("", ANY)},
    ),
    *_rows(
        FULL_RETURN,
        "join: a full group of static members",
        "c comes back",
        {"error_code": (81, 0), "generation_id": (-1, 3), "leader": ("", ANY), "member_id": ("", ANY)},
    ),
    *_rows(
        FULL_RETURN,
        "join: a full group of static members",
        "c comes back",
        {"protocol_name": (ANY, "range")},
    ),
    *_rows(
        FULL_RETURN,
        "join: a full group of static members",
        "c comes back",
        {"protocol_type": (None, "consumer")},
        versions="7+",
    ),
    *_rows(
        OTHER_NAME,
        "join: a static member comes back",
        "another name",
        {"groups[*].members[*].client_id": ("raw", "other")},
    ),
)

_NEWER_REFUSED: Final = {
    "error_code": (0, 35),
    "error_message": (None, "<words>"),
    "member_id": (ANY, None),
    "member_epoch": (ANY, 0),
}
_NEWER: Final = (
    *_rows(NEWER, "newer protocol", "joins", _NEWER_REFUSED),
    *_rows(NEWER, "newer protocol", "joins", {"heartbeat_interval_ms": (5000, 0), "assignment": (ANY, None)}),
    *_rows(NEWER, "newer protocol", "leaves", _NEWER_REFUSED),
    *_rows(NEWER, "newer protocol", "with an assignor that nobody has", {"error_code": (112, 35)}),
)

_FRAMES: Final = (
    *_rows(ODD_NULL, "frames: headers", "tags ff ff ff ff 0f", {"connection": ("open", "closed")}),
    *_rows(ODD_NULL, "frames: bodies", "commit: metadata of length -2", {"connection": ("open", "closed")}),
    *_rows(ODD_NULL, "frames: bodies", "fetch offsets *: -2 topics", {"connection": ("open", "closed")}),
    *_rows(ODD_NULL, "frames: bodies", "metadata 1: -2 topics", {"connection": ("open", "closed")}),
    *_rows(SURROGATES, "frames: texts", "topic ed a0 80", {"topics[0].name": ("\ufffd", "\ufffd" * 3)}),
    *_rows(SURROGATES, "frames: texts", "key ed a0 80", {"coordinators[0].key": ("\ufffd", "\ufffd" * 3)}),
    *_rows(SURROGATES, "frames: texts", "topic ed a0 bd ed b8 80", {"topics[0].name": ("\ufffd" * 2, "\ufffd" * 6)}),
    *_rows(SURROGATES, "frames: texts", "key ed a0 bd ed b8 80", {"coordinators[0].key": ("\ufffd" * 2, "\ufffd" * 6)}),
)

TABLE: Final = (*_COMMITS, *_SERVED, *_TOPICS, *_CLUSTER, *_RECORDS, *_MEMBERS, *_NEWER, *_FRAMES)
