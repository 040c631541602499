"""A member against a coordinator that answers as a test says: what the application is told, and what is sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from offsetd.client import (
    AtLeastOnce,
    BlackList,
    Client,
    Closed,
    ExactlyOnce,
    Fenced,
    Member,
    MembershipLost,
    NotAuthorized,
    RebalanceInProgress,
    Refused,
    Sticky,
    Timing,
    TopicPartition,
    Unavailable,
    WhiteList,
)
from offsetd.client.consumer_protocol import read_assignment, read_subscription, write_subscription
from protocol.errors import Code
from protocol.heartbeat import HeartbeatRequest
from protocol.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from protocol.leave_group import LeaveGroupRequest
from protocol.offset_commit import OffsetCommitRequest
from protocol.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.client.scripted import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    WAIT_SECONDS,
    Close,
    Hold,
    ScriptedBroker,
    client_of,
    scripted,
)
from tests.client.sleeper import Sleeper

BEAT, REFRESH = Timing().heartbeat_interval_s, Timing().topics_refresh_s
ORDERS = (TopicPartition("orders", 0), TopicPartition("orders", 1))


@dataclass
class Scene:
    """A broker, a client, and what the application was told."""

    broker: ScriptedBroker
    client: Client
    sleeper: Sleeper
    told: "asyncio.Queue[tuple[str, int]]" = field(default_factory=asyncio.Queue)

    def member(self, topics: Any = ("orders",), **arguments: Any) -> Member:
        """Return a member whose callbacks write down what they are told."""

        async def assigned(partitions: tuple[TopicPartition, ...]) -> None:
            self.told.put_nowait(("assigned", len(partitions)))

        async def revoked(partitions: tuple[TopicPartition, ...]) -> None:
            self.told.put_nowait(("revoked", len(partitions)))

        async def lost(partitions: tuple[TopicPartition, ...]) -> None:
            self.told.put_nowait(("lost", len(partitions)))

        callbacks = {"on_assigned": assigned, "on_revoked": revoked, "on_lost": lost, **arguments}
        return self.client.member("billing", topics, **callbacks)

    async def hear(self, count: int) -> list[tuple[str, int]]:
        """Return the next things the application was told."""
        async with asyncio.timeout(WAIT_SECONDS):
            return [await self.told.get() for _ in range(count)]

    @property
    def joins(self) -> list[tuple[str, bool]]:
        """Who joined, by the name it gave and whether that is a static one."""
        found = self.broker.of(JoinGroupRequest)
        return [(each.member_id, each.group_instance_id is not None) for each in found]


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    """Run a broker with a topic of two partitions, and a client."""
    async with scripted() as [broker]:
        sleeper = Sleeper()
        broker.topics["orders"] = 2
        async with client_of(broker, sleep=sleeper) as client:
            yield Scene(broker, client, sleeper)


# --- joining and leaving ----------------------------------------------------------------------------------------------


async def test_a_member_joins_owns_partitions_commits_as_their_owner_and_leaves() -> None:
    async with scene() as it:
        async with it.member() as member:
            assert await member.assigned() == ORDERS
            assert member.partitions == ORDERS
            await member.commit({ORDERS[0]: 5})
            assert (await member.fetch())[ORDERS[0]].offset == 5

        (commit,) = it.broker.of(OffsetCommitRequest)
        (leave,) = it.broker.of(LeaveGroupRequest)
        assert (commit.member_id, commit.generation_id_or_member_epoch) == ("m-1", 1)
        assert [row.member_id for row in leave.members] == ["m-1"]
        assert await it.hear(2) == [("assigned", 2), ("revoked", 2)]
        assert not member.partitions


async def test_a_member_says_what_it_reads_how_long_it_takes_and_by_what_it_assigns() -> None:
    async with scene() as it:
        timing = Timing(session_timeout_s=10, rebalance_timeout_s=20)
        async with it.member(["orders", "bills"], streams=3, timing=timing) as member:
            await member.assigned()
            assert [len(stream) for stream in member.streams] == [1, 1, 0]

        join = it.broker.of(JoinGroupRequest)[0]
        said = read_subscription(join.protocols[0].metadata)
        assert [protocol.name for protocol in join.protocols] == ["range", "roundrobin"]
        assert (join.session_timeout_ms, join.rebalance_timeout_ms, join.protocol_type) == (10_000, 20_000, "consumer")
        assert said == (frozenset({"orders", "bills"}), 3, (), -1)


async def test_a_member_that_is_given_a_name_first_joins_again_with_it() -> None:
    async with scene() as it:
        it.broker.then(JOIN_GROUP, Code.MEMBER_ID_REQUIRED)
        async with it.member() as member:
            await member.assigned()

        assert it.joins == [("", False), ("given", False)]


async def test_a_static_member_leaves_without_a_word() -> None:
    async with scene() as it:
        async with it.member(instance_id="one") as member:
            await member.assigned()
            await member.commit({ORDERS[0]: 5})

        assert it.joins == [("", True)]
        assert it.broker.of(OffsetCommitRequest)[0].group_instance_id == "one"
        assert it.broker.of(LeaveGroupRequest) == []


async def test_closing_while_the_coordinator_holds_the_join_leaves_by_another_connection() -> None:
    async with scene() as it:
        hold = Hold()
        it.broker.then(JOIN_GROUP, Code.MEMBER_ID_REQUIRED, hold)
        member = it.member()
        member.start()
        await hold.arrived.wait()
        await member.close()

        assert [row.member_id for row in it.broker.of(LeaveGroupRequest)[0].members] == ["given"]
        assert it.told.empty()


async def test_a_coordinator_that_does_not_answer_the_last_word_holds_nobody_up() -> None:
    async with scene() as it:
        it.broker.then(LEAVE_GROUP, Close(done=False))
        async with it.member() as member:
            await member.assigned()


async def test_closing_the_client_lets_its_members_leave() -> None:
    async with scene() as it:
        member = it.member()
        member.start()
        await member.assigned()
        await it.client.close()

        assert len(it.broker.of(LeaveGroupRequest)) == 1
        with pytest.raises(Closed):
            await member.assigned()
        with pytest.raises(Closed):
            await member.commit({ORDERS[0]: 1})


async def test_commits_do_not_wait_behind_a_join() -> None:
    """A coordinator holds a join for as long as the slowest member takes, and replies in order."""
    async with scene() as it:
        hold = Hold()
        it.broker.then(JOIN_GROUP, hold)
        member = it.member()
        member.start()
        await hold.arrived.wait()
        await it.client.commit("billing", {ORDERS[0]: 5})
        hold.release.set()
        await member.close()


# --- losing partitions ------------------------------------------------------------------------------------------------


async def test_a_rebalance_takes_partitions_away_and_gives_new_ones() -> None:
    async with scene() as it:
        async with it.member() as member:
            await member.assigned()
            it.broker.topics["orders"] = 3
            it.broker.then(HEARTBEAT, Code.REBALANCE_IN_PROGRESS)
            await it.sleeper.wake(BEAT)

            assert await it.hear(3) == [("assigned", 2), ("revoked", 2), ("assigned", 3)]
            assert len(await member.assigned()) == 3
        assert it.joins == [("", False), ("m-1", False)]


async def test_what_is_committed_while_letting_go_is_committed_as_the_owner_of_before() -> None:
    async with scene() as it:

        async def let_go(_: tuple[TopicPartition, ...]) -> None:
            await member.commit({ORDERS[0]: 7})

        async with it.member(on_revoked=let_go) as member:
            await member.assigned()
            it.broker.then(HEARTBEAT, Code.REBALANCE_IN_PROGRESS)
            await it.sleeper.wake(BEAT)
            await it.hear(2)

            (commit,) = it.broker.of(OffsetCommitRequest)
            assert (commit.member_id, commit.generation_id_or_member_epoch) == ("m-1", 1)
            assert it.broker.seen.index(commit) < it.broker.seen.index(it.broker.of(JoinGroupRequest)[1])


async def test_heartbeats_go_on_while_the_application_lets_go() -> None:
    async with scene() as it:
        letting_go, done = asyncio.Event(), asyncio.Event()

        async def let_go(_: tuple[TopicPartition, ...]) -> None:
            letting_go.set()
            await done.wait()

        async with it.member(on_revoked=let_go) as member:
            await member.assigned()
            it.broker.then(HEARTBEAT, *[Code.REBALANCE_IN_PROGRESS] * 3)
            await it.sleeper.wake(BEAT)
            await letting_go.wait()
            await it.sleeper.wake(BEAT)
            await it.sleeper.wake(BEAT)
            while len(it.broker.of(HeartbeatRequest)) < 3:
                await asyncio.sleep(0)
            done.set()
            assert await it.hear(2) == [("assigned", 2), ("assigned", 2)]


@pytest.mark.parametrize(("code", "name"), [(Code.UNKNOWN_MEMBER_ID, ""), (Code.ILLEGAL_GENERATION, "m-1")], ids=str)
async def test_a_member_that_was_forgotten_is_told_that_its_partitions_are_lost(code: Code, name: str) -> None:
    async with scene() as it:
        async with it.member() as member:
            await member.assigned()
            it.broker.then(HEARTBEAT, code)
            await it.sleeper.wake(BEAT)

            assert await it.hear(3) == [("assigned", 2), ("lost", 2), ("assigned", 2)]
        assert it.joins == [("", False), (name, False)]


async def test_what_is_lost_cannot_be_committed() -> None:
    async with scene() as it:
        refused: list[MembershipLost] = []

        async def lose(_: tuple[TopicPartition, ...]) -> None:
            try:
                await member.commit({ORDERS[0]: 7})
            except MembershipLost as error:
                refused.append(error)

        async with it.member(on_lost=lose) as member:
            await member.assigned()
            it.broker.then(HEARTBEAT, Code.UNKNOWN_MEMBER_ID)
            await it.sleeper.wake(BEAT)
            await it.hear(2)

            assert len(refused) == 1
            assert it.broker.of(OffsetCommitRequest) == []


async def test_a_fenced_member_ends_and_says_so() -> None:
    async with scene() as it:
        it.broker.then(HEARTBEAT, Code.FENCED_INSTANCE_ID)
        member = it.member(instance_id="one")
        member.start()
        await it.sleeper.wake(BEAT)
        with pytest.raises(Fenced, match="another process runs under the same instance id"):
            await member.ended()
        with pytest.raises(Fenced):
            await member.close()

        assert await it.hear(2) == [("assigned", 2), ("lost", 2)]
        assert len(it.joins) == 1
        with pytest.raises(Fenced):
            await member.commit({ORDERS[0]: 1})


@pytest.mark.parametrize("code", [Code.NOT_COORDINATOR, Code.COORDINATOR_LOAD_IN_PROGRESS, Close(done=False)])
async def test_a_coordinator_that_is_away_for_a_moment_takes_nothing_away(code: Code | Close) -> None:
    async with scene() as it:
        async with it.member() as member:
            await member.assigned()
            it.broker.then(HEARTBEAT, code, code)
            await it.sleeper.wake(BEAT)
            while len(it.broker.of(HeartbeatRequest)) < 3:
                await asyncio.sleep(0)
            await member.commit({ORDERS[0]: 5})

            assert await it.hear(1) == [("assigned", 2)]
            assert it.told.empty()
        assert len(it.joins) == 1


async def test_a_coordinator_that_moved_is_followed_by_its_members() -> None:
    async with scripted(2) as [old, new]:
        sleeper = Sleeper()
        old.topics["orders"] = 2
        async with client_of(old, sleep=sleeper) as client, client.member("billing", ["orders"]) as member:
            await member.assigned()
            old.coordinator_of["billing"] = new
            old.then(HEARTBEAT, Code.NOT_COORDINATOR)
            await sleeper.wake(BEAT)
            while not new.of(HeartbeatRequest):
                await asyncio.sleep(0)

            assert len(old.of(JoinGroupRequest)) == 1
            assert member.partitions == ORDERS


# --- commits of a member ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "told", "name"),
    [
        (Code.REBALANCE_IN_PROGRESS, RebalanceInProgress, "revoked", "m-1"),
        (Code.ILLEGAL_GENERATION, MembershipLost, "lost", "m-1"),
        (Code.UNKNOWN_MEMBER_ID, MembershipLost, "lost", ""),
    ],
)
async def test_a_refused_commit_is_raised_and_the_member_joins_again(
    code: Code, kind: type[Refused], told: str, name: str
) -> None:
    async with scene() as it:
        async with it.member() as member:
            await member.assigned()
            it.broker.then(OFFSET_COMMIT, code)
            with pytest.raises(kind):
                await member.commit({ORDERS[0]: 5})

            assert await it.hear(3) == [("assigned", 2), (told, 2), ("assigned", 2)]
        assert it.joins == [("", False), (name, False)]


async def test_a_commit_that_is_fenced_ends_the_member() -> None:
    async with scene() as it:
        it.broker.then(OFFSET_COMMIT, Code.FENCED_INSTANCE_ID)
        member = it.member(instance_id="one")
        member.start()
        await member.assigned()
        with pytest.raises(Fenced):
            await member.commit({ORDERS[0]: 5})
        with pytest.raises(Fenced):
            await member.ended()

        assert await it.hear(2) == [("assigned", 2), ("lost", 2)]


async def test_a_commit_of_the_generation_before_is_not_mixed_with_those_of_this_one() -> None:
    async with scripted(2) as [asked, broker]:
        sleeper = Sleeper()
        asked.topics["orders"] = 2
        asked.coordinator_of["billing"] = broker
        async with client_of(asked, sleep=sleeper) as client, client.member("billing", ["orders"]) as member:
            await member.assigned()
            hold = Hold()
            broker.then(OFFSET_COMMIT, hold)
            late = asyncio.create_task(member.commit({ORDERS[0]: 5}))
            await hold.arrived.wait()
            broker.then(HEARTBEAT, Code.REBALANCE_IN_PROGRESS)
            await sleeper.wake(BEAT)
            while len(broker.of(SyncGroupRequest)) < 2:
                await asyncio.sleep(0)
            await member.assigned()
            later = asyncio.create_task(member.commit({ORDERS[0]: 6}))
            await asyncio.sleep(0)
            hold.release.set()
            await asyncio.gather(late, later)

            requests = broker.of(OffsetCommitRequest)
            assert [each.generation_id_or_member_epoch for each in requests] == [1, 2]


async def test_positions_are_kept_as_a_member() -> None:
    async with scene() as it, it.member() as member:
        await member.assigned()
        keeper = AtLeastOnce(member)
        starts = await keeper.resume(member.partitions)
        async with keeper.processing({ORDERS[0]: starts[ORDERS[0]].offset + 1}):
            pass

        assert it.broker.of(OffsetCommitRequest)[0].member_id == "m-1"


async def test_a_keeper_does_not_tell_later_what_it_could_not_tell_as_the_owner() -> None:
    """The partition may be somebody else's by then, who is further."""
    async with scene() as it, it.member() as member:
        await member.assigned()
        it.broker.then(OFFSET_COMMIT, Code.UNKNOWN_MEMBER_ID)
        keeper = ExactlyOnce(member)
        async with keeper.processing({ORDERS[0]: 7}):
            pass
        assert await it.hear(3) == [("assigned", 2), ("lost", 2), ("assigned", 2)]
        await member.assigned()
        async with keeper.processing({ORDERS[1]: 8}):
            pass
        await keeper.close()

        assert it.broker.table == {("billing", "orders", 1): (8, "", -1)}


