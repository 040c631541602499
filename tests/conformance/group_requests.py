"""What members and their operators ask, in few words; and the steps by which a group comes to be."""

from collections.abc import Callable, Sequence
from struct import pack
from typing import Any, Final

from protocol.delete_groups import DeleteGroupsRequest
from protocol.describe_groups import DescribeGroupsRequest
from protocol.heartbeat import HeartbeatRequest
from protocol.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.leave_group import LeaveGroupRequest, LeaveGroupRequestMember
from protocol.list_groups import ListGroupsRequest
from protocol.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from protocol.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.conformance.scenario import ORDERS, Seen, Step

#: From here on a newcomer is given an id first.
NEEDS_ID: Final = 4
#: Versions by which a scenario of another API goes on; the first is the last one without ids that are given first.
JOIN: Final = 3
STATIC_JOIN: Final = 5
SYNC: Final = 4
BEAT: Final = 4
LEAVE: Final = 5
DESCRIBE: Final = 5

EMPTY: Final = "Empty"
PREPARING: Final = "PreparingRebalance"
COMPLETING: Final = "CompletingRebalance"
STABLE: Final = "Stable"

Protocols = Sequence[tuple[str, bytes]]


def subscription(*topics: str, version: int = 1) -> bytes:
    """What a consumer says that reads topics."""
    names = b"".join(pack(">h", len(name)) + name.encode() for name in topics)
    return pack(">hi", version, len(topics)) + names + pack(">i", -1)


RANGE: Final[Protocols] = (("range", subscription(ORDERS)),)


def join(
    group: str = "@g",
    member: str = "",
    *,
    instance: str | None = None,
    protocols: Protocols = RANGE,
    kind: str = "consumer",
    session_ms: int = 30_000,
    rebalance_ms: int = 60_000,
) -> JoinGroupRequest:
    """Ask to be a member."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols),
    )


def join_as(client: str, group: str = "@g", **how: Any) -> Callable[[int], JoinGroupRequest]:
    """Ask to be a member: with the id that was given, in versions that give one first."""
    return lambda version: join(group, f"~{client}" if version >= NEEDS_ID else "", **how)


def sync(
    member: str,
    generation: int,
    *parts: tuple[str, bytes],
    group: str = "@g",
    instance: str | None = None,
    kind: str | None = "consumer",
    protocol: str | None = "range",
) -> SyncGroupRequest:
    """Ask for one's part; a leader brings all of them."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=protocol,
        assignments=tuple(SyncGroupRequestAssignment(member_id=who, assignment=part) for who, part in parts),
    )


def beat(member: str, generation: int, *, group: str = "@g", instance: str | None = None) -> HeartbeatRequest:
    """Give a sign of life."""
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member, group_instance_id=instance)


def leave(*members: tuple[str, str | None], group: str = "@g") -> Callable[[int], LeaveGroupRequest]:
    """Go, each by its id and its instance."""

    def ask(version: int) -> LeaveGroupRequest:
        if version < 3:
            return LeaveGroupRequest(group_id=group, member_id=members[0][0])
        return LeaveGroupRequest(
            group_id=group,
            members=tuple(
                LeaveGroupRequestMember(member_id=who, group_instance_id=instance) for who, instance in members
            ),
        )

    return ask


def describe(*groups: str, operations: bool = False) -> DescribeGroupsRequest:
    """Ask how groups are."""
    return DescribeGroupsRequest(groups=groups, include_authorized_operations=operations)


def listing(*states: str, types: Sequence[str] = ()) -> ListGroupsRequest:
    """Ask for groups."""
    return ListGroupsRequest(states_filter=states, types_filter=tuple(types))


def delete(*groups: str) -> DeleteGroupsRequest:
    """Delete groups."""
    return DeleteGroupsRequest(groups_names=groups)


def delete_offsets(group: str, *topics: tuple[str, Sequence[int]]) -> OffsetDeleteRequest:
    """Delete offsets of a group."""
    return OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=row) for row in rows)
            )
            for name, rows in topics
        ),
    )


# --- steps ------------------------------------------------------------------------------------------------------------


def joins(client: str, name: str = "", **how: Any) -> tuple[Step, ...]:
    """Somebody comes who need not wait: in the version of the scenario, so with an id first where that is so."""
    name = name or f"{client} joins"
    return (
        Step(f"{name}: an id", join(**how), f"{NEEDS_ID}+", by=client),
        Step(name, join_as(client, **how), by=client),
    )


def waits(client: str, members: int, group: str = "@g", **how: Any) -> tuple[Step, ...]:
    """Somebody comes and waits for the others."""
    seen = Seen(group, PREPARING, members)
    return (
        Step(f"{client} comes: an id", join(group, **how), f"{NEEDS_ID}+", by=client),
        Step(f"{client} comes", join_as(client, group, **how), by=client, held=True, until=seen),
    )


def answered(client: str, name: str = "") -> Step:
    """The answer to a held request."""
    return Step(name or f"{client} is answered", None, by=client, unordered=True)


def shown(group: str = "@g", name: str = "the group") -> Step:
    """How a group is seen."""
    return Step(name, describe(group), at=DESCRIBE, unordered=True)


def alone(client: str = "a", *, at: int = JOIN, **how: Any) -> tuple[Step, ...]:
    """A group of one member, in its first generation, with a part."""
    return (
        Step(f"{client} joins alone", join(**how), at=at, by=client),
        Step(
            f"{client} takes its part",
            sync(f"~{client}", 1, (f"~{client}", b"all"), group=how.get("group", "@g")),
            at=SYNC,
            by=client,
        ),
    )


def pair(*, at: int = JOIN, first: str | None = None, second: str | None = None) -> tuple[Step, ...]:
    """A stable group of two members, a that leads and b, in its second generation; static ones if so named."""
    return (
        *alone("a", at=at, instance=first),
        Step("b comes to a", join(instance=second), at=at, by="b", held=True, until=Seen("@g", PREPARING, 2)),
        Step("a joins with b", join(member="~a", instance=first), at=at, by="a", unordered=True),
        answered("b", "b has joined"),
        Step("a shares", sync("~a", 2, ("~a", b"one"), ("~b", b"two"), instance=first), at=SYNC, by="a"),
        Step("b takes its share", sync("~b", 2, instance=second), at=SYNC, by="b"),
    )
