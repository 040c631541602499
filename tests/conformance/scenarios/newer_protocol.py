"""ConsumerGroupHeartbeat: a member of the newer group protocol (KIP-848), which Kafka takes in and offsetd refuses."""

from typing import Final

from protocol.api import CONSUMER_GROUP_HEARTBEAT
from protocol.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.conformance.scenario import ORDERS, Scenario, Step

_JOINS: Final = 0
_LEAVES: Final = -1


def _beat(epoch: int, **how: str) -> ConsumerGroupHeartbeatRequest:
    """Say that one is alive, in a group of this run and under an id of one's own choice."""
    return ConsumerGroupHeartbeatRequest(
        group_id="@newer",
        member_id="AAAAAAAAAAAAAAAAAAAAAA",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(ORDERS,) if epoch == _JOINS else None,
        topic_partitions=() if epoch == _JOINS else None,
        **how,
    )


SCENARIOS: Final = (
    Scenario(
        "newer protocol",
        CONSUMER_GROUP_HEARTBEAT,
        (
            Step("joins", _beat(_JOINS)),
            Step("leaves", _beat(_LEAVES)),
            Step("with an assignor that nobody has", _beat(_JOINS, server_assignor="no such")),
        ),
    ),
)
