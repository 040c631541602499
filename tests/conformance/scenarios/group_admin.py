"""ListGroups, DescribeGroups, DeleteGroups and OffsetDelete: what operators see of groups, and may take away."""

from typing import Final

from protocol.api import DELETE_GROUPS, DESCRIBE_GROUPS, LIST_GROUPS, OFFSET_DELETE
from protocol.describe_groups import DescribeGroupsRequest
from tests.conformance.group_requests import (
    JOIN,
    LEAVE,
    PREPARING,
    SYNC,
    alone,
    answered,
    beat,
    delete,
    delete_offsets,
    describe,
    join,
    leave,
    listing,
    pair,
    subscription,
    sync,
)
from tests.conformance.requests import LOOK, commit, look, row
from tests.conformance.scenario import ORDERS, PAYMENTS, Scenario, Seen, Step


def _offsets(group: str, name: str = "") -> Step:
    rows = [row(0, 1), row(1, 2)]
    return Step(name or f"offsets of {group}", commit(group, (ORDERS, rows), (PAYMENTS, rows)), at=LOOK)


def _list(name: str, *states: str, types: tuple[str, ...] = (), versions: str = "0+") -> Step:
    return Step(name, listing(*states, types=types), versions, unordered=True, own=True)


#: One group in each state, as far as a group stays in it.
_ONE_OF_EACH: Final = (
    _offsets("@simple"),
    Step("stable: joins", join("@stable"), at=JOIN, by="s"),
    Step("stable: part", sync("~s", 1, ("~s", b"x"), group="@stable"), at=SYNC, by="s"),
    Step("completing: joins", join("@completing"), at=JOIN, by="c"),
    Step("completing: part", sync("~c", 1, ("~c", b"x"), group="@completing"), at=SYNC, by="c"),
    Step("completing: joins again", join("@completing", "~c"), at=JOIN, by="c"),
    Step("preparing: joins", join("@preparing"), at=JOIN, by="p"),
    Step("preparing: part", sync("~p", 1, ("~p", b"x"), group="@preparing"), at=SYNC, by="p"),
    Step("preparing: another", join("@preparing"), at=JOIN, by="q", held=True, until=Seen("@preparing", PREPARING, 2)),
    Step("empty: joins", join("@empty"), at=JOIN, by="e"),
    Step("empty: goes", leave(("~e", None), group="@empty"), at=LEAVE, by="e"),
    Step("other: joins", join("@other", kind="connect", protocols=(("eager", b"\0\1"),)), at=JOIN, by="o"),
    Step("other: part", sync("~o", 1, ("~o", b"x"), group="@other"), at=SYNC - 1, by="o"),
)

