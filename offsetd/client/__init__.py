"""The Python client: commit and read offsets, keep positions, be a member of a group. Async, and blocking.

It speaks to any broker of Kafka's protocol, and knows nothing of the daemon but `protocol`.
"""

from offsetd.client.blocking import BlockingClient, BlockingKeeper
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
from offsetd.client.group import Group
from offsetd.client.keeper import AtLeastOnce, AtMostOnce, ExactlyOnce, Keeper
from offsetd.client.limits import Limits
from offsetd.client.position import Committed, Offsets, TopicPartition
from offsetd.client.resumption import Resumption

__all__ = [
    "AtLeastOnce",
    "AtMostOnce",
    "BlockingClient",
    "BlockingKeeper",
    "Client",
    "ClientError",
    "Closed",
    "Committed",
    "ExactlyOnce",
    "Fenced",
    "Group",
    "Keeper",
    "Limits",
    "MembershipLost",
    "NotAuthorized",
    "Offsets",
    "PartitionsRefused",
    "RebalanceInProgress",
    "Refused",
    "Resumption",
    "TopicPartition",
    "Unavailable",
    "Unsupported",
]
