"""Commits: shared requests, in order, every caller told what became of its own offsets."""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.client import Client, Committed, MembershipLost, PartitionsRefused, Refused, TopicPartition, Unavailable
from protocol.errors import Code
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tests.client.scripted import (
    OFFSET_COMMIT,
    QUICK,
    Close,
    Hold,
    ScriptedBroker,
    Silence,
    client_of,
    commit_reply,
    committed,
    scripted,
)

ORDERS, BILLS = ("orders", 0), ("bills", 7)


async def held(broker: ScriptedBroker, client: Client, group: str = "billing") -> tuple[Hold, "asyncio.Task[None]"]:
    """Begin a commit that is on its way until its hold is released."""
    hold = Hold()
    broker.then(OFFSET_COMMIT, hold)
    task = asyncio.create_task(client.commit(group, {("first", 0): 1}))
    await hold.arrived.wait()
    return hold, task


def start(client: Client, offsets: Any, group: str = "billing") -> "asyncio.Task[None]":
    """Begin a commit."""
    return asyncio.create_task(client.commit(group, offsets))


async def test_everything_of_a_commit_arrives() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        await client.commit("billing", {ORDERS: Committed(5), BILLS: Committed(2**63 - 1, "a note \u20ac", 12)})

        (request,) = broker.of(OffsetCommitRequest)
        assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("billing", -1, "")
        assert broker.table == {
            ("billing", "orders", 0): (5, "", -1),
            ("billing", "bills", 7): (2**63 - 1, "a note \u20ac", 12),
        }


async def test_commits_that_wait_for_one_on_its_way_become_one_request_of_the_newest_offsets() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold, first = await held(broker, client)
        rest = [start(client, {ORDERS: offset, ("orders", offset % 3): offset}) for offset in range(1, 100)]
        await asyncio.sleep(0)
        hold.release.set()
        await asyncio.gather(first, *rest)

        assert [committed(request) for request in broker.of(OffsetCommitRequest)] == [
            {("first", 0): 1},
            {("orders", 0): 99, ("orders", 1): 97, ("orders", 2): 98},
        ]


async def test_newest_means_asked_for_last_not_largest() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold, first = await held(broker, client)
        forward, back = start(client, {ORDERS: 100}), start(client, {ORDERS: 3})
        await asyncio.sleep(0)
        hold.release.set()
        await asyncio.gather(first, forward, back)

        assert broker.table["billing", "orders", 0][0] == 3


async def test_a_caller_hears_nothing_before_its_own_offset_is_durable() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold, first = await held(broker, client)
        behind = Hold()
        broker.then(OFFSET_COMMIT, behind)
        second = start(client, {ORDERS: 5})
        await asyncio.sleep(0)
        hold.release.set()
        await first
        await behind.arrived.wait()

        assert not second.done()
        behind.release.set()
        await second
        assert broker.table["billing", "orders", 0][0] == 5


async def test_groups_do_not_wait_for_each_other() -> None:
    async with scripted(2) as [broker, other]:
        other.coordinator_of["billing"] = broker
        async with client_of(other) as client:
            hold, first = await held(broker, client)
            await client.commit("other", {ORDERS: 5})

            assert not first.done()
            hold.release.set()
            await first


async def test_a_refused_partition_is_told_to_whom_it_belongs_and_the_others_are_durable() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(
            OFFSET_COMMIT, commit_reply({ORDERS: Code.OFFSET_METADATA_TOO_LARGE, BILLS: Code.NONE}), Close(done=False)
        )
        with pytest.raises(PartitionsRefused, match="shorten the metadata") as caught:
            await client.commit("billing", {ORDERS: Committed(5, "long"), BILLS: Committed(6)})

        assert caught.value.refused == {ORDERS: Code.OFFSET_METADATA_TOO_LARGE}
        assert (caught.value.group, caught.value.partition) == ("billing", TopicPartition(*ORDERS))
        assert len(broker.of(OffsetCommitRequest)) == 1