_LISTS: Final = (
    Scenario(
        "list groups",
        LIST_GROUPS,
        (
            _list("none"),
            *_ONE_OF_EACH,
            _list("all"),
            _list("stable", "Stable", versions="4+"),
            _list("in other letters", "sTABLE", versions="4+"),
            _list("with blanks", " Stable ", versions="4+"),
            _list("two states", "Empty", "PreparingRebalance", versions="4+"),
            _list("each state", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", versions="4+"),
            _list("dead", "Dead", versions="4+"),
            _list("no state", "", versions="4+"),
            _list("an unknown state", "Asleep", versions="4+"),
            _list("an unknown state beside a known one", "Asleep", "Stable", versions="4+"),
            _list("states of other groups", "Assigning", "Reconciling", versions="4+"),
            _list("classic", types=("classic",), versions="5+"),
            _list("classic in other letters", types=("CLASSIC",), versions="5+"),
            _list("consumer", types=("consumer",), versions="5+"),
            _list("share", types=("share",), versions="5+"),
            _list("an unknown type", types=("odd",), versions="5+"),
            _list("an unknown type beside a known one", types=("odd", "classic"), versions="5+"),
            _list("no type", types=("",), versions="5+"),
            _list("state and type", "Stable", types=("classic",), versions="5+"),
            _list("state and another type", "Stable", types=("consumer",), versions="5+"),
        ),
    ),
)

_DESCRIBES: Final = (
    Scenario(
        "describe groups",
        DESCRIBE_GROUPS,
        (
            Step("unknown", describe("@nobody")),
            Step("no group", DescribeGroupsRequest()),
            Step("an empty id", describe("")),
            *_ONE_OF_EACH,
            Step("simple", describe("@simple")),
            Step("stable", describe("@stable")),
            Step("completing", describe("@completing")),
            Step("preparing", describe("@preparing"), unordered=True),
            Step("empty", describe("@empty")),
            Step("other", describe("@other")),
            # Kafka asks each of its slots, and lists them as they answer.
            Step("several", describe("@stable", "@nobody", "@simple", "@stable"), unordered=True),
            Step("operations", describe("@stable", "@nobody", "@empty", operations=True), "3+", unordered=True),
            Step("a long id", describe("n" * 2000)),
        ),
    ),
    Scenario(
        "describe groups: members",
        DESCRIBE_GROUPS,
        (
            *pair(at=5, first="blue", second="green"),
            Step("static", describe("@g"), unordered=True),
            Step("a dynamic one", join("@h"), at=JOIN, by="h", client_id="ä b"),
            Step("its name", describe("@h")),
        ),
    ),
)

_DELETES: Final = (
    Scenario(
        "delete groups",
        DELETE_GROUPS,
        (
            Step("unknown", delete("@nobody")),
            Step("none", delete()),
            Step("an empty id", delete("")),
            *_ONE_OF_EACH,
            Step("stable", delete("@stable")),
            Step("completing", delete("@completing")),
            Step("preparing", delete("@preparing")),
            Step("other", delete("@other")),
            Step("several", delete("@simple", "@stable", "@nobody", "@empty", "@simple"), unordered=True),
            Step("again", delete("@simple", "@empty"), unordered=True),
            Step("what is left", describe("@simple", "@empty", "@stable"), at=5, unordered=True),
            look("@simple"),
            Step("members are still there", beat("~s", 1, group="@stable"), at=4, by="s"),
            Step("stable: goes", leave(("~s", None), group="@stable"), at=LEAVE, by="s"),
            Step("stable no more", delete("@stable")),
            Step("joined anew", join("@stable"), at=JOIN, by="s"),
            _offsets("@simple", "offsets anew"),
            look("@simple", "what is kept anew"),
            _offsets("", "offsets of the empty id"),
            Step("the empty id", delete("")),
        ),
    ),
)


def _subscribed(name: str, metadata: bytes, group: str) -> tuple[Step, ...]:
    """Which topics a member's metadata protects."""
    client = group[1:]
    return (
        Step(f"{name}: offsets", commit(group, (ORDERS, [row(0, 1)]), (PAYMENTS, [row(0, 1)])), at=LOOK),
        Step(f"{name}: joins", join(group, protocols=(("range", metadata),)), at=JOIN, by=client),
        Step(f"{name}: part", sync(f"~{client}", 1, (f"~{client}", b"x"), group=group), at=SYNC, by=client),
        Step(name, delete_offsets(group, (ORDERS, [0]), (PAYMENTS, [0, 1]))),
    )


_OFFSET_DELETES: Final = (
    Scenario(
        "delete offsets",
        OFFSET_DELETE,
        (
            Step("no group", delete_offsets("", (ORDERS, [0]))),
            Step("an unknown group", delete_offsets("@nobody", (ORDERS, [0]))),
            Step("an unknown group, an unknown topic", delete_offsets("@nobody", ("@nowhere", [0]))),
            Step("an unknown group, no topics", delete_offsets("@nobody")),
            _offsets("@g"),
            Step("no topics", delete_offsets("@g")),
            Step("a topic without partitions", delete_offsets("@g", (ORDERS, []))),
            Step("unknown topic", delete_offsets("@g", ("@nowhere", [0]))),
            Step("unknown partition", delete_offsets("@g", (ORDERS, [4, -1, 99]))),
            Step("known and unknown", delete_offsets("@g", ("@nowhere", [0]), (ORDERS, [0, 9]), (PAYMENTS, [3]))),
            look("@g"),
            Step("again", delete_offsets("@g", (ORDERS, [0]))),
            Step("twice in one", delete_offsets("@g", (PAYMENTS, [0, 0]), (PAYMENTS, [0]))),
            Step("the rest", delete_offsets("@g", (ORDERS, [1]), (PAYMENTS, [1]))),
            look("@g", "what is kept of nothing"),
            Step("the group without offsets", describe("@g"), at=5),
            Step("from nothing", delete_offsets("@g", (ORDERS, [1]))),
        ),
        strict=True,
    ),
    Scenario(
        "delete offsets: of members",
        OFFSET_DELETE,
        (
            *alone("a"),
            Step(
                "a commits",
                commit("@g", (ORDERS, [row(0, 1)]), (PAYMENTS, [row(0, 1)]), generation=1, member="~a"),
                at=LOOK,
            ),
            Step("stable", delete_offsets("@g", (ORDERS, [0, 1]), (PAYMENTS, [0, 1]))),
            look("@g", "what a keeps"),
            Step(
                "b comes",
                join(protocols=(("range", subscription(PAYMENTS)),)),
                at=JOIN,
                by="b",
                held=True,
                until=Seen("@g", PREPARING, 2),
            ),
            Step("preparing", delete_offsets("@g", (ORDERS, [0]), (PAYMENTS, [0]))),
            Step("a joins again", join(member="~a"), at=JOIN, by="a", unordered=True),
            answered("b"),
            Step("completing", delete_offsets("@g", (ORDERS, [0]), (PAYMENTS, [0]))),
            Step("both go", leave(("~a", None), ("~b", None)), at=LEAVE),
            Step("empty", delete_offsets("@g", (ORDERS, [0]), (PAYMENTS, [0]))),
            Step("another kind comes", join("@k", kind="connect", protocols=(("eager", b""),)), at=JOIN, by="k"),
            Step("another kind", delete_offsets("@k", (ORDERS, [0]))),
            Step("another kind, an unknown topic", delete_offsets("@k", ("@nowhere", [0]))),
            Step("another kind goes", leave(("~k", None), group="@k"), at=LEAVE, by="k"),
            Step("another kind, empty", delete_offsets("@k", (ORDERS, [0]))),
        ),
        strict=True,
    ),
    Scenario(
        "delete offsets: by what members say",
        OFFSET_DELETE,
        (
            *_subscribed("one topic", subscription(ORDERS), "@one"),
            *_subscribed("both topics", subscription(ORDERS, PAYMENTS), "@both"),
            *_subscribed("no topic", subscription(), "@none"),
            *_subscribed("version 0", subscription(ORDERS, version=0), "@zero"),
            *_subscribed("a version nobody knows", subscription(ORDERS, version=99), "@later"),
            *_subscribed("a version below 0", subscription(ORDERS, version=-1), "@below"),
            *_subscribed("nothing", b"", "@nothing"),
            *_subscribed("a version alone", b"\0\1", "@version"),
            *_subscribed("without user data", subscription(ORDERS)[:-4], "@short"),
            *_subscribed("with more behind it", subscription(ORDERS) + b"more", "@long"),
            *_subscribed("user data below null", subscription(ORDERS)[:-4] + b"\xff\xff\xff\xfe", "@null"),
            *_subscribed("bad letters", b"\0\1\0\0\0\1\0\2\xff\xfe\xff\xff\xff\xff", "@letters"),
        ),
        strict=True,
    ),
)

SCENARIOS: Final = (*_LISTS, *_DESCRIBES, *_DELETES, *_OFFSET_DELETES)
