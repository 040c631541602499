"""Where to go on, and why: every combination of what is stored and what is committed."""

import pytest

from offsetd.client.position import TopicPartition
from offsetd.client.resumption import resume_committed, resume_stored

ORDERS = TopicPartition("orders", 3)


@pytest.mark.parametrize(
    ("stored", "committed", "offset", "words"),
    [
        (None, None, 5, "nothing was stored or committed, so reading begins at 5"),
        (0, None, 0, "reading goes on at 0, which was stored with the output; the broker holds nothing"),
        (None, 0, 0, "reading goes on at 0, which the broker holds; nothing is stored"),
        (7, 7, 7, "reading goes on at 7, which is stored and committed"),
        (
            9,
            7,
            9,
            "reading goes on at 9, which was stored with the output; the broker holds 7 because it is told after",
        ),
        (7, 9, 9, "reading goes on at 9, which the broker holds; 7 is stored with the output. Either somebody moved"),
    ],
)
def test_the_larger_truth_wins_and_says_why(stored: int | None, committed: int | None, offset: int, words: str) -> None:
    found = resume_stored(ORDERS, stored, committed, first_offset=5)

    assert found.offset == offset
    assert found.reason.startswith("orders/3: ")
    assert words in found.reason


def test_records_that_are_passed_over_are_counted_and_the_way_back_is_told() -> None:
    found = resume_stored(ORDERS, 70, 100, first_offset=0)

    assert "30 records are not read here. To read them, commit 70 before the next start" in found.reason


@pytest.mark.parametrize(("committed", "offset", "words"), [(None, 5, "begins at 5"), (0, 0, "goes on at 0")])
def test_what_is_committed_alone_decides_where_nothing_is_stored(
    committed: int | None, offset: int, words: str
) -> None:
    found = resume_committed(ORDERS, committed, first_offset=5)

    assert found.offset == offset
    assert words in found.reason