# --- what goes wrong while joining ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (Code.INCONSISTENT_GROUP_PROTOCOL, Refused, "share no assignor"),
        (Code.INVALID_SESSION_TIMEOUT, Refused, "choose a session time-out"),
        (Code.GROUP_MAX_SIZE_REACHED, Refused, "the group is full"),
        (Code.GROUP_AUTHORIZATION_FAILED, NotAuthorized, "allow this user"),
        (Code.FENCED_INSTANCE_ID, Fenced, "another process runs"),
    ],
)
async def test_who_may_not_join_is_told_why(code: Code, kind: type[Refused], words: str) -> None:
    async with scene() as it:
        it.broker.then(JOIN_GROUP, code)
        with pytest.raises(kind, match=words):
            async with it.member() as member:
                await member.assigned()

        assert len(it.joins) == 1
        assert it.told.empty()


@pytest.mark.parametrize(
    "act",
    [Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.REBALANCE_IN_PROGRESS, Close(done=False)],
)
@pytest.mark.parametrize("api_key", [JOIN_GROUP, SYNC_GROUP])
async def test_what_passes_is_waited_for_while_joining(api_key: int, act: Code | Close) -> None:
    async with scene() as it:
        it.broker.then(api_key, act, act)
        async with it.member() as member:
            assert await member.assigned() == ORDERS

        assert len(it.joins) == 3
        assert await it.hear(2) == [("assigned", 2), ("revoked", 2)]


