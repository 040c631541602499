"""What a call can fail with. Each error carries its facts as fields, and says in words what to do.

ClientError
├── Closed                  the client was closed
├── Unavailable             nobody could answer within the time limit
├── Untrusted               a broker's TLS certificate is not what this client trusts
├── Unsupported             the broker is too old
└── Refused                 a broker answered, and trying again would not help
    ├── NotAuthorized
    ├── PartitionsRefused   some partitions of a commit or a deletion; the others were done
    └── MembershipLost      a member's commit came too late: its partitions may be somebody else's
        ├── RebalanceInProgress
        └── Fenced          another process runs under the same instance id
"""

from collections.abc import Mapping
from typing import Final

from offsetd.client.address import Address
from offsetd.client.position import TopicPartition
from protocol.errors import Code

_ADVICE: Final[Mapping[Code, str]] = {
    Code.UNKNOWN_SERVER_ERROR: "the broker could not store it, or it is larger than one entry of its log: see its log",
    Code.UNKNOWN_TOPIC_OR_PARTITION: "the broker knows no such partition and takes only those it knows: check the name",
    Code.OFFSET_METADATA_TOO_LARGE: "shorten the metadata, or raise the broker's offset.metadata.max.bytes",
    Code.INVALID_TOPIC_EXCEPTION: "no topic can have this name: up to 249 letters, digits, '.', '_' and '-' can",
    Code.ILLEGAL_GENERATION: "the group has gone on without this member: wait until it has joined again",
    Code.INCONSISTENT_GROUP_PROTOCOL: "the group's other members share no assignor with this one: name one they know",
    Code.INVALID_GROUP_ID: "the group needs a name that is not empty",
    Code.UNKNOWN_MEMBER_ID: "the group has members and this is none of them: stop them, or commit as a member",
    Code.INVALID_SESSION_TIMEOUT: "choose a session time-out within the broker's group.min and group.max limits",
    Code.REBALANCE_IN_PROGRESS: "the group is assigning its partitions anew: wait for this member's new ones",
    Code.TOPIC_AUTHORIZATION_FAILED: "allow this user to read the topic",
    Code.GROUP_AUTHORIZATION_FAILED: "allow this user to read the group",
    Code.CLUSTER_AUTHORIZATION_FAILED: "allow this user to use the cluster",
    Code.UNSUPPORTED_VERSION: "update the broker or this client",
    Code.NON_EMPTY_GROUP: "the group has members: stop them first",
    Code.GROUP_ID_NOT_FOUND: "there is no such group: check the name",
    Code.GROUP_MAX_SIZE_REACHED: "the group is full: run fewer members, or raise the broker's group.max.size",
    Code.FENCED_INSTANCE_ID: "another process runs under the same instance id: stop one of them, or name it otherwise",
    Code.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read the topic: stop them first",
}


class ClientError(Exception):
    """Something the client could not do."""


class Closed(ClientError):
    """The client was closed before the call could end; if it was a commit, its outcome is not known."""

    def __init__(self) -> None:
        super().__init__("the client is closed: make a new one")


class Unsupported(ClientError):
    """A broker does not serve what the call needs."""

    def __init__(self, *, address: Address, api_key: int, version: int) -> None:
        super().__init__(
            f"the broker at {address} does not serve API {api_key} in version {version} or newer: "
            "update it (offsetd, or Kafka 3.0 and newer, serve all that is needed)"
        )
        self.address = address
        self.api_key = api_key
        self.version = version


class Untrusted(ClientError):
    """A broker showed a TLS certificate that this client does not trust. Nothing was sent to it."""

    def __init__(self, *, address: Address, reason: str) -> None:
        super().__init__(
            f"the broker at {address} is not trusted: {reason.rstrip('.')}. Let the SSLContext trust the authority "
            "that signed its certificate (load_verify_locations), and connect by a name that stands in it"
        )
        self.address = address
        self.reason = reason


