"""The comparer can fail: it sees every difference that is planted, and rows of the table that are no longer true."""

from typing import Any, Final

import pytest

from protocol.describe_cluster import DescribeClusterResponse
from protocol.errors import Code
from protocol.find_coordinator import FindCoordinatorResponse
from protocol.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.list_groups import ListGroupsResponse, ListGroupsResponseGroup
from protocol.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from protocol.offset_commit import OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic
from tests.conformance.comparison import ABSENT, ANY, Difference, Facts, Purpose, differing, judge, plain
from tests.conformance.dialogue import Notes
from tests.conformance.line import CLOSED
from tests.conformance.member_ids import MemberIds

KAFKA: Final = Facts(9092, "cluster-of-kafka", {"orders": b"k" * 16})
OURS: Final = Facts(19092, "cluster-of-ours", {"orders": b"o" * 16})
STEP: Final = ("commit", "plain", 3)
FIRST: Final = "00000000-0000-4000-8000-000000000001"
SECOND: Final = "00000000-0000-4000-8000-000000000002"


def reply(*codes: int, topic: str = "orders") -> OffsetCommitResponse:
    rows = tuple(
        OffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in enumerate(codes)
    )
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name=topic, partitions=rows),))


def metadata(facts: Facts, *topics: str, leader: int = 1) -> MetadataResponse:
    partition = MetadataResponsePartition(leader_id=leader, replica_nodes=(1,), isr_nodes=(1,))
    return MetadataResponse(
        brokers=(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=facts.port),),
        cluster_id=facts.cluster_id,
        topics=tuple(
            MetadataResponseTopic(name=name, topic_id=facts.topic_ids.get(name, bytes(16)), partitions=(partition,))
            for name in topics
        ),
    )


def compared(kafka: Any, ours: Any, **how: Any) -> dict[str, tuple[object, object]]:
    found = differing(plain(kafka, KAFKA, **how), plain(ours, OURS, **how))
    return {path: (left, right) for path, left, right in found}


def test_equal_answers_have_no_differences() -> None:
    assert compared(reply(0, 3), reply(0, 3)) == {}


def test_one_code_that_differs_is_found_by_its_path() -> None:
    assert compared(reply(0, 3, 0), reply(0, 3, 12)) == {"topics[0].partitions[2].error_code": (0, 12)}


def test_a_missing_row_is_found_and_the_others_are_still_compared() -> None:
    assert compared(reply(0, 3), reply(12)) == {
        "topics[0].partitions.#": (2, 1),
        "topics[0].partitions[0].error_code": (0, 12),
    }


@pytest.mark.parametrize(("kafka", "ours"), [(None, ""), (None, []), (0, False), ("", []), (-1, 0)])
def test_values_that_look_alike_differ(kafka: object, ours: object) -> None:
    assert list(differing({"field": kafka}, {"field": ours})) == [("field", kafka, ours)]


def test_what_is_a_peers_own_by_nature_is_not_compared() -> None:
    assert compared(metadata(KAFKA, "orders"), metadata(OURS, "orders")) == {}


def test_a_port_or_id_that_is_not_the_peers_own_is_compared() -> None:
    nowhere = Facts(-1, "", {})

    assert compared(metadata(KAFKA, "orders"), metadata(nowhere, "orders")) == {
        "brokers[0].port": ("<port>", -1),
        "cluster_id": ("<cluster id>", ""),
        "topics[0].topic_id": ("<id of orders>", bytes(16)),
    }


@pytest.mark.parametrize(("kafka", "ours", "differ"), [("x", "y", 0), ("x", "", 1), ("NONE", "y", 1), (None, "", 1)])
def test_words_for_people_count_as_words_or_none(kafka: str | None, ours: str | None, differ: int) -> None:
    left = DescribeClusterResponse(error_message=kafka)
    right = DescribeClusterResponse(error_message=ours)

    assert len(compared(left, right)) == differ


def test_order_is_compared_unless_a_step_says_otherwise() -> None:
    left, right = metadata(KAFKA, "a", "b"), metadata(OURS, "b", "a")

    assert compared(left, right) == {"topics[0].name": ("a", "b"), "topics[1].name": ("b", "a")}
    assert compared(left, right, unordered=True) == {}


def test_without_order_a_missing_element_shifts_no_other() -> None:
    found = compared(metadata(KAFKA, "a", "b", "c"), metadata(OURS, "c", "b", leader=2), unordered=True)

    assert set(found) == {"topics[a]", "topics[b].partitions[0].leader_id", "topics[c].partitions[0].leader_id"}
    assert found["topics[a]"][1] is ABSENT


def test_without_order_an_element_that_comes_twice_is_not_lost() -> None:
    left, right = metadata(KAFKA, "a", "b", "a"), metadata(OURS, "a", "b")

    assert compared(left, right, unordered=True) != {}


def test_a_narrowed_answer_still_shows_what_it_is_narrowed_to() -> None:
    left, right = metadata(KAFKA, "a", "other", "b"), metadata(OURS, "b", "another")

    assert set(compared(left, right, unordered=True, only=("a", "b"))) == {"topics[a]"}


