"""The one table of settings. The loader, the settings page and the command line all read it; nothing is parsed here.

Kafka's names stand where Kafka has the setting. No key is a prefix of another at a dot, so that every file can be
written with nested tables; where two of Kafka's own names collide so, ours is a longer one and says which it is.
"""

# ruff: noqa: RUF009, FBT003  # each field's default is a row of the table, made once, and a row's default may be a bool

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, cast

from offsetd.settings.address import Address
from offsetd.settings.error import ConfigError
from offsetd.settings.kinds import (
    FOR_EVER,
    Choice,
    ClusterId,
    Directory,
    HostPort,
    Integer,
    Kind,
    KnownTopic,
    KnownTopics,
    Maybe,
    Ratio,
    RetentionOverride,
    Retentions,
    Switch,
)

T = TypeVar("T")
SAME = "same"
ENVIRONMENT_PREFIX = "OFFSETD_"
INT32_MAX = 2**31 - 1
MINUTE_MS = 60_000
# 292 years: a time of more milliseconds would not fit Kafka's 64-bit timestamps when added to today.
LONG_MS = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is known of one setting besides its value."""

    name: str
    kind: Kind[object]
    unit: str
    meaning: str
    kafka_name: str
    flag: str
    default: object

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    @property
    def environment(self) -> str:
        return ENVIRONMENT_PREFIX + self.attribute.upper()


def _setting(  # the class below is the table, so each row is one call
    name: str, default: T, kind: Kind[T], meaning: str, *, unit: str = "", kafka: str = "", flag: str = ""
) -> T:
    about = Setting(
        name=name,
        kind=kind,
        unit=unit,
        meaning=meaning,
        kafka_name=name if kafka == SAME else kafka,
        flag=flag,
        default=default,
    )
    return field(default=default, metadata={"setting": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of the daemon, checked, and where each value came from."""

    # fmt: off
    broker_id: int = _setting("broker.id", 1, Integer(0, INT32_MAX),
        "The id of this broker in Metadata and FindCoordinator.", kafka=SAME)
    cluster_id: str | None = _setting("cluster.id", None, Maybe(ClusterId()),
        "The id of the cluster; when empty it is made at the first start and kept in the data directory.")
    data_dir: Path = _setting("data.dir", Path("data"), Directory(),
        "Where the journal, the checkpoint and the history live.", kafka="log.dirs", flag="--data")
    listeners: Address = _setting("listeners", Address("127.0.0.1", 9092), HostPort(),
        "Where the broker listens; one address, port 0 takes a free port.", kafka=SAME, flag="--listen")
    advertised_listeners: Address | None = _setting("advertised.listeners", None, Maybe(HostPort(1)),
        "Where clients are told to connect; when empty the same as `listeners`, so it must be stated when "
        "`listeners` is 0.0.0.0 or [::].", kafka=SAME, flag="--advertise")
    http_listeners: Address | None = _setting("http.listeners", Address("127.0.0.1", 9192), Maybe(HostPort()),
        "Where /metrics, /livez and /readyz are served; empty turns them off.", flag="--http")

    num_partitions: int = _setting("num.partitions", 1, Integer(1, 100_000),
        "Partitions of a topic that is known only by being asked for; commits that name more raise it.",
        kafka=SAME)
    topics_strict: bool = _setting("topics.strict", False, Switch(),
        "Whether a commit to a topic that is not known is refused with UNKNOWN_TOPIC_OR_PARTITION, as Kafka does.")
    topics_known: tuple[KnownTopic, ...] = _setting("topics.known", (), KnownTopics(),
        "Topics that exist from the start; LATEST is what ListOffsets answers as the log end, one number for all "
        "partitions or one each joined by `/`, as in `orders:3:100/250/90`.")
    topics_asked_max: int = _setting("topics.asked.max", 10_000, Integer(0, 10_000_000),
        "Most topics that are remembered only because a client asked for them.", unit="topics")

    offsets_topic_num_partitions: int = _setting("offsets.topic.num.partitions", 50, Integer(1, 10_000),
        "Slots that groups are spread over; fixed at the first start.", unit="slots", kafka=SAME)
    offset_metadata_max_bytes: int = _setting("offset.metadata.max.bytes", 4096, Integer(0, INT32_MAX),
        "Longest metadata of one committed offset, counted in UTF-16 units as Kafka does in spite of the name.",
        unit="UTF-16 units", kafka=SAME)
    offsets_commit_timeout_ms: int = _setting("offsets.commit.timeout.ms", 5000, Integer(1, INT32_MAX),
        "How long a commit may wait to be settled before REQUEST_TIMED_OUT is answered (its outcome is then "
        "unknown).", unit="ms", kafka=SAME)
    offsets_retention_minutes: int = _setting("offsets.retention.minutes", 10_080,
        Integer(1, INT32_MAX, FOR_EVER, "for ever"),
        "How long an offset is kept after its last commit; -1 keeps it for ever.", unit="minutes", kafka=SAME)
    offsets_retention_overrides: tuple[RetentionOverride, ...] = _setting("offsets.retention.overrides", (),
        Retentions(), "Retention of groups whose id matches a glob (`*`, `?`, `[abc]`); the first match wins, -1 "
        "keeps for ever.")
    offsets_retention_check_interval_ms: int = _setting("offsets.retention.check.interval.ms", 600_000,
        Integer(1, LONG_MS), "How often offsets are looked through for what has expired.", unit="ms", kafka=SAME)

    group_min_session_timeout_ms: int = _setting("group.min.session.timeout.ms", 6_000, Integer(1, INT32_MAX),
        "Shortest session that a member may ask for.", unit="ms", kafka=SAME)
    group_max_session_timeout_ms: int = _setting("group.max.session.timeout.ms", 1_800_000, Integer(1, INT32_MAX),
        "Longest session that a member may ask for.", unit="ms", kafka=SAME)
    group_initial_rebalance_delay_ms: int = _setting("group.initial.rebalance.delay.ms", 3_000, Integer(0, INT32_MAX),
        "How long the first join of an empty group waits for more members.", unit="ms", kafka=SAME)
    group_max_size: int = _setting("group.max.size", INT32_MAX, Integer(1, INT32_MAX),
        "Most members of one group.", unit="members", kafka=SAME)

    socket_request_max_bytes: int = _setting("socket.request.max.bytes", 104_857_600, Integer(8, INT32_MAX),
        "Largest request; a longer one closes its connection.", unit="bytes", kafka=SAME)
    response_max_bytes: int = _setting("response.max.bytes", 104_857_600, Integer(1024, INT32_MAX),
        "Largest reply; a request whose reply would be longer is answered with an error.", unit="bytes")
    queued_max_bytes: int = _setting("queued.max.bytes", 268_435_456, Integer(1024, LONG_MS),
        "Memory for requests and unsent replies over all connections; above it nothing more is read.",
        unit="bytes", kafka="queued.max.request.bytes")
    requests_in_flight_max: int = _setting("requests.in.flight.max", 64, Integer(1, 100_000),
        "Requests of one connection that may be unanswered before it is no longer read.", unit="requests")
    max_connections_total: int = _setting("max.connections.total", 10_000, Integer(1, INT32_MAX),
        "Most open connections; further ones are closed at once.", unit="connections", kafka="max.connections")
    max_connections_per_ip: int = _setting("max.connections.per.ip", INT32_MAX, Integer(0, INT32_MAX),
        "Most open connections of one address.", unit="connections", kafka=SAME)
    max_connection_creation_rate: int = _setting("max.connection.creation.rate", INT32_MAX, Integer(1, INT32_MAX),
        "Most new connections in a second.", unit="connections/s", kafka=SAME)
    connections_max_idle_ms: int = _setting("connections.max.idle.ms", 600_000, Integer(1, LONG_MS),
        "A connection without a request for this long is closed.", unit="ms", kafka=SAME)
    request_read_timeout_ms: int = _setting("request.read.timeout.ms", 30_000, Integer(1, LONG_MS),
        "A request that has begun to arrive must be whole by then.", unit="ms")
    response_write_timeout_ms: int = _setting("response.write.timeout.ms", 60_000, Integer(1, LONG_MS),
        "A client that has not taken a reply by then is disconnected.", unit="ms")

    log_flush_interval_messages: int = _setting("log.flush.interval.messages", 1, Integer(1),
        "Sync the journal after this many records; above 1 an acknowledged commit can be lost in a power cut.",
        unit="records", kafka=SAME)
    log_flush_interval_ms: int | None = _setting("log.flush.interval.ms", None, Maybe(Integer(1, LONG_MS)),
        "Sync the journal at least this often when `log.flush.interval.messages` is above 1; empty leaves it to "
        "the records.", unit="ms", kafka=SAME)
    log_segment_bytes: int = _setting("log.segment.bytes", 67_108_864, Integer(4096, INT32_MAX),
        "A journal segment is sealed at this size.", unit="bytes", kafka=SAME)
    log_roll_ms: int = _setting("log.roll.ms", 3_600_000, Integer(1, LONG_MS),
        "A journal segment is sealed at this age.", unit="ms", kafka=SAME)
    log_cleaner_min_cleanable_ratio: float = _setting("log.cleaner.min.cleanable.ratio", 0.5, Ratio(),
        "Compaction starts when sealed segments are this share of checkpoint and sealed segments together.",
        kafka=SAME)
    log_cleaner_max_compaction_lag_ms: int = _setting("log.cleaner.max.compaction.lag.ms", 600_000,
        Integer(1, LONG_MS), "No sealed segment waits longer than this for compaction.", unit="ms", kafka=SAME)
    log_cleaner_backoff_ms: int = _setting("log.cleaner.backoff.ms", 15_000, Integer(1, LONG_MS),
        "How long compaction rests when there was nothing to do or it failed; sealing twice as long each time that it "
        "fails again, up to an hour.", unit="ms", kafka=SAME)
    history_enabled: bool = _setting("history.enabled", True, Switch(),
        "Whether compacted segments are kept as history instead of deleted.")
    history_retention_ms: int = _setting("history.retention.ms", 604_800_000, Integer(0, LONG_MS),
        "How long history is kept.", unit="ms")
    history_retention_bytes: int = _setting("history.retention.bytes", 1_073_741_824, Integer(0, LONG_MS),
        "How much history is kept.", unit="bytes")
    history_seal_enabled: bool = _setting("history.seal.enabled", False, Switch(),
        "Whether history is sealed as Parquet, by a process of its own; needs pyarrow and numpy.")
    history_seal_max_lag_ms: int = _setting("history.seal.max.lag.ms", 3_600_000, Integer(1, LONG_MS),
        "No compacted segment waits longer than this to be sealed; what has gathered by then is sealed together.",
        unit="ms")
    disk_reserve_bytes: int = _setting("disk.reserve.bytes", 67_108_864, Integer(0, LONG_MS),
        "Space set aside so that compaction can free more when the disk is full.", unit="bytes")

    metrics_groups_enabled: bool = _setting("metrics.groups.enabled", True, Switch(),
        "Whether /metrics has series for single groups.")
    metrics_groups_max: int = _setting("metrics.groups.max", 1000, Integer(0, 1_000_000),
        "Most groups that have series of their own; a metric says how many were left out.", unit="groups")
    log_level: str = _setting("log.level", "info", Choice(("debug", "info", "warning", "error")),
        "The least serious log line that is written.")
    log_format: str = _setting("log.format", "auto", Choice(("auto", "json", "console")),
        "How log lines look; auto is console on a terminal and json elsewhere.")
    shutdown_timeout_ms: int = _setting("shutdown.timeout.ms", 25_000, Integer(0, LONG_MS),
        "How long requests in flight may take to finish after SIGTERM.", unit="ms")
    # fmt: on

    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each value came from, by dotted name."""

    def __post_init__(self) -> None:
        if self.listeners.is_wildcard and self.advertised_listeners is None:
            raise self._error(
                "listeners",
                f"is {self.listeners}, an address that clients cannot connect to: also set advertised.listeners "
                "(--advertise) to the HOST:PORT that clients reach this broker by",
            )
        if self.advertised_listeners is not None and self.advertised_listeners.is_wildcard:
            raise self._error(
                "advertised.listeners",
                f"is {self.advertised_listeners}, an address that clients cannot connect to: "
                "name a host that they reach this broker by",
            )
        if self.group_max_session_timeout_ms < self.group_min_session_timeout_ms:
            raise self._error(
                "group.max.session.timeout.ms",
                f"is {self.group_max_session_timeout_ms}, want at least group.min.session.timeout.ms "
                f"({self.group_min_session_timeout_ms}), or no member could ever join",
            )
        if self.history_seal_enabled and not self.history_enabled:
            raise self._error(
                "history.seal.enabled",
                "is true, but history.enabled is false: there is no history to seal, so set both or neither",
            )
        if self.queued_max_bytes < self.socket_request_max_bytes:
            raise self._error(
                "queued.max.bytes",
                f"is {self.queued_max_bytes}, want at least socket.request.max.bytes "
                f"({self.socket_request_max_bytes}), or the largest request could never be read",
            )

    def _error(self, key: str, phrase: str) -> ConfigError:
        source = self.sources.get(key, "default")
        return ConfigError(f"{key} (from {source}) {phrase}", key=key, source=source)

    @classmethod
    def defaults(cls, **overrides: object) -> "Settings":
        """Make settings in code: defaults, and values by attribute name, checked like any other source's."""
        values: dict[str, object] = {}
        for attribute, value in overrides.items():
            about = BY_ATTRIBUTE[attribute]
            try:
                values[attribute] = about.kind.read(value)
            except ValueError as error:
                raise ConfigError(f"{about.name} (from code) {error}", key=about.name, source="code") from None
        sources = {about.name: "code" if about.attribute in values else "default" for about in TABLE}
        return cls(sources=MappingProxyType(sources), **values)  # type: ignore[arg-type]  # each read by its kind

    def advertised(self, *, bound_port: int | None = None) -> tuple[str, int]:
        """Return the host and port that clients are told; ``bound_port`` is the one taken for port 0."""
        if self.advertised_listeners is not None:
            return self.advertised_listeners.host, self.advertised_listeners.port
        return self.listeners.host, self.listeners.port or bound_port or 0

    def retention_ms_for(self, group: str) -> int | None:
        """Return how long this group's offsets are kept, None for ever."""
        minutes = self.offsets_retention_minutes
        for override in self.offsets_retention_overrides:
            if fnmatchcase(group, override.pattern):
                minutes = override.minutes
                break
        return None if minutes == FOR_EVER else minutes * MINUTE_MS

    def value(self, name: str) -> object:
        """Return a value by its dotted name."""
        return cast("object", getattr(self, BY_NAME[name].attribute))


TABLE: tuple[Setting, ...] = tuple(
    cast("Setting", entry.metadata["setting"]) for entry in dataclasses.fields(Settings) if "setting" in entry.metadata
)
BY_NAME: Mapping[str, Setting] = MappingProxyType({about.name: about for about in TABLE})
BY_ATTRIBUTE: Mapping[str, Setting] = MappingProxyType({about.attribute: about for about in TABLE})
BY_ENVIRONMENT: Mapping[str, Setting] = MappingProxyType({about.environment: about for about in TABLE})