@pytest.mark.parametrize("api_key", [JOIN_GROUP, SYNC_GROUP])
async def test_a_member_that_is_forgotten_while_joining_joins_as_a_new_one(api_key: int) -> None:
    async with scene() as it:
        it.broker.then(JOIN_GROUP, Code.MEMBER_ID_REQUIRED)
        it.broker.then(api_key, Code.UNKNOWN_MEMBER_ID)
        async with it.member() as member:
            await member.assigned()

        assert it.joins[-2:] == [("given", False), ("", False)]


async def test_a_coordinator_that_asks_for_a_name_again_and_again_is_not_believed() -> None:
    async with scene() as it:
        it.broker.then(JOIN_GROUP, *[Code.MEMBER_ID_REQUIRED] * 99)
        with pytest.raises(Refused, match="79 MEMBER_ID_REQUIRED"):
            async with it.member() as member:
                await member.assigned()

        assert len(it.joins) == 2


async def test_a_member_that_cannot_join_in_time_says_what_was_in_the_way() -> None:
    async with scene() as it:
        it.broker.then(JOIN_GROUP, *[Code.COORDINATOR_LOAD_IN_PROGRESS] * 100_000)
        async with it.member() as member:
            with pytest.raises(Unavailable, match=r"membership of group 'billing' .*COORDINATOR_LOAD_IN_PROGRESS"):
                await member.assigned(timeout_s=0.5)


