"""The Python client: commit and read offsets, keep positions, be a member of a group. Async, and blocking.

It speaks to any broker of Kafka's protocol, and knows nothing of the daemon but `protocol`.
"""

from offsetd.client.assignment.range import Range
from offsetd.client.assignment.round_robin import RoundRobin
from offsetd.client.assignment.sticky import Sticky
from offsetd.client.blocking import BlockingClient
from offsetd.client.blocking_keeper import BlockingKeeper
from offsetd.client.blocking_member import BlockingMember
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
    Untrusted,
)
from offsetd.client.group import Group
from offsetd.client.keeper import AtLeastOnce, AtMostOnce, ExactlyOnce, Keeper
from offsetd.client.limits import Limits
from offsetd.client.member import Member
from offsetd.client.member_options import Timing
from offsetd.client.position import Committed, Offsets, TopicPartition
from offsetd.client.resumption import Resumption
from offsetd.client.topic_filter import BlackList, WhiteList

__all__ = [
    "AtLeastOnce",
    "AtMostOnce",
    "BlackList",
    "BlockingClient",
    "BlockingKeeper",
    "BlockingMember",
    "Client",
    "ClientError",
    "Closed",
    "Committed",
    "ExactlyOnce",
    "Fenced",
    "Group",
    "Keeper",
    "Limits",
    "Member",
    "MembershipLost",
    "NotAuthorized",
    "Offsets",
    "PartitionsRefused",
    "Range",
    "RebalanceInProgress",
    "Refused",
    "Resumption",
    "RoundRobin",
    "Sticky",
    "Timing",
    "TopicPartition",
    "Unavailable",
    "Unsupported",
    "Untrusted",
    "WhiteList",
]
