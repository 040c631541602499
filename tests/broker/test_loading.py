"""While a slot is not whole nobody is told "no offset": a consumer would believe it and start over."""

from typing import Any

import pytest

from offsetd.coordinator.limits import Limits
from offsetd.coordinator.slot import slot_of
from offsetd.record import TopicOffsets, Who, encode_commit
from protocol.errors import Code
from protocol.list_offsets import ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic
from protocol.metadata import MetadataRequest, MetadataRequestTopic
from protocol.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from tests.broker.scene import COMMIT_VERSIONS, FETCH_VERSIONS, Scene
from tests.fakes.clock import NOW_MS
from tests.fakes.wire import fetch_request

LOADING = Code.COORDINATOR_LOAD_IN_PROGRESS
ORDERS = ("orders", 0)
GROUPS = {slot: next(name for name in map(str, range(1000)) if slot_of(name, 4) == slot) for slot in range(4)}


def contents() -> list[bytes]:
    """One group in each slot, with offset 42."""
    orders = TopicOffsets("orders", bytes(4), (42).to_bytes(8, "big"))
    return [encode_commit(slot, group, NOW_MS, Who("", "", ""), (orders,)) for slot, group in GROUPS.items()]


def levels(response: Any) -> list[tuple[int, list[int]]]:
    """Return, for each group answered, the code above and the codes and offsets on its partitions."""
    parts = [(one.error_code, one.topics) for one in response.groups] or [(response.error_code, response.topics)]
    return [
        (code, [row.error_code for topic in topics for row in topic.partitions if row.committed_offset == -1])
        for code, topics in parts
    ]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_is_refused_at_both_levels_while_its_slot_loads(version: int) -> None:
    scene = Scene(contents(), loaded=False)
    client = scene.client()

    client.fetch(GROUPS[0], [ORDERS, ("orders", 1)], version)

    # Versions 0 and 1 have no place for a code above the partitions.
    above = 0 if version < 2 else LOADING
    assert levels(client.answer(0)) == [(above, [LOADING, LOADING])]


@pytest.mark.parametrize("version", range(2, 10))
def test_a_fetch_of_all_topics_is_refused_while_its_slot_loads(version: int) -> None:
    scene = Scene(contents(), loaded=False)
    client = scene.client()

    client.fetch(GROUPS[0], None, version)

    assert levels(client.answer(0)) == [(LOADING, [])]


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_commit_is_refused_while_its_slot_loads(version: int) -> None:
    scene = Scene(contents(), loaded=False)
    client = scene.client()

    client.commit(GROUPS[0], {ORDERS: 1, ("orders", 1): 1}, version)

    assert set(client.codes(0).values()) == {LOADING}
    assert scene.log.held == []


def test_each_slot_answers_as_soon_as_it_is_whole() -> None:
    scene = Scene(contents(), loaded=False)
    client = scene.client()
    seen: list[str] = []

    for _ in scene.broker.load():
        answers = [client.answer(client.fetch(GROUPS[slot], [ORDERS])).groups[0] for slot in range(4)]
        seen.append("".join(".!"[one.error_code == 0] for one in answers))
        offsets = [one.topics[0].partitions[0].committed_offset for one in answers]
        assert offsets == [42 if mark == "!" else -1 for mark in seen[-1]]

    assert list(dict.fromkeys(seen)) == ["....", "!...", "!!..", "!!!.", "!!!!"]
    assert scene.log.is_loaded


def test_a_fetch_of_several_groups_refuses_only_those_that_load() -> None:
    scene = Scene(contents(), loaded=False)
    load = scene.broker.load()
    while scene.broker.slots.count()["ready"] < 2:
        next(load)
    client = scene.client()
    asked = OffsetFetchRequestTopic(name="orders", partition_indexes=(0,))
    groups = tuple(OffsetFetchRequestGroup(group_id=name, topics=(asked,)) for name in GROUPS.values())

    client.send(OffsetFetchRequest(groups=groups), 9)

    assert [one.error_code for one in client.answer(0).groups] == [0, 0, LOADING, LOADING]


