"""Topics are names: which are known, with how many partitions, by which ids."""

from struct import pack

import pytest

from offsetd.coordinator.latest import LISTED_PARTITIONS_MAX
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic, Topics, is_legal
from offsetd.record import Reason, TopicOffsets, Who, decode_entries, encode_group_tombstone
from offsetd.table import SlotTable, TopicIndex, apply, apply_commit

WHO = Who("", "", "")


def commit(table: SlotTable, group: str, topic: str, *partitions: int, offset: int = 1) -> None:
    count = len(partitions)
    row = TopicOffsets(topic, pack(f">{count}i", *partitions), pack(f">{count}q", *[offset] * count))
    apply_commit(table, group, 1 << 41, WHO, (row,))


def drop(table: SlotTable, group: str) -> None:
    apply(table, decode_entries(b"\x91" + encode_group_tombstone(0, group, 1 << 41, WHO, Reason.DELETED))[0])


def made(
    known: dict[str, KnownTopic] | None = None, *, asked_max: int = 3, partitions: int = 1, cluster_id: str = "c"
) -> tuple[Topics, SlotTable]:
    table = SlotTable(0, TopicIndex())
    limits = Limits(topics_asked_max=asked_max, topic_partitions=partitions)
    return Topics(cluster_id=cluster_id, index=table.index, limits=limits, known=known or {}), table


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("orders", True),
        ("a.b_c-D9", True),
        ("...", True),
        ("n" * 249, True),
        ("n" * 250, False),
        ("", False),
        (".", False),
        ("..", False),
        ("a b", False),
        ("a/b", False),
        ("\u00e4", False),
        ("a\n", False),
        ("a\0", False),
    ],
)
def test_names_are_legal_where_kafkas_are(name: str, legal: bool) -> None:
    assert is_legal(name) is legal


def test_a_topic_is_known_by_settings_by_a_commit_or_by_being_asked_for() -> None:
    topics, table = made({"stated": KnownTopic(1)})
    commit(table, "g", "committed", 0)
    topics.ask("asked")

    assert topics.names() == ["asked", "committed", "stated"]
    assert len(topics) == 3
    assert [topics.exists(name) for name in ("stated", "committed", "asked", "nowhere")] == [True, True, True, False]


def test_a_topic_goes_with_its_last_group_unless_it_is_known_otherwise() -> None:
    topics, table = made({"stated": KnownTopic(1)})
    topics.ask("asked")
    for name in ("stated", "asked", "committed"):
        commit(table, "g", name, 0)
        commit(table, "h", name, 0)
    drop(table, "g")
    before = topics.names()

    drop(table, "h")

    assert before == ["asked", "committed", "stated"]
    assert topics.names() == ["asked", "stated"]


def test_topics_that_were_asked_for_are_bounded_and_the_oldest_goes_first() -> None:
    topics, table = made(asked_max=2)
    commit(table, "g", "committed", 0)

    asked = [topics.ask(name) for name in ("a", "committed", "b", "a", "c")]

    assert asked == [True] * 5
    assert topics.names() == ["b", "c", "committed"]


def test_a_bound_of_none_remembers_nothing() -> None:
    topics, table = made(asked_max=0)
    commit(table, "g", "committed", 0)

    assert (topics.ask("a"), topics.ask("committed")) == (False, True)
    assert topics.names() == ["committed"]


def test_partitions_are_those_stated_or_more_as_commits_name_more() -> None:
    topics, table = made({"stated": KnownTopic(4)}, partitions=2)
    topics.ask("asked")
    first = [topics.partitions(name) for name in ("stated", "asked")]
    commit(table, "g", "asked", 0)
    commit(table, "g", "stated", 1)
    second = [topics.partitions(name) for name in ("stated", "asked")]
    commit(table, "h", "asked", 7, 5)
    commit(table, "h", "stated", 9)

    assert (first, second) == ([4, 2], [4, 2])
    assert [topics.partitions(name) for name in ("stated", "asked")] == [10, 8]
    assert [topics.has("asked", number) for number in (-1, 0, 7, 8)] == [False, True, True, False]
    assert not topics.has("nowhere", 0)


