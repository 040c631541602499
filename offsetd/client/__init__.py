"""The Python client: commit and read offsets, keep positions, be a member of a group. Async, and blocking.

It speaks to any broker of Kafka's protocol, and knows nothing of the daemon but `protocol`.
"""

from offsetd.client.client import Client
from offsetd.client.errors import (
    ClientError,
    Closed,
    Fenced,
    MembershipLost,
    NotAuthorized,
    PartitionsRefused,
    RebalanceInProgress,
    Refused,
    Unavailable,
    Unsupported,
)
from offsetd.client.limits import Limits
from offsetd.client.position import Committed, Offsets, TopicPartition

__all__ = [
    "Client",
    "ClientError",
    "Closed",
    "Committed",
    "Fenced",
    "Limits",
    "MembershipLost",
    "NotAuthorized",
    "Offsets",
    "PartitionsRefused",
    "RebalanceInProgress",
    "Refused",
    "TopicPartition",
    "Unavailable",
    "Unsupported",
]