class Unavailable(ClientError):
    """No broker could do it within the time limit. What happened last is the cause of this error."""

    def __init__(self, *, action: str, group: str | None, timeout_s: float, last: Exception | None, sent: bool) -> None:
        of_group = "" if group is None else f" of group {group!r}"
        outcome = "; it was sent, so it may have happened nevertheless" if sent else ""
        super().__init__(
            f"{action}{of_group} did not succeed within {timeout_s:g} s (last: {last or 'no answer yet'}){outcome}. "
            "Check that the brokers run and can be reached, or allow it more time"
        )
        self.action = action
        self.group = group
        self.timeout_s = timeout_s
        self.outcome_unknown = sent
        """Whether it may have been done. A commit may then be made again: it is the same twice as once."""


class Refused(ClientError):
    """A broker refused, for a reason that does not pass by itself."""

    def __init__(self, *, action: str, group: str | None, code: int, partition: TopicPartition | None = None) -> None:
        self.action = action
        self.group = group
        self.code = known_code(code)
        self.partition = partition
        of_group = "" if group is None else f" of group {group!r}"
        where = "" if partition is None else f" for {partition}"
        super().__init__(f"{action}{of_group} was refused{where} with {code} {self.code.name}: {advice(self.code)}")


class NotAuthorized(Refused):
    """The broker knows who asks, and that it may not."""


class PartitionsRefused(Refused):
    """Some partitions were refused; those of the call that are not in `refused` were done."""

    def __init__(self, *, action: str, group: str, refused: Mapping[TopicPartition, int]) -> None:
        first, code = next(iter(refused.items()))
        super().__init__(action=action, group=group, code=code, partition=first)
        self.refused = {partition: known_code(each) for partition, each in refused.items()}
        if len(refused) > 1:
            self.args = (f"{self.args[0]} (and {len(refused) - 1} more partitions: see .refused)",)


class MembershipLost(Refused):
    """A commit of a member that is none any more, or not of this generation: nothing was written."""


class RebalanceInProgress(MembershipLost):
    """A commit between two generations: the partitions are being assigned anew."""


class Fenced(MembershipLost):
    """The instance id belongs to another process now; this member has ended."""


_CLASSES: Final[Mapping[Code, type[Refused]]] = {
    Code.TOPIC_AUTHORIZATION_FAILED: NotAuthorized,
    Code.GROUP_AUTHORIZATION_FAILED: NotAuthorized,
    Code.CLUSTER_AUTHORIZATION_FAILED: NotAuthorized,
    Code.ILLEGAL_GENERATION: MembershipLost,
    Code.UNKNOWN_MEMBER_ID: MembershipLost,
    Code.REBALANCE_IN_PROGRESS: RebalanceInProgress,
    Code.FENCED_INSTANCE_ID: Fenced,
}


def refusal(*, action: str, group: str | None, code: int) -> Refused:
    """Return the error for a code that concerns a whole request."""
    return _CLASSES.get(known_code(code), Refused)(action=action, group=group, code=code)


def concerns_group(code: int) -> bool:
    """Tell whether a code in one partition of a reply stands for the whole request."""
    return known_code(code) in _GROUP_CODES


def known_code(code: int) -> Code:
    """Return a code by its name; one that is not known is as good as no reason at all."""
    try:
        return Code(code)
    except ValueError:
        return Code.UNKNOWN_SERVER_ERROR


def advice(code: Code) -> str:
    """Return what to do about a code."""
    return _ADVICE.get(code, "this client does not know what would help: see the broker's log")


_GROUP_CODES: Final = frozenset(
    {
        Code.ILLEGAL_GENERATION,
        Code.INVALID_GROUP_ID,
        Code.UNKNOWN_MEMBER_ID,
        Code.REBALANCE_IN_PROGRESS,
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.GROUP_ID_NOT_FOUND,
        Code.FENCED_INSTANCE_ID,
    }
)
