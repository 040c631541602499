"""Members against a real daemon: every partition owned once, whoever comes, goes, dies, or is of another library."""

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from offsetd.client import (
    AtLeastOnce,
    BlockingClient,
    Client,
    Fenced,
    Member,
    MembershipLost,
    PartitionsRefused,
    Range,
    RoundRobin,
    Sticky,
    Timing,
    TopicPartition,
    WhiteList,
)
from tests.client.program import ROOT, run_program
from tests.fakes.daemon import WAIT_SECONDS, Daemon, running

pytestmark = pytest.mark.integration

SETTINGS = {"group.initial.rebalance.delay.ms": 0, "topics.known": "orders:6,bills:3", "num.partitions": 2}
#: Quick to notice, slow to forget.
TIMING = Timing(heartbeat_interval_s=0.05, topics_refresh_s=0.05, session_timeout_s=30, rebalance_timeout_s=30)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that nothing bad happens to; each test has a group of its own."""
    with running(tmp_path_factory.mktemp("daemon"), SETTINGS) as found:
        yield found
        assert [event for event in found.events() if event["level"] != "info"] == []


@asynccontextmanager
async def joined(daemon: Daemon, group: str, topics: Any = ("orders",), **arguments: Any) -> AsyncIterator[Member]:
    """Run a member with a client of its own, as in a process of its own."""
    async with (
        Client(daemon.address) as client,
        client.member(group, topics, **{"timing": TIMING, **arguments}) as member,
    ):
        await member.assigned()
        yield member


async def until(condition: Any) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


def owned(*members: Member) -> Counter[TopicPartition]:
    """Return how often each partition is owned."""
    return Counter(partition for member in members for partition in member.partitions)


def whole(topic: str, count: int) -> Counter[TopicPartition]:
    """Return each partition of a topic once."""
    return Counter(TopicPartition(topic, number) for number in range(count))


@pytest.mark.parametrize("assignor", [Range(), RoundRobin(), Sticky()], ids=lambda each: str(each.name))
async def test_members_that_come_and_go_own_every_partition_once(daemon: Daemon, assignor: Any) -> None:
    group = f"come-and-go-{assignor.name}"
    async with joined(daemon, group, assignors=[assignor]) as first:
        assert owned(first) == whole("orders", 6)
        async with joined(daemon, group, assignors=[assignor]) as second:
            await until(lambda: (len(first.partitions), len(second.partitions)) == (3, 3))
            assert owned(first, second) == whole("orders", 6)
            async with joined(daemon, group, assignors=[assignor]) as third:
                await until(lambda: [len(each.partitions) for each in (first, second, third)] == [2, 2, 2])
                assert owned(first, second, third) == whole("orders", 6)
        await until(lambda: owned(first) == whole("orders", 6))


async def test_a_sticky_group_moves_no_more_than_it_must(daemon: Daemon) -> None:
    arguments: dict[str, Any] = {"assignors": [Sticky()]}
    async with joined(daemon, "sticky", **arguments) as first, joined(daemon, "sticky", **arguments) as second:
        await until(lambda: (len(first.partitions), len(second.partitions)) == (3, 3))
        before = {each: set(each.partitions) for each in (first, second)}
        async with joined(daemon, "sticky", **arguments) as third:
            await until(lambda: [len(each.partitions) for each in (first, second, third)] == [2, 2, 2])

            assert all(set(each.partitions) < before[each] for each in (first, second))


async def test_streams_count_like_members(daemon: Daemon) -> None:
    async with joined(daemon, "streams", streams=2) as first, joined(daemon, "streams") as second:
        await until(lambda: (len(first.partitions), len(second.partitions)) == (4, 2))

        assert [len(stream) for stream in first.streams] == [2, 2]


async def test_offsets_are_handed_over_from_member_to_member(daemon: Daemon) -> None:
    """Each goes on where the one before stopped, because letting go is the time to commit."""
    done: dict[TopicPartition, int] = {}

    async def work(count: int) -> None:
        async with Client(daemon.address) as client:
            starts: dict[TopicPartition, int] = {}

            async def start(partitions: tuple[TopicPartition, ...]) -> None:
                found = await AtLeastOnce(member).resume(partitions)
                starts.update({partition: each.offset for partition, each in found.items()})

            async def stop(partitions: tuple[TopicPartition, ...]) -> None:
                await member.commit({partition: starts[partition] + count for partition in partitions})
                done.update({partition: starts[partition] + count for partition in partitions})

            member = client.member("hand-over", ["orders"], on_assigned=start, on_revoked=stop, timing=TIMING)
            async with member:
                await member.assigned()
            assert starts == {partition: done.get(partition, 0) - count for partition in starts}

    await work(10)
    await work(5)

    assert done == dict.fromkeys(whole("orders", 6), 15)


async def test_somebody_outside_cannot_commit_while_a_member_is_there_nor_delete(daemon: Daemon) -> None:
    async with joined(daemon, "guarded") as member, Client(daemon.address) as outsider:
        await member.commit({("orders", 0): 5})
        with pytest.raises(MembershipLost, match="the group has members and this is none of them"):
            await outsider.commit("guarded", {("orders", 0): 6})
        with pytest.raises(PartitionsRefused, match="members of the group read the topic"):
            await outsider.delete("guarded", [("orders", 0)])

        assert (await outsider.fetch("guarded"))[TopicPartition("orders", 0)].offset == 5
    async with Client(daemon.address) as outsider:
        await outsider.delete("guarded", [("orders", 0)])
        assert await outsider.fetch("guarded") == {}


async def test_a_static_member_comes_back_to_its_partitions_and_nobody_else_notices(daemon: Daemon) -> None:
    rebalances = []

    async def told(partitions: tuple[TopicPartition, ...]) -> None:
        rebalances.append(partitions)

    async with joined(daemon, "static", on_assigned=told) as other:
        async with joined(daemon, "static", instance_id="one") as one:
            await until(lambda: (len(other.partitions), len(one.partitions)) == (3, 3))
            had = one.partitions
        count = len(rebalances)
        async with joined(daemon, "static", instance_id="one") as one:
            assert one.partitions == had
            assert len(rebalances) == count


async def test_of_two_under_one_instance_id_the_older_is_fenced(daemon: Daemon) -> None:
    async with Client(daemon.address) as client:
        older = client.member("fenced", ["orders"], instance_id="one", timing=TIMING)
        older.start()
        await older.assigned()
        async with joined(daemon, "fenced", instance_id="one") as newer:
            with pytest.raises(Fenced):
                await older.ended()

            assert owned(newer) == whole("orders", 6)
            await newer.commit({("orders", 0): 5})


async def test_a_filter_finds_topics_as_commits_make_them_known(daemon: Daemon) -> None:
    async with joined(daemon, "filter", WhiteList("new-.*")) as member, Client(daemon.address) as other:
        assert member.partitions == ()
        await other.commit("somebody", {("new-one", 1): 5})
        await until(lambda: owned(member) == whole("new-one", 2))
        await other.commit("somebody", {("new-two", 0): 5, ("new-one", 3): 1})
        await until(lambda: owned(member) == whole("new-one", 4) + whole("new-two", 2))


async def test_a_member_that_dies_is_missed_and_its_partitions_go_to_others(daemon: Daemon) -> None:
    program = """
