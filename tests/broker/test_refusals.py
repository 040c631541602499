"""What cannot be kept, or not be known, is said so: time-outs, full disks, requests too large."""

import pytest
from structlog.testing import capture_logs

from offsetd.record import ENTRY_BYTES_MAX
from protocol.errors import Code
from protocol.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.broker.scene import COMMIT_VERSIONS, Scene
from tests.fakes.wire import commit_frame, commit_request

ORDERS = ("orders", 0)
TIMEOUT_MS = 5000


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_commit_that_takes_too_long_is_told_that_its_outcome_is_unknown(version: int) -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1}, version)

    scene.clock.advance(TIMEOUT_MS - 1)
    scene.broker.commits.time_out()
    early = list(client.replies)
    scene.clock.advance(2)
    scene.broker.commits.time_out()

    assert early == []
    assert client.codes(0) == {ORDERS: Code.REQUEST_TIMED_OUT}


def test_a_commit_that_settles_after_its_time_out_is_applied_without_a_second_reply() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    behind = client.fetch("g", [ORDERS])
    scene.clock.advance(TIMEOUT_MS + 1)
    scene.broker.commits.time_out()
    scene.broker.commits.time_out()

    scene.log.settle()

    assert client.order() == [0, 1]
    assert client.offsets(behind) == {ORDERS: -1}
    assert scene.shown("g") == {ORDERS: 1}
    assert scene.observed.refusals == {(8, Code.REQUEST_TIMED_OUT): 1}


def test_a_commit_that_is_refused_after_its_time_out_has_no_second_reply_either() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    scene.clock.advance(TIMEOUT_MS + 1)
    scene.broker.commits.time_out()

    scene.log.refuse()

    assert client.order() == [0]
    assert client.codes(0) == {ORDERS: Code.REQUEST_TIMED_OUT}
    assert scene.shown("g") == {}


def test_only_what_is_late_times_out_and_replies_keep_their_order() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    scene.clock.advance(TIMEOUT_MS)
    client.commit("g", {ORDERS: 2})
    scene.clock.advance(1)

    scene.broker.commits.time_out()
    late = client.order()
    scene.log.settle()

    assert late == [0]
    assert client.codes(0) == {ORDERS: Code.REQUEST_TIMED_OUT}
    assert client.codes(1) == {ORDERS: 0}


def test_the_wait_counts_from_the_append_and_not_from_bytes_that_waited_in_a_buffer() -> None:
    """Frames that stood behind a full pipeline would otherwise time out in the moment they are let in."""
    scene = Scene()
    client = scene.client()
    scene.clock.advance(10 * TIMEOUT_MS)
    scene.broker.receive(commit_frame(0, commit_request("g", {ORDERS: 1}), 9)[4:], client)

    scene.broker.commits.time_out()
    early = list(client.replies)
    scene.clock.advance(TIMEOUT_MS + 1)
    scene.broker.commits.time_out()

    assert early == []
    assert len(client.replies) == 1


def test_a_shape_that_times_out_answers_the_request_that_came() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1, ("orders", 1): 1})
    scene.log.settle()
    client.commit("g", {ORDERS: 2, ("orders", 1): 2})
    scene.clock.advance(TIMEOUT_MS + 1)

    scene.broker.commits.time_out()

    assert scene.observed.shape_hits == 1
    assert client.codes(1) == dict.fromkeys([ORDERS, ("orders", 1)], Code.REQUEST_TIMED_OUT)


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_full_disk_refuses_commits_and_changes_nothing(version: int) -> None:
    scene = Scene()
    scene.commit("g", {ORDERS: 1})
    client = scene.client()
    client.commit("g", {ORDERS: 2}, version)
    client.commit("new", {ORDERS: 2}, version)

    scene.log.refuse()

    assert client.codes(0) == client.codes(1) == {ORDERS: Code.COORDINATOR_NOT_AVAILABLE}
    assert scene.shown("g") == {ORDERS: 1}
    assert scene.shown("new") == {}


def test_a_disk_with_room_again_takes_commits_again() -> None:
    scene = Scene()
    client = scene.client()
    client.commit("g", {ORDERS: 1})
    scene.log.refuse()

    client.commit("g", {ORDERS: 1})
    scene.log.settle()

    assert client.codes(1) == {ORDERS: 0}
    assert scene.shown("g") == {ORDERS: 1}


def test_a_full_disk_does_not_refuse_what_was_stored_before() -> None:
    """The touch is a note of ours; the client's offset is on disk with or without it."""
    scene = Scene()
    scene.commit("g", {ORDERS: 1})
    scene.clock.advance(60_001)
    client = scene.client()
    client.commit("g", {ORDERS: 1})

    scene.log.refuse()

    assert client.codes(0) == {ORDERS: 0}
    assert scene.shown("g") == {ORDERS: 1}


def large_commit(metadata_bytes: int, partitions: int) -> OffsetCommitRequest:
    rows = tuple(
        OffsetCommitRequestPartition(
            partition_index=number, committed_offset=1, committed_metadata="m" * metadata_bytes
        )
        for number in range(partitions)
    )
    return OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="orders", partitions=rows),))


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_a_request_of_over_a_mebibyte_of_records_is_refused_on_its_partitions(version: int) -> None:
    scene = Scene()
    client = scene.client()

    client.send(large_commit(4000, 300), version)
    client.send(large_commit(4000, 200), version)
    scene.log.settle()

    assert set(client.codes(0).values()) == {Code.UNKNOWN_SERVER_ERROR}
    assert len(client.codes(0)) == 300
    assert set(client.codes(1).values()) == {0}
    assert len(scene.shown("g")) == 200


def test_an_entry_of_exactly_the_limit_is_kept_and_one_byte_more_is_not() -> None:
    scene = Scene()
    client = scene.client()
    request = large_commit(4000, 258)
    client.send(request._replace(member_id="m" * 300), 9)
    room = ENTRY_BYTES_MAX - len(scene.log.held[0][0])

    exact = client.send(request._replace(member_id="m" * (300 + room)), 9)
    over = client.send(request._replace(member_id="m" * (301 + room)), 9)
    sizes = [len(entry) for entry, _ in scene.log.held]
    scene.log.settle()

    assert sizes[1:] == [ENTRY_BYTES_MAX]
    assert set(client.codes(exact).values()) == {0}
    assert set(client.codes(over).values()) == {Code.UNKNOWN_SERVER_ERROR}


def test_a_full_disk_does_not_fill_the_log() -> None:
    """Clients retry at once, and the log may stand on that very disk."""
    scene = Scene()
    client = scene.client()
    with capture_logs() as lines:
        for offset in range(100):
            client.commit("g", {ORDERS: offset})
            scene.log.refuse()
        scene.clock.advance(60_000)
        client.commit("g", {ORDERS: 100})
        scene.log.refuse()

    assert client.order() == list(range(101))
    assert [line["event"] for line in lines] == ["entries_refused"] * 5 + ["lines_suppressed", "entries_refused"]
    assert lines[5]["suppressed"] == 95
