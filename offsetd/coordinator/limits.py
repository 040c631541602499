"""The few limits that the rules need, so that they need not know the settings, which know files."""

from collections.abc import Callable
from dataclasses import dataclass

#: Group ids are free text in Kafka; this bound of our own keeps one request from making a key of 32 KiB.
GROUP_ID_BYTES_MAX = 1024


def _for_ever(_group_id: str) -> int | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the rules may be told by an operator."""

    slots: int = 50
    metadata_units_max: int = 4096
    topic_partitions: int = 1
    topics_asked_max: int = 10_000
    strict: bool = False
    response_bytes_max: int = 104_857_600
    retention_ms: Callable[[str], int | None] = _for_ever
    session_timeout_ms: tuple[int, int] = (6_000, 1_800_000)
    initial_rebalance_delay_ms: int = 3_000
    group_members_max: int = 2_147_483_647
    # What members of all groups may say beyond what members usually do.
    excess_bytes_max: int = 134_217_728