import sys, time
from offsetd.client import BlockingClient, Timing
client = BlockingClient(sys.argv[1])
timing = Timing(heartbeat_interval_s=0.1, session_timeout_s=6, rebalance_timeout_s=6)
with client.member("dying", ["orders"], timing=timing) as member:
    print(len(member.assigned()), flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, daemon.address], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"6\n"
        process.kill()
        async with joined(daemon, "dying") as member:
            await until(lambda: owned(member) == whole("orders", 6))
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Range(), RangePartitionAssignor),
        (RoundRobin(), RoundRobinPartitionAssignor),
        (Sticky(), StickyPartitionAssignor),
    ],
)
async def test_members_of_another_library_in_the_same_group_own_each_partition_once(
    daemon: Daemon, ours: Any, theirs: Any
) -> None:
    """Whoever leads: first ours does, then, when ours has left and come back, the other."""
    group = f"mixed-{ours.name}"
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=daemon.address,
        group_id=group,
        partition_assignment_strategy=[theirs],
        heartbeat_interval_ms=50,
        enable_auto_commit=False,
    )

    def all_owned(member: Member) -> bool:
        others = Counter(TopicPartition(each.topic, each.partition) for each in consumer.assignment())
        return owned(member) + others == whole("orders", 6) and len(member.partitions) == 3

    try:
        async with joined(daemon, group, assignors=[ours]) as member:
            await consumer.start()
            await until(lambda: all_owned(member))
        await until(lambda: len(consumer.assignment()) == 6)
        async with joined(daemon, group, assignors=[ours]) as member:
            await until(lambda: all_owned(member))
    finally:
        await consumer.stop()


