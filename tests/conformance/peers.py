"""The peers: a real Kafka and real daemons, started once, each brought to the state that every scenario begins with."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from offsetd.bench.kafka import VERSION, KafkaProcess
from offsetd.coordinator.slot import slot_of
from protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.errors import Code
from protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from tests.conformance.comparison import Facts
from tests.conformance.scenario import MEMBERS_MAX, PARTITIONS, TOPICS
from tests.fakes.daemon import running
from tests.fakes.wire import RawClient, connected

#: Where Kafka's jars are brought to; the bench uses them too.
LIBRARIES: Final = Path(__file__).parents[2] / ".peers" / "kafka"
#: Kafka's own default; what is asked of every slot depends on it.
SLOTS: Final = 50
#: What a coordinator can be asked for by.
GROUPS: Final = 0
TRANSACTIONS: Final = 1
_READY_SECONDS_MAX: Final = 120.0
_LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Peer:
    """One server: where it is, what is its own by nature, and what it serves."""

    port: int
    facts: Facts
    served: dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Peers:
    """Kafka, and what stands for it."""

    kafka: Peer
    offsetd: Peer
    #: The same with `topics.strict`.
    strict: Peer

    def versions(self, api: int) -> range:
        """Return the versions of an API that both serve."""
        (left, right), (low, high) = self.kafka.served[api], self.offsetd.served[api]
        return range(max(left, low), min(right, high) + 1)


def is_brought() -> bool:
    """Tell whether Kafka's jars are there."""
    return any(LIBRARIES.glob(f"kafka_2.13-{VERSION}.jar"))


@contextmanager
def started(libraries: Path, directory: Path) -> Iterator[Peers]:
    """Run all peers for the length of a block; none outlives it."""
    settings: dict[str, object] = {
        "num.partitions": PARTITIONS,
        "group.initial.rebalance.delay.ms": 0,
        "group.max.size": MEMBERS_MAX,
    }
    kafka = KafkaProcess(libraries, directory / "kafka", extra=settings)
    try:
        with (
            running(directory / "offsetd", settings) as daemon,
            running(directory / "strict", {**settings, "topics.strict": True}) as strict,
        ):
            yield Peers(
                kafka=asyncio.run(_prepared(kafka.port, (GROUPS, TRANSACTIONS))),
                offsetd=asyncio.run(_prepared(daemon.port, (GROUPS,))),
                strict=asyncio.run(_prepared(strict.port, (GROUPS,))),
            )
    finally:
        kafka.stop()


async def _prepared(port: int, key_types: Sequence[int]) -> Peer:
    """Make the topics, and wait until every group has a coordinator that answers."""
    async with connected(port) as client:
        versions = cast("ApiVersionsResponse", await client.call(ApiVersionsRequest(), 0))
        await _until(lambda: _coordinators_known(client, key_types))
        await _until(lambda: _slots_answer(client))
        await _until(lambda: _topics_known(client))
        known = await _metadata(client)
    assert known.cluster_id is not None
    ids = {topic.name: topic.topic_id for topic in known.topics if topic.name is not None}
    served = {row.api_key: (row.min_version, row.max_version) for row in versions.api_keys}
    return Peer(port, Facts(port, known.cluster_id, ids), served)


async def _until(ready: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + _READY_SECONDS_MAX
    while not await ready():
        assert time.monotonic() < deadline, "a peer did not become ready"
        await asyncio.sleep(_LOOK_SECONDS)


async def _coordinators_known(client: RawClient, key_types: Sequence[int]) -> bool:
    """Ask for a coordinator of each type: Kafka makes the topic behind it when it is first asked for."""
    for key_type in key_types:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=("conformance",))
        response = cast("FindCoordinatorResponse", await client.call(request, 6))
        if response.coordinators[0].error_code != Code.NONE:
            return False
    return True


async def _slots_answer(client: RawClient) -> bool:
    """Ask for one group of every slot, none of which may still be loading."""
    names: dict[int, str] = {}
    number = 0
    while len(names) < SLOTS:
        name = f"conformance-{number}"
        names.setdefault(slot_of(name, SLOTS), name)
        number += 1
    request = OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(group_id=name) for name in names.values()))
    response = cast("OffsetFetchResponse", await client.call(request, 8))
    return all(group.error_code == Code.NONE for group in response.groups)


async def _topics_known(client: RawClient) -> bool:
    response = await _metadata(client)
    return all(
        topic.error_code == Code.NONE and all(row.error_code == Code.NONE for row in topic.partitions)
        for topic in response.topics
    )


async def _metadata(client: RawClient) -> MetadataResponse:
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in TOPICS))
    return cast("MetadataResponse", await client.call(request, 12))