async def test_a_callback_that_fails_ends_the_member_which_leaves() -> None:
    class Broken(Exception):
        pass

    async def fail(_: tuple[TopicPartition, ...]) -> None:
        raise Broken

    async with scene() as it:
        with pytest.raises(Broken):
            async with it.member(on_assigned=fail) as member:
                await member.assigned()

        assert len(it.broker.of(LeaveGroupRequest)) == 1


@pytest.mark.parametrize("api_key", [HEARTBEAT, OFFSET_COMMIT], ids=["while letting go", "when it has partitions"])
async def test_a_callback_that_commits_too_late_ends_the_generation_and_not_the_member(api_key: int) -> None:
    async with scene() as it:

        async def commit(partitions: tuple[TopicPartition, ...]) -> None:
            await member.commit(dict.fromkeys(partitions, 7))
            it.told.put_nowait(("committed", len(partitions)))

        callbacks = {"on_revoked": commit} if api_key == HEARTBEAT else {"on_assigned": commit}
        async with it.member(**callbacks) as member:
            it.broker.then(OFFSET_COMMIT, Code.UNKNOWN_MEMBER_ID)
            if api_key == HEARTBEAT:
                it.broker.then(HEARTBEAT, Code.REBALANCE_IN_PROGRESS)
                await it.sleeper.wake(BEAT)
                assert await it.hear(2) == [("assigned", 2), ("assigned", 2)]
            else:
                assert await it.hear(2) == [("lost", 2), ("committed", 2)]
        assert it.joins == [("", False), ("", False)]


