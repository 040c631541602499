"""Errors: their facts as fields, and words that say what to do."""

import pytest

from offsetd.client import ClientError, Fenced, MembershipLost, PartitionsRefused, RebalanceInProgress, Refused
from offsetd.client.errors import refusal
from offsetd.client.position import TopicPartition
from protocol.errors import Code


def test_a_refusal_says_what_to_do() -> None:
    error = refusal(action="committing offsets", group="billing", code=30)

    assert str(error) == (
        "committing offsets of group 'billing' was refused with 30 GROUP_AUTHORIZATION_FAILED: "
        "allow this user to read the group"
    )


def test_a_topic_of_no_possible_name_is_told_what_names_are_possible() -> None:
    error = refusal(action="committing offsets", group="billing", code=17)

    assert "up to 249 letters" in str(error)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.ILLEGAL_GENERATION, MembershipLost),
        (Code.UNKNOWN_MEMBER_ID, MembershipLost),
        (Code.REBALANCE_IN_PROGRESS, RebalanceInProgress),
        (Code.FENCED_INSTANCE_ID, Fenced),
        (Code.INVALID_GROUP_ID, Refused),
        (999, Refused),
    ],
)
def test_each_code_has_its_place_in_the_tree(code: int, kind: type[Refused]) -> None:
    error = refusal(action="joining", group="billing", code=code)

    assert type(error) is kind
    assert isinstance(error, ClientError)
    assert (error.action, error.group) == ("joining", "billing")


def test_several_refused_partitions_are_counted() -> None:
    refused = {TopicPartition("orders", number): 12 for number in range(3)}
    error = PartitionsRefused(action="committing offsets", group="billing", refused=refused)

    assert "for orders/0 with 12 OFFSET_METADATA_TOO_LARGE" in str(error)
    assert str(error).endswith("(and 2 more partitions: see .refused)")
    assert error.refused == dict.fromkeys(refused, Code.OFFSET_METADATA_TOO_LARGE)