async def test_an_older_offset_goes_out_when_the_newer_one_was_refused_for_its_metadata() -> None:
    """It had not been sent, since a newer one was to go in its place."""
    async with scripted() as [broker], client_of(broker) as client:
        hold, first = await held(broker, client)
        older = start(client, {ORDERS: 5, BILLS: 5})
        newer = start(client, {ORDERS: Committed(6, "too long"), BILLS: 6})
        await asyncio.sleep(0)
        broker.then(OFFSET_COMMIT, commit_reply({ORDERS: Code.OFFSET_METADATA_TOO_LARGE, BILLS: Code.NONE}))
        hold.release.set()
        await asyncio.gather(first, older)

        with pytest.raises(PartitionsRefused):
            await newer
        # The newer offset of the other partition is durable, and nothing older is sent behind it.
        assert [committed(request) for request in broker.of(OffsetCommitRequest)[1:]] == [
            {ORDERS: 6, BILLS: 6},
            {ORDERS: 5},
        ]


async def test_partitions_that_could_not_now_are_sent_again_without_the_others() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_COMMIT, commit_reply({ORDERS: Code.NONE, BILLS: Code.COORDINATOR_LOAD_IN_PROGRESS}))
        await client.commit("billing", {ORDERS: 5, BILLS: 6})

        assert [committed(request) for request in broker.of(OffsetCommitRequest)] == [
            {ORDERS: 5, BILLS: 6},
            {BILLS: 6},
        ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.UNKNOWN_MEMBER_ID, MembershipLost),
        (Code.ILLEGAL_GENERATION, MembershipLost),
        (Code.INVALID_GROUP_ID, Refused),
    ],
)
async def test_what_concerns_the_group_is_told_to_everybody_by_one_request(code: Code, kind: type[Refused]) -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold, first = await held(broker, client)
        rest = [start(client, {ORDERS: offset}) for offset in range(10)]
        await asyncio.sleep(0)
        broker.then(OFFSET_COMMIT, code)
        hold.release.set()
        await first
        outcomes = await asyncio.gather(*rest, return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [kind] * 10
        assert len(broker.of(OffsetCommitRequest)) == 2


async def test_a_failure_concerns_nobody_who_came_later() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_COMMIT, Code.UNKNOWN_SERVER_ERROR)
        with pytest.raises(PartitionsRefused, match="see its log"):
            await client.commit("billing", {ORDERS: 5})
        await client.commit("billing", {ORDERS: 6})

        assert broker.table["billing", "orders", 0][0] == 6


async def test_a_newer_offset_goes_in_the_place_of_one_whose_outcome_is_unknown() -> None:
    async with scripted() as [broker]:
        waiting, go_on = asyncio.Event(), asyncio.Event()

        async def sleep(_: float) -> None:
            waiting.set()
            await go_on.wait()

        async with client_of(broker, sleep=sleep) as client:
            broker.then(OFFSET_COMMIT, Close(done=True))
            older = start(client, {ORDERS: 5, BILLS: 5})
            await waiting.wait()
            newer = start(client, {ORDERS: 6})
            await asyncio.sleep(0)
            go_on.set()
            await asyncio.gather(older, newer)

            assert committed(broker.of(OffsetCommitRequest)[-1]) == {ORDERS: 6, BILLS: 5}


async def test_a_caller_that_gave_up_is_left_out_of_later_requests() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold, first = await held(broker, client)
        gone, stays = start(client, {ORDERS: 5}), start(client, {BILLS: 6})
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        hold.release.set()
        await asyncio.gather(first, stays)

        assert committed(broker.of(OffsetCommitRequest)[-1]) == {BILLS: 6}


async def test_a_caller_whose_time_is_over_does_not_end_the_request_of_others() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold, first = await held(broker, client)
        with pytest.raises(Unavailable) as caught:
            await client.commit("billing", {ORDERS: 5}, timeout_s=0.01)
        hold.release.set()
        await first

        # It never left.
        assert not caught.value.outcome_unknown


async def test_a_request_that_is_not_answered_leaves_the_outcome_open() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_COMMIT, Silence())
        with pytest.raises(Unavailable) as caught:
            await client.commit("billing", {ORDERS: 5}, timeout_s=1)

        assert caught.value.outcome_unknown


