"""Fetches: of some partitions, of all, of many groups; and no error that reads as no offset."""

import pytest

from offsetd.client import Committed, NotAuthorized, Refused, Unavailable
from protocol.errors import Code
from protocol.find_coordinator import FindCoordinatorRequest
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from tests.client.scripted import OFFSET_FETCH, Close, ScriptedBroker, client_of, scripted

ORDERS, BILLS = ("orders", 0), ("bills", 7)


def hold_some(broker: ScriptedBroker) -> None:
    """Give a broker something to show."""
    broker.table["billing", "orders", 0] = (5, "note", 3)
    broker.table["billing", "bills", 7] = (6, "", -1)
    broker.table["audit", "orders", 0] = (7, "", -1)


async def test_some_partitions_or_all_of_a_group() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold_some(broker)

        assert await client.fetch("billing", [ORDERS, ("orders", 1)]) == {ORDERS: Committed(5, "note", 3)}
        assert await client.fetch("billing") == {ORDERS: Committed(5, "note", 3), BILLS: Committed(6)}
        assert await client.fetch("billing", []) == {}
        assert await client.fetch("nobody") == {}


async def test_many_groups_are_asked_for_in_one_request_per_coordinator() -> None:
    async with scripted(2) as [broker, other]:
        hold_some(broker)
        broker.coordinator_of = {f"group-{number}": other for number in range(100)}
        async with client_of(broker) as client:
            asked = {"billing": [BILLS], "audit": None, **{f"group-{number}": None for number in range(100)}}
            found = await client.fetch_groups(asked)

            assert list(found) == list(asked)
            assert (found["billing"], found["audit"]) == ({BILLS: Committed(6)}, {ORDERS: Committed(7)})
            assert [len(each.of(OffsetFetchRequest)) for each in (broker, other)] == [1, 1]


async def test_very_many_groups_are_asked_for_in_several_requests() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold_some(broker)
        found = await client.fetch_groups({"billing": None, **{f"group-{number}": None for number in range(1200)}})

        assert len(found) == 1201
        assert found["billing"] == {ORDERS: Committed(5, "note", 3), BILLS: Committed(6)}
        assert [len(request.groups) for request in broker.of(OffsetFetchRequest)] == [500, 500, 201]
        assert [len(request.coordinator_keys) for request in broker.of(FindCoordinatorRequest)] == [500, 500, 201]


async def test_no_groups_ask_nobody() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        assert await client.fetch_groups({}) == {}
        assert broker.seen == []


async def test_a_group_that_could_not_be_answered_is_asked_for_again_without_the_others() -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold_some(broker)
        broker.then(
            OFFSET_FETCH,
            OffsetFetchResponse(
                groups=(
                    OffsetFetchResponseGroup(group_id="audit"),
                    OffsetFetchResponseGroup(group_id="billing", error_code=Code.COORDINATOR_LOAD_IN_PROGRESS),
                )
            ),
        )
        found = await client.fetch_groups({"billing": None, "audit": None})

        assert found == {"billing": {ORDERS: Committed(5, "note", 3), BILLS: Committed(6)}, "audit": {}}
        assert [group.group_id for group in broker.of(OffsetFetchRequest)[1].groups] == ["billing"]


def reply(code: Code, row_code: Code) -> OffsetFetchResponse:
    """Return a reply that shows no offset and these codes."""
    row = OffsetFetchResponsePartition(partition_index=0, committed_offset=-1, error_code=row_code)
    topic = OffsetFetchResponseTopic(name="orders", partitions=(row,))
    group = OffsetFetchResponseGroup(group_id="billing", topics=(topic,), error_code=code)
    return OffsetFetchResponse(groups=(group,))


@pytest.mark.parametrize(
    "bad",
    [
        reply(Code.COORDINATOR_LOAD_IN_PROGRESS, Code.NONE),
        reply(Code.NONE, Code.COORDINATOR_LOAD_IN_PROGRESS),
        reply(Code.NOT_COORDINATOR, Code.NOT_COORDINATOR),
        OffsetFetchResponse(),
        OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="billing"),)),
        Close(done=True),
    ],
    ids=["code of the group", "code of the partition", "both", "no group", "no partition", "closed"],
)
async def test_no_failure_is_read_as_no_offset(bad: OffsetFetchResponse | Close) -> None:
    async with scripted() as [broker], client_of(broker) as client:
        hold_some(broker)
        broker.then(OFFSET_FETCH, bad)

        assert await client.fetch("billing", [ORDERS]) == {ORDERS: Committed(5, "note", 3)}
        assert len(broker.of(OffsetFetchRequest)) == 2


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (reply(Code.GROUP_AUTHORIZATION_FAILED, Code.NONE), NotAuthorized),
        (reply(Code.NONE, Code.TOPIC_AUTHORIZATION_FAILED), NotAuthorized),
        (reply(Code.UNKNOWN_SERVER_ERROR, Code.COORDINATOR_LOAD_IN_PROGRESS), Refused),
    ],
)
async def test_what_is_final_is_raised_at_once(bad: OffsetFetchResponse, kind: type[Refused]) -> None:
    async with scripted() as [broker], client_of(broker) as client:
        broker.then(OFFSET_FETCH, bad)
        with pytest.raises(kind) as caught:
            await client.fetch("billing", [ORDERS])

        assert caught.value.group == "billing"
        assert len(broker.of(OffsetFetchRequest)) == 1


async def test_what_is_final_for_one_coordinator_does_not_wait_for_the_other() -> None:
    async with scripted(2) as [broker, other]:
        broker.coordinator_of["other"] = other
        other.then(OFFSET_FETCH, *[Code.COORDINATOR_LOAD_IN_PROGRESS] * 99)
        broker.then(OFFSET_FETCH, Code.GROUP_AUTHORIZATION_FAILED)
        async with client_of(broker) as client:
            with pytest.raises(NotAuthorized):
                await client.fetch_groups({"billing": None, "other": None})


async def test_a_time_limit_of_several_groups_names_none() -> None:
    async with scripted() as [broker]:
        broker.then(OFFSET_FETCH, *[Code.COORDINATOR_LOAD_IN_PROGRESS] * 100_000)
        async with client_of(broker) as client:
            with pytest.raises(Unavailable, match="fetching offsets did not succeed") as caught:
                await client.fetch_groups({"billing": None, "other": None}, timeout_s=0.5)

        assert caught.value.group is None