@pytest.mark.crash
async def test_members_go_on_after_a_kill_of_the_daemon_without_a_rebalance(tmp_path: Path) -> None:
    told: Counter[str] = Counter()

    async def assigned(_: tuple[TopicPartition, ...]) -> None:
        told["assigned"] += 1

    async def taken(_: tuple[TopicPartition, ...]) -> None:
        told["taken"] += 1

    with running(tmp_path, SETTINGS) as daemon:
        callbacks = {"on_assigned": assigned, "on_revoked": taken, "on_lost": taken}
        async with joined(daemon, "survivors") as first, joined(daemon, "survivors", **callbacks) as second:
            await until(lambda: owned(first, second) == whole("orders", 6))
            await second.commit({second.partitions[0]: 5})
            told.clear()
            await asyncio.to_thread(daemon.kill)
            await asyncio.to_thread(daemon.start, listen=daemon.address)
            await second.commit({second.partitions[0]: 6})

            assert owned(first, second) == whole("orders", 6)
            assert told == {}


def test_a_member_without_a_loop_does_its_work_in_callbacks(daemon: Daemon) -> None:
    told: list[tuple[str, int]] = []
    with BlockingClient(daemon.address) as client:

        def assigned(partitions: tuple[TopicPartition, ...]) -> None:
            assert threading.current_thread().name == "offsetd-callbacks"
            told.append(("assigned", sum(found.offset for found in keeper.resume(partitions).values())))

        def revoked(partitions: tuple[TopicPartition, ...]) -> None:
            member.commit(dict.fromkeys(partitions, 7))
            told.append(("revoked", len(partitions)))

        member = client.member("blocking", ["orders"], on_assigned=assigned, on_revoked=revoked, timing=TIMING)
        keeper = member.keep(AtLeastOnce)
        with member:
            assert Counter(member.assigned()) == whole("orders", 6)
            assert member.streams == (member.partitions,)
            member.commit({("orders", 0): 3})
        member.close()
        found = client.fetch("blocking")

        assert told == [("assigned", 0), ("revoked", 6)]
        assert {each.offset for each in found.values()} == {7}
    assert not any(thread.name.startswith("offsetd-") for thread in threading.enumerate())


def test_a_callback_without_a_loop_cannot_close_its_member(daemon: Daemon) -> None:
    with BlockingClient(daemon.address) as client:
        member = client.member("blunder", ["orders"], on_assigned=lambda _: member.close(), timing=TIMING)
        member.start()
        with pytest.raises(RuntimeError, match="a callback cannot close its member"):
            member.ended()
        with pytest.raises(RuntimeError, match="a callback cannot close its member"):
            member.close()


def test_a_program_that_ends_without_closing_leaves_its_group(daemon: Daemon) -> None:
    program = f"""
from offsetd.client import BlockingClient, Timing
client = BlockingClient({daemon.address!r})
def revoked(partitions):
    member.commit(dict.fromkeys(partitions, 9))
    print("revoked", len(partitions))
member = client.member("ending", ["orders"], on_revoked=revoked)
member.start()
print(len(member.assigned()))
"""
    done = run_program(program)
    with BlockingClient(daemon.address) as client:
        # Nobody is a member any more, or this would be refused.
        client.commit("ending", {("orders", 0): 10})

        assert (done.returncode, done.stdout, done.stderr) == (0, "6\nrevoked 6\n", "")
        assert {each.offset for each in client.fetch("ending").values()} == {9, 10}
