"""What admin tools see of groups at the broker: in every state and version, whatever bytes members have brought."""

from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from offsetd.coordinator.limits import Limits
from offsetd.coordinator.slices import SLICE_ROWS
from protocol.api import APIS, DESCRIBE_GROUPS, LIST_GROUPS
from protocol.describe_groups import OPERATIONS_UNASKED, DescribeGroupsRequest, DescribeGroupsResponse
from protocol.errors import Code
from protocol.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.broker.consumers import ORDERS, Consumer, describe, listed, pair
from tests.broker.scene import Scene

LIMITS = Limits(slots=4, initial_rebalance_delay_ms=0)


def versions(api: int) -> range:
    return range(APIS[api].min_version, APIS[api].max_version + 1)


def scene_of(*, limits: Limits = LIMITS) -> Scene:
    return Scene(limits=limits)


def one_of_each() -> Scene:
    """A group in each state."""
    scene = scene_of()
    scene.commit("simple", {ORDERS: 1})
    Consumer(scene, "stable").settle_alone()
    Consumer(scene, "preparing").settle_alone()
    Consumer(scene, "preparing").send_join()
    again = Consumer(scene, "completing").settle_alone()
    again.join()
    Consumer(scene, "empty").settle_alone().leave()
    Consumer(scene, "asked for").join(9)
    scene.log.settle()
    return scene