async def test_a_callback_cannot_close_its_own_member() -> None:
    async with scene() as it:

        async def close(_: tuple[TopicPartition, ...]) -> None:
            await member.close()

        with pytest.raises(RuntimeError, match="a callback cannot close its member"):
            async with it.member(on_assigned=close) as member:
                await member.assigned()


async def test_a_member_that_was_not_started_says_so() -> None:
    async with scene() as it:
        with pytest.raises(RuntimeError, match="was not started"):
            await it.member().assigned()
        with pytest.raises(RuntimeError, match="was not started"):
            await it.member().ended()


async def test_arguments_that_make_no_sense_are_refused() -> None:
    async with scene() as it:
        with pytest.raises(ValueError, match=r"streams is 0, want 1\.\.1024"):
            it.member(streams=0)
        with pytest.raises(ValueError, match="needs an assignor"):
            it.member(assignors=[])
    with pytest.raises(ValueError, match=r"heartbeat_interval_s is 45, want more than 0 and less than 45"):
        Timing(heartbeat_interval_s=45)
    with pytest.raises(ValueError, match="topics_refresh_s is 0"):
        Timing(topics_refresh_s=0)


# --- leading ----------------------------------------------------------------------------------------------------------


async def test_a_leader_assigns_for_members_of_other_libraries_and_nothing_to_whom_it_cannot_read() -> None:
    async with scene() as it:
        it.broker.topics["bills"] = 1
        others = (
            JoinGroupResponseMember(
                member_id="a-stranger", metadata=write_subscription(frozenset({"orders", "bills"}), b"its own")
            ),
            JoinGroupResponseMember(member_id="broken", metadata=b"\xff\x00garbage"),
        )
        it.broker.then(JOIN_GROUP, lambda request: it.broker.joined(request, "m-1", *others))
        async with it.member() as member:
            assert await member.assigned() == (TopicPartition("orders", 1),)

        (sync,) = it.broker.of(SyncGroupRequest)
        assert {each.member_id: read_assignment(each.assignment) for each in sync.assignments} == {
            "m-1": (TopicPartition("orders", 1),),
            "a-stranger": (TopicPartition("bills", 0), TopicPartition("orders", 0)),
            "broken": (),
        }