def test_an_absurd_partition_makes_no_absurd_list() -> None:
    topics, table = made()
    commit(table, "g", "orders", (1 << 31) - 1)

    assert topics.partitions("orders") == LISTED_PARTITIONS_MAX
    assert not topics.has("orders", LISTED_PARTITIONS_MAX)


def test_partitions_that_only_a_deleted_group_had_named_are_gone() -> None:
    topics, table = made()
    commit(table, "g", "orders", 0)
    commit(table, "mistaken", "orders", 9000)
    before = topics.partitions("orders")
    drop(table, "mistaken")

    assert (before, topics.partitions("orders")) == (9001, 1)


def test_ids_survive_a_restart_and_differ_between_names_and_clusters() -> None:
    ids = [made()[0].topic_id("orders"), made()[0].topic_id("orders")]
    others = [made()[0].topic_id("payments"), made(cluster_id="d")[0].topic_id("orders")]

    assert ids[0] == ids[1]
    assert len({ids[0], *others}) == 3
    assert len(ids[0]) == 16
    # Version 8 and the variant of RFC 9562, so that nobody takes it for an id with a meaning of its own.
    assert (ids[0][6] >> 4, ids[0][8] >> 6) == (8, 2)


def test_an_id_is_known_while_its_topic_is() -> None:
    topics, table = made({"stated": KnownTopic(1)}, asked_max=1)
    unknown = topics.name_of(topics.topic_id("orders"))
    commit(table, "g", "orders", 0)
    known = topics.name_of(topics.topic_id("orders"))
    drop(table, "g")
    gone = topics.name_of(topics.topic_id("orders"))
    topics.ask("orders")

    assert (unknown, known, gone) == (None, "orders", None)
    assert topics.name_of(topics.topic_id("orders")) == "orders"
    assert topics.name_of(topics.topic_id("stated")) == "stated"
    assert topics.name_of(bytes(16)) is None


def test_unknown_ids_do_not_make_us_count_all_topics_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    topics, table = made()
    commit(table, "g", "orders", 0)
    counted: list[int] = []
    names = topics.names

    def spy() -> list[str]:
        counted.append(1)
        return names()

    monkeypatch.setattr(topics, "names", spy)
    for number in range(100):
        topics.name_of(number.to_bytes(16, "big"))
    quiet = len(counted)
    commit(table, "g", "new", 0)

    assert quiet == 1
    assert topics.name_of(topics.topic_id("new")) == "new"


@pytest.mark.parametrize(
    ("stated", "ends"), [((), [7, 0, 0]), ((5,), [7, 5, 5]), ((9, 1), [9, 1, 0]), ((1, 2, 3), [7, 2, 3])]
)
def test_an_end_is_the_highest_commit_or_what_is_stated_if_that_is_higher(
    stated: tuple[int, ...], ends: list[int]
) -> None:
    topics, table = made({"orders": KnownTopic(3, stated)})
    commit(table, "g", "orders", 0, offset=7)
    commit(table, "h", "orders", 0, offset=6)

    assert [topics.latest("orders", number) for number in range(3)] == ends


def test_changes_move_when_a_topic_comes_goes_or_grows_and_at_no_other_time() -> None:
    topics, table = made()
    seen = [topics.changes]

    def step() -> bool:
        seen.append(topics.changes)
        return seen[-1] != seen[-2]

    commit(table, "g", "orders", 0)
    moves = [step()]
    commit(table, "g", "orders", 0, offset=2)
    commit(table, "h", "orders", 0)
    topics.partitions("orders")
    moves.append(step())
    commit(table, "h", "orders", 3)
    moves.append(step())
    topics.ask("asked")
    moves.append(step())
    topics.ask("asked")
    moves.append(step())
    drop(table, "h")
    moves.append(step())

    assert moves == [True, False, True, True, False, True]