@pytest.mark.parametrize("version", versions(DESCRIBE_GROUPS))
def test_a_group_is_described_in_every_state_and_version(version: int) -> None:
    scene = one_of_each()
    names = ("simple", "stable", "preparing", "completing", "empty", "asked for", "nobody")
    found = {group.group_id: group for group in describe(scene, *names, version=version)}

    assert {name: (group.group_state, group.protocol_type, len(group.members)) for name, group in found.items()} == {
        "simple": ("Empty", "", 0),
        "stable": ("Stable", "consumer", 1),
        "preparing": ("PreparingRebalance", "consumer", 2),
        "completing": ("CompletingRebalance", "consumer", 1),
        "empty": ("Empty", "consumer", 0),
        "asked for": ("Empty", "", 0),
        "nobody": ("Dead", "", 0),
    }
    assert {name: group.protocol_data for name, group in found.items() if group.protocol_data} == {"stable": "range"}
    assert {group.error_code for name, group in found.items() if name != "nobody"} == {0}
    assert found["nobody"].error_code == (Code.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    assert (found["nobody"].error_message is not None) == (version >= 6)
    assert {group.authorized_operations for group in found.values()} == {OPERATIONS_UNASKED}


def test_members_are_shown_with_what_they_said_and_their_parts_also_between_generations() -> None:
    scene = scene_of()
    static = Consumer(scene, instance="blue").settle_alone(b"part")
    (stable,) = describe(scene, "g")
    static.join()
    (completing,) = describe(scene, "g")
    (member,) = stable.members

    assert (member.member_id, member.group_instance_id) == (static.member_id, "blue")
    assert (member.client_id, member.client_host) == ("client", "/10.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (static.protocols[0][1], b"part")
    assert (completing.members[0].member_metadata, completing.members[0].member_assignment) == (b"", b"part")


def test_operations_are_shown_where_asked_for() -> None:
    scene = one_of_each()
    client = scene.client()
    groups = ("stable", "nobody")
    numbers = [
        client.send(DescribeGroupsRequest(groups=groups, include_authorized_operations=True), version)
        for version in (3, 5, 6)
    ]
    shown = [
        [group.authorized_operations for group in cast("DescribeGroupsResponse", client.answer(number)).groups]
        for number in numbers
    ]

    assert shown == [[3400, 3400], [3400, 3400], [3400, OPERATIONS_UNASKED]]


def test_a_group_asked_for_twice_is_described_twice_and_one_that_cannot_be_is_dead() -> None:
    scene = one_of_each()
    found = describe(scene, "stable", "n" * 30_000, "stable", "")

    assert [group.group_state for group in found] == ["Stable", "Dead", "Stable", "Dead"]


def test_a_description_that_takes_too_many_bytes_is_refused_group_by_group() -> None:
    """The same group may be asked for a million times, and its members may have brought a mebibyte."""
    scene = scene_of(limits=Limits(slots=4, initial_rebalance_delay_ms=0, response_bytes_max=100_000))
    large = Consumer(scene)
    large.protocols = [("range", bytes(40_000))]
    large.settle_alone()
    with capture_logs() as logs:
        twice, thrice = describe(scene, "g", "g"), describe(scene, "g", "g", "g")

    assert [(group.error_code, len(group.members)) for group in twice] == [(0, 1)] * 2
    assert [(group.error_code, len(group.members)) for group in thrice] == [(Code.UNKNOWN_SERVER_ERROR, 0)] * 3
    assert [line["event"] for line in logs] == ["reply_too_large"]


def test_a_request_whose_refusal_would_be_too_large_costs_its_connection() -> None:
    scene = scene_of(limits=Limits(slots=4, response_bytes_max=1000))
    client = scene.client()
    client.send(DescribeGroupsRequest(groups=tuple(str(number) for number in range(2000))), 0)
    scene.run()

    assert client.replies == []
    assert [type(fault).__name__ for fault in client.faults] == ["ReplyTooLarge"]


def test_very_many_groups_are_described_in_slices_that_others_need_not_wait_for() -> None:
    scene = one_of_each()
    client, other = scene.client(), scene.client()
    count = 5 * SLICE_ROWS
    number = client.send(DescribeGroupsRequest(groups=("stable",) * count), 5)
    asked = other.fetch("simple", [ORDERS])
    early = list(client.replies)
    turns = scene.run()

    assert early == []
    assert other.offsets(asked) == {ORDERS: 1}
    assert turns >= 5
    assert len(cast("DescribeGroupsResponse", client.answer(number)).groups) == count


@pytest.mark.parametrize("version", versions(LIST_GROUPS))
def test_groups_are_listed_in_every_version(version: int) -> None:
    scene = one_of_each()
    client = scene.client()
    number = client.send(ListGroupsRequest(), version)
    scene.run()
    response = cast("ListGroupsResponse", client.answer(number))
    found = {group.group_id: group for group in response.groups}

    assert len(response.groups) == len(found) == 6
    assert {name: group.protocol_type for name, group in found.items()} == {
        "simple": "",
        "asked for": "",
        **dict.fromkeys(("stable", "preparing", "completing", "empty"), "consumer"),
    }
    assert found["stable"].group_state == ("Stable" if version >= 4 else "")
    assert {group.group_type for group in found.values()} == {"classic" if version >= 5 else ""}


@pytest.mark.parametrize(
    ("states", "types", "names"),
    [
        (("Stable",), (), {"stable"}),
        ((" sTaBlE ", "dead"), (), {"stable"}),
        (("empty",), (), {"simple", "empty", "asked for"}),
        (("PreparingRebalance", "CompletingRebalance"), (), {"preparing", "completing"}),
        (("",), (), set()),
        (("odd",), (), set()),
        (("odd", "stable"), (), {"stable"}),
        ((), ("consumer",), set()),
        ((), ("",), set()),
        (("stable",), ("share", "Classic"), {"stable"}),
        (("stable",), ("consumer",), set()),
    ],
)
def test_a_list_is_filtered_by_state_and_type(states: tuple[str, ...], types: tuple[str, ...], names: set[str]) -> None:
    assert set(listed(one_of_each(), *states, types=types)) == names


HOSTILE = [
    b"",
    b"\0",
    b"\xff" * 40,
    b"\0\1\x7f\xff\xff\xff",
    b"\0\1\0\0\0\1\x7f\xfft",
    b"\0\1\0\0\0\1\xff\xff",
    b"\0\1\0\0\0\1\0\2\xff\xfe\xff\xff\xff\xff",
    b"\0\1\0\0\0\1\0\1t\x7f\xff\xff\xff",
    b"\0\1\xff\xff\xff\xff\xff\xff\xff\xff",
    bytes(range(256)) * 100,
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_members_bring_is_kept_shown_and_given_back_as_it_is(data: bytes) -> None:
    scene = scene_of()
    neighbour = Consumer(scene, "neighbour").settle_alone()
    first, second = Consumer(scene), Consumer(scene)
    first.protocols, second.protocols = [("range", data)], [("range", data[::-1]), ("\ufffd", data)]
    first.settle_alone(data)
    waiting = second.send_join()
    together = first.join()
    second.joined(waiting)
    scene.commit("other", {ORDERS: 1})
    parts = {first.member_id: data, second.member_id: data[::-1], "": data, "\0": data}

    assert [row.metadata for row in together.members] == [data, data[::-1]]
    assert first.sync(parts) == (0, data)
    assert second.sync() == (0, data[::-1])
    for version in versions(DESCRIBE_GROUPS):
        (shown,) = describe(scene, "g", version=version)
        assert [(row.member_metadata, row.member_assignment) for row in shown.members] == [
            (data, data),
            (data[::-1], data[::-1]),
        ]
    assert first.commit(1) == second.commit(2) == 0
    restarted = Scene(tuple(scene.log.written), limits=LIMITS)
    assert describe(restarted, "g") == describe(scene, "g")
    assert neighbour.heartbeat() == 0
    assert set(listed(scene)) == {"g", "neighbour", "other"}


def test_odd_names_of_members_and_protocols_break_no_list_and_no_description() -> None:
    scene = scene_of()
    names = ["", "\0", "\ufffd", "a\nb", "ä" * 512, "😀" * 256, "n" * 1024]
    for number, name in enumerate(names):
        member = Consumer(scene, f"g{number}", instance=name)
        member.kind, member.protocols = name or "x", [(name, b"")]
        member.settle_alone()

    for version in versions(LIST_GROUPS):
        client = scene.client()
        asked: Any = ListGroupsRequest()
        number = client.send(asked, version)
        scene.run()
        assert len(client.answer(number).groups) == len(names)
    for version in versions(DESCRIBE_GROUPS):
        found = describe(scene, *(f"g{number}" for number in range(len(names))), version=version)
        assert [group.protocol_data for group in found] == names
        assert [group.group_state for group in found] == ["Stable"] * len(names)


def test_what_is_described_is_what_pair_of_members_has() -> None:
    scene = scene_of()
    first, second = pair(scene)
    (group,) = describe(scene, "g", version=6)

    assert [(row.member_id, row.member_assignment) for row in group.members] == [
        (first.member_id, b"one"),
        (second.member_id, b"two"),
    ]