def test_a_refusal_is_not_kept_for_when_the_slot_is_whole() -> None:
    scene = Scene(contents(), loaded=False)
    client = scene.client()
    client.fetch(GROUPS[3], [ORDERS])
    client.fetch(GROUPS[3], [ORDERS])

    scene.load()
    number = client.fetch(GROUPS[3], [ORDERS])

    assert client.offsets(number) == {ORDERS: 42}


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_load_that_failed_refuses_what_it_could_not_read_and_shows_the_rest(version: int) -> None:
    scene = Scene(contents(), broken_slot=1, loaded=False)

    with pytest.raises(OSError, match="Input/output error"):
        scene.load()
    scene.broker.slots.fail_loading()
    client = scene.client()
    whole = client.send(fetch_request(GROUPS[0], [ORDERS], version), version)
    failed = [client.send(fetch_request(GROUPS[slot], [ORDERS], version), version) for slot in (1, 2, 3)]

    assert client.offsets(whole) == {ORDERS: 42}
    above = 0 if version < 2 else LOADING
    assert [levels(client.answer(number)) for number in failed] == [[(above, [LOADING])]] * 3
    assert scene.broker.slots.count() == {"loading": 0, "ready": 1, "failed": 3}
    assert not scene.log.is_loaded


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_load_that_failed_takes_no_commits_either(version: int) -> None:
    scene = Scene(contents(), broken_slot=1, loaded=False)
    with pytest.raises(OSError, match="Input/output error"):
        scene.load()
    scene.broker.slots.fail_loading()
    client = scene.client()

    client.commit(GROUPS[1], {ORDERS: 1}, version)

    assert client.codes(0) == {ORDERS: LOADING}
    assert scene.log.held == []


# --- topics and their ends ------------------------------------------------------------------------------------------


def list_offsets(timestamp: int, topic: str = "orders") -> ListOffsetsRequest:
    partition = ListOffsetsRequestPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(topics=(ListOffsetsRequestTopic(name=topic, partitions=(partition,)),))


@pytest.mark.parametrize("version", range(12))
def test_no_end_is_told_until_every_slot_is_whole(version: int) -> None:
    """Tools clip resets to it, and some consumers start over when their offset lies beyond."""
    scene = Scene(contents(), loaded=False)
    load = scene.broker.load()
    while scene.broker.slots.count()["ready"] < 3:
        next(load)
    client = scene.client()

    early = [client.send(list_offsets(-1, topic), version) for topic in ("orders", "perhaps")]
    begin = client.send(list_offsets(-2), version)
    for _ in load:
        pass
    late = [client.send(list_offsets(-1, topic), version) for topic in ("orders", "perhaps")]

    rows = [client.answer(number).topics[0].partitions[0] for number in (*early, begin, *late)]
    unknown = Code.OFFSET_NOT_AVAILABLE if version >= 5 else Code.LEADER_NOT_AVAILABLE
    assert [row.error_code for row in rows] == [unknown, unknown, 0, 0, Code.UNKNOWN_TOPIC_OR_PARTITION]
    assert (rows[3].old_style_offsets if version == 0 else (rows[3].offset,)) == (42,)


@pytest.mark.parametrize("version", range(14))
def test_a_topic_that_is_not_known_yet_may_yet_exist(version: int) -> None:
    scene = Scene(contents(), loaded=False)
    client = scene.client()
    request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),), allow_auto_topic_creation=False)

    early = client.send(request, version)
    scene.load()
    late = client.send(request, version)

    # Before version 4 nobody could say that a topic is not to be made, so it is there at once.
    code = Code.LEADER_NOT_AVAILABLE if version >= 4 else 0
    assert [client.answer(number).topics[0].error_code for number in (early, late)] == [code, 0]


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_strict_broker_takes_no_commit_until_it_knows_every_topic(version: int) -> None:
    """Code 3 would be wrong, and several clients would never stop to ask again."""
    scene = Scene(contents(), loaded=False, limits=Limits(slots=4, strict=True))
    load = scene.broker.load()
    while scene.broker.slots.count()["ready"] < 2:
        next(load)
    client = scene.client()

    early = client.commit(GROUPS[0], {ORDERS: 43, ("nowhere", 0): 1}, version)
    for _ in load:
        pass
    late = client.commit(GROUPS[0], {ORDERS: 43, ("nowhere", 0): 1}, version)
    scene.log.settle()

    assert client.codes(early) == {ORDERS: LOADING, ("nowhere", 0): LOADING}
    assert client.codes(late) == {ORDERS: 0, ("nowhere", 0): Code.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("loaded", [False, True])
def test_a_group_id_that_no_commit_could_make_has_no_offset_and_takes_no_search(loaded: bool) -> None:
    scene = Scene(contents(), loaded=loaded)

    assert scene.shown("n" * 1025, [ORDERS]) == {ORDERS: -1}