async def test_a_leader_that_is_told_to_skip_the_assignment_hands_in_none() -> None:
    """A static leader that was started again: the group goes on with what everybody has."""
    async with scene() as it:
        it.broker.then(JOIN_GROUP, lambda request: it.broker.joined(request, "m-1")._replace(skip_assignment=True))
        async with it.member(instance_id="one") as member:
            await member.assigned()

        assert it.broker.of(SyncGroupRequest)[0].assignments == ()


async def test_a_follower_hands_in_nothing_and_takes_what_it_gets() -> None:
    async with scene() as it:
        reply = JoinGroupResponse(generation_id=4, protocol_name="range", leader="other", member_id="m-9")
        it.broker.then(JOIN_GROUP, reply)
        it.broker.then(SYNC_GROUP, SyncGroupResponse(assignment=b"\x00\x01garbage"))
        async with it.member() as member:
            assert await member.assigned() == ()

        assert it.broker.of(SyncGroupRequest)[0].assignments == ()
        # Nothing was had, so nothing is taken away.
        assert await it.hear(1) == [("assigned", 0)]
        assert it.told.empty()


async def test_a_sticky_member_says_what_it_had() -> None:
    async with scene() as it:
        async with it.member(assignors=[Sticky()]) as member:
            await member.assigned()
            it.broker.then(HEARTBEAT, Code.REBALANCE_IN_PROGRESS)
            await it.sleeper.wake(BEAT)
            await it.hear(3)

        first, second = (
            read_subscription(each.protocols[0].metadata, sticky=True) for each in it.broker.of(JoinGroupRequest)
        )
        assert (first.owned, first.generation) == ((), -1)
        assert (second.owned, second.generation) == (ORDERS, 1)


# --- topics that come and go ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "read"),
    [(WhiteList("order.*,bill.*"), {"orders", "orders-eu"}), (BlackList("orders"), {"audit", "orders-eu"})],
    ids=["white", "black"],
)
async def test_a_filter_follows_topics_as_they_come(topics: Any, read: set[str]) -> None:
    async with scene() as it:
        it.broker.topics |= {"audit": 1, "__consumer_offsets": 50}
        async with it.member(topics) as member:
            await member.assigned()
            await it.sleeper.wake(REFRESH)
            it.broker.topics["orders-eu"] = 1
            await it.sleeper.wake(REFRESH)
            await it.hear(3)

            assert {partition.topic for partition in await member.assigned()} == read
        # Nothing had come the first time, so nobody was disturbed.
        assert len(it.joins) == 2
        assert it.broker.of(JoinGroupRequest)[1].reason == "its topics changed"


async def test_a_leader_follows_partitions_as_they_are_added() -> None:
    async with scene() as it, it.member() as member:
        await member.assigned()
        await it.sleeper.wake(REFRESH)
        it.broker.topics["orders"] = 5
        await it.sleeper.wake(REFRESH)

        assert await it.hear(3) == [("assigned", 2), ("revoked", 2), ("assigned", 5)]
        assert it.broker.of(JoinGroupRequest)[1].reason == "its topics have other partitions"
        assert len(member.partitions) == 5


async def test_a_topic_that_comes_later_is_assigned_when_it_is_there() -> None:
    async with scene() as it, it.member(["later"]) as member:
        assert await member.assigned() == ()
        it.broker.topics["later"] = 1
        await it.sleeper.wake(REFRESH)

        assert await it.hear(2) == [("assigned", 0), ("assigned", 1)]