async def test_commits_are_put_together_only_up_to_a_size() -> None:
    async with scripted() as [broker], client_of(broker, limits=replace(QUICK, commit_bytes_max=1000)) as client:
        hold, first = await held(broker, client)
        large = [start(client, {("orders", number): Committed(number, "x" * 150)}) for number in range(5)]
        await asyncio.sleep(0)
        hold.release.set()
        await asyncio.gather(first, *large)

        assert [len(committed(request)) for request in broker.of(OffsetCommitRequest)] == [1, 2, 2, 1]


async def test_a_reply_that_leaves_partitions_out_settles_nothing() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_COMMIT, OffsetCommitResponse())
        await client.commit("billing", {ORDERS: 5})

        assert len(broker.of(OffsetCommitRequest)) == 2


async def test_a_commit_of_nothing_asks_nobody() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        await client.commit("billing", {})

        assert broker.seen == []


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ({("orders", 0): -1}, "offset -1 of"),
        ({("orders", 0): 2**63}, "is not a number in 0"),
        ({("orders", 0): 1.5}, "is not a number"),
        ({("orders", -1): 1}, "partition -1 of orders"),
        ({("orders", 2**31): 1}, "is not a number in 0"),
        ({("", 0): 1}, "is not a name"),
        ({("x" * 250, 0): 1}, "is not a name"),
        ({("orders", 0): Committed(1, "x" * 32_768)}, "metadata has 32768 bytes"),
        ({("orders", 0): Committed(1, "\ud800")}, "surrogates not allowed"),
        ({("orders", 0): Committed(1, "", -2)}, "leader epoch -2"),
    ],
)
async def test_what_nothing_could_say_is_refused_before_it_is_sent(offsets: Any, words: str) -> None:
    async with scripted() as [broker], client_of(broker) as client:
        with pytest.raises(ValueError, match=words):
            await client.commit("billing", offsets)
        with pytest.raises(ValueError, match="group id has"):
            await client.commit("x" * 40_000, {ORDERS: 1})

        assert broker.seen == []


ACTS = st.sampled_from(
    [
        None,
        None,
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.NOT_COORDINATOR,
        Code.REQUEST_TIMED_OUT,
        Close(done=True),
        Close(done=False),
        b"\xff\xff\xff\xff",
    ]
)


@settings(derandomize=True, deadline=None, database=None, max_examples=40)
@given(
    calls=st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 9), min_size=1), min_size=1, max_size=20),
    acts=st.lists(ACTS, max_size=12),
    turns=st.integers(),
)
def test_nothing_is_lost_and_nothing_goes_back_whatever_happens_on_the_way(
    calls: list[dict[int, int]], acts: list[Any], turns: int
) -> None:
    """After each acknowledgement the broker holds, for each partition, that caller's offset or a later caller's."""

    async def run() -> None:
        random = Random(turns)
        # Which call wrote what stands in the metadata.
        order: dict[int, list[int]] = {}

        async def call(number: int, offsets: dict[int, int]) -> None:
            rows = {("orders", each): Committed(offset, str(number)) for each, offset in offsets.items()}
            for each in offsets:
                order.setdefault(each, []).append(number)
            await client.commit("billing", rows)
            for each in offsets:
                writer = int(broker.table["billing", "orders", each][1])
                assert order[each].index(writer) >= order[each].index(number)

        async with scripted() as [broker], client_of(broker) as client:
            broker.then(OFFSET_COMMIT, *[act if act is not None else Hold() for act in acts])
            for act in broker._acts[OFFSET_COMMIT]:
                if isinstance(act, Hold):
                    act.release.set()
            tasks = []
            for number, offsets in enumerate(calls):
                tasks.append(asyncio.create_task(call(number, offsets)))
                for _ in range(random.choice([0, 0, 1, 20])):
                    await asyncio.sleep(0)
            await asyncio.gather(*tasks)
            for each, numbers in order.items():
                assert broker.table["billing", "orders", each] == (calls[numbers[-1]][each], str(numbers[-1]), -1)

    asyncio.run(run())