def test_of_a_list_of_groups_only_those_of_the_run_are_compared() -> None:
    left = ListGroupsResponse(groups=tuple(ListGroupsResponseGroup(group_id=name) for name in ("run.a", "x", "run.b")))
    right = ListGroupsResponse(groups=tuple(ListGroupsResponseGroup(group_id=name) for name in ("run.b", "y")))

    assert set(compared(left, right, unordered=True, own="run.")) == {"groups[run.a]"}


def joined(member_id: str, *others: str) -> JoinGroupResponse:
    members = tuple(JoinGroupResponseMember(member_id=name, metadata=b"") for name in (member_id, *others))
    return JoinGroupResponse(member_id=member_id, leader=member_id, members=members)


def test_ids_of_members_are_compared_by_whose_they_are_and_how_they_are_made_up() -> None:
    left, right = MemberIds(), MemberIds()
    left.learn("a", f"raw-{FIRST}")
    right.learn("a", f"raw-{SECOND}")
    shown = plain(joined(f"raw-{FIRST}"), KAFKA, shown=left.shown)

    assert shown == plain(joined(f"raw-{SECOND}"), OURS, shown=right.shown)
    assert shown != plain(joined(f"raw-{FIRST}"), OURS, shown=right.shown)
    assert shown != plain(joined(f"other-{SECOND}"), OURS, shown=right.shown)


def test_ids_that_nobody_has_heard_of_are_compared_without_their_random_part() -> None:
    ids = MemberIds()
    left = plain(joined(f"raw-{FIRST}", f"raw-{SECOND}"), KAFKA, unordered=True, shown=ids.shown)
    right = plain(joined(f"raw-{SECOND}", f"raw-{FIRST}"), OURS, unordered=True, shown=ids.shown)

    assert left == right
    assert left != plain(joined(f"raw-{SECOND}"), OURS, unordered=True, shown=ids.shown)


def test_a_client_that_came_back_has_several_ids() -> None:
    ids = MemberIds()
    ids.learn("a", f"blue-{FIRST}")
    ids.learn("a", f"blue-{SECOND}")
    ids.learn("a", f"blue-{SECOND}")

    assert (ids.word("a"), ids.word("a:0")) == (f"blue-{SECOND}", f"blue-{FIRST}")
    assert ids.shown(f"blue-{SECOND}") == "<a:1 blue-UUID>"


def difference(field: str = "error_code", kafka: object = 0, ours: object = 15, version: int = 3) -> Difference:
    return Difference("commit", "plain", version, field, kafka, ours)


def row(field: str = "error_code", kafka: object = 0, ours: object = 15, versions: str = "0+") -> Purpose:
    return Purpose("commit", "plain", field, kafka, ours, "a matter", versions)


def test_a_difference_that_is_not_in_the_table_is_unexplained() -> None:
    verdict = judge([STEP], [difference()], [])

    assert verdict.unexplained == (difference(),)
    assert "commit / plain / v3: error_code: Kafka 0, offsetd 15" in str(verdict)


def test_a_difference_that_is_in_the_table_is_explained() -> None:
    verdict = judge([STEP], [difference()], [row(ours=Code.COORDINATOR_NOT_AVAILABLE)])

    assert (verdict.unexplained, verdict.explained, verdict.outdated) == ((), 1, ())
    assert str(verdict) == ""


@pytest.mark.parametrize(
    "other", [row(kafka=3), row(ours=14), row(field="node_id"), row(versions="4+"), row(field="error_cod")]
)
def test_a_row_explains_only_what_it_says(other: Purpose) -> None:
    assert judge([STEP], [difference()], [other]).unexplained == (difference(),)


def test_a_row_may_leave_a_value_open_and_name_many_fields() -> None:
    differences = [difference(field=f"topics[{index}].topic_id", kafka=bytes([index]) * 16) for index in range(3)]

    verdict = judge([STEP], differences, [row(field="topics[*].topic_id", kafka=ANY)])

    assert (verdict.unexplained, verdict.explained, verdict.outdated) == ((), 3, ())


def test_a_row_that_no_longer_differs_is_outdated() -> None:
    verdict = judge([STEP], [], [row()])

    assert verdict.outdated == ((row(), "plain", 3),)
    assert "no longer so" in str(verdict)


def test_a_row_that_no_longer_differs_in_one_version_is_outdated_there() -> None:
    steps = [("commit", "plain", version) for version in (2, 3, 4)]

    verdict = judge(steps, [difference(version=2), difference(version=4)], [row()])

    assert verdict.outdated == ((row(), "plain", 3),)


def test_a_row_says_nothing_about_versions_and_steps_that_it_does_not_name() -> None:
    steps = [("commit", "plain", 2), ("commit", "other", 3), ("fetch", "plain", 3), STEP]

    assert judge(steps, [difference()], [row(versions="3+")]).outdated == ()


def test_an_answer_beside_a_closed_connection_is_one_difference() -> None:
    notes = Notes()
    answer = {"connection": "open", **plain(FindCoordinatorResponse(error_code=15), KAFKA)}

    notes.compare("commit", "plain", 3, answer, CLOSED)

    assert notes.differences == [difference("connection", "open", "closed")]
    assert notes.compared == [STEP]
