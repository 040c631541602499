"""OffsetFetch: by name, all at once, many groups, and what was never committed."""

from typing import Final

from protocol.api import OFFSET_FETCH
from protocol.offset_fetch import OffsetFetchRequest
from tests.conformance.requests import commit, fetch, fetch_all, fetch_many, row
from tests.conformance.scenario import ORDERS, PAYMENTS, Scenario, Step


def _scenario(name: str, *steps: Step, versions: str = "0+") -> Scenario:
    return Scenario(f"fetch offsets: {name}", OFFSET_FETCH, steps, versions)


def _kept(group: str) -> Step:
    rows = [row(0, 1, epoch=3, metadata="a"), row(1, 2), row(2, 0, metadata="ä😀")]
    return Step(f"prepared {group}", commit(group, (ORDERS, rows), (PAYMENTS, [row(3, 9, epoch=0)])), at=9)


SCENARIOS: Final = (
    _scenario(
        "by name",
        _kept("@g"),
        Step("one", fetch("@g", (ORDERS, [0]))),
        Step("several", fetch("@g", (PAYMENTS, [3]), (ORDERS, [2, 0, 1]))),
        Step("never committed", fetch("@g", (ORDERS, [3]), (PAYMENTS, [0]))),
        Step("no such partition", fetch("@g", (ORDERS, [4, 99, -1, 2**31 - 1, -(2**31)]))),
        Step("no such topic", fetch("@g", ("@nowhere", [0, 1]), (ORDERS, [0]))),
        Step("illegal names", fetch("@g", ("a b", [0]), ("", [0]), ("..", [0]))),
        Step("topic without partitions", fetch("@g", (ORDERS, []), (PAYMENTS, [3]))),
        Step("no topics", fetch("@g")),
    ),
    _scenario(
        "duplicates",
        _kept("@g"),
        Step("partition twice", fetch("@g", (ORDERS, [0, 0, 1, 0]))),
        Step("topic twice", fetch("@g", (ORDERS, [0]), (PAYMENTS, [3]), (ORDERS, [0, 1]))),
        Step("unknown twice", fetch("@g", ("@nowhere", [5, 5]))),
    ),
    _scenario(
        "unknown groups",
        Step("by name", fetch("@nobody", (ORDERS, [0, 1]), ("@nowhere", [0]))),
        Step("all", fetch_all("@nobody"), "2+"),
        Step("no topics", fetch("@nobody")),
        Step("topic without partitions", fetch("@nobody", (ORDERS, []))),
        Step("a long id", fetch("n" * 2000, (ORDERS, [0]))),
        Step("of letters of all kinds", fetch("@ä群😀\0", (ORDERS, [0]))),
    ),
    _scenario(
        "all topics",
        _kept("@g"),
        Step("all", fetch_all("@g"), unordered=True),
        Step("all, stable", fetch_all("@g", stable=True), "7+", unordered=True),
        versions="2+",
    ),
    _scenario(
        "stable",
        _kept("@g"),
        Step("by name", fetch("@g", (ORDERS, [0, 3]), stable=True)),
        Step("unknown group", fetch("@nobody", (ORDERS, [0]), stable=True)),
        versions="7+",
    ),
    _scenario(
        "many groups",
        _kept("@g"),
        _kept("@h"),
        Step("none", OffsetFetchRequest(groups=())),
        Step("two by name", fetch_many(("@h", [(ORDERS, [0])]), ("@g", [(PAYMENTS, [3, 0])]))),
        Step(
            "mixed",
            fetch_many(("@g", None), ("@nobody", None), ("@h", []), ("@nobody", [(ORDERS, [1])])),
            unordered=True,
        ),
        Step("the same group twice", fetch_many(("@g", [(ORDERS, [0])]), ("@g", [(ORDERS, [1])]))),
        Step("the same group twice, once all", fetch_many(("@g", [(PAYMENTS, [3])]), ("@g", [(PAYMENTS, [3])]))),
        Step("with the empty id", fetch_many(("@g", [(ORDERS, [0])]), ("@", None))),
        versions="8+",
    ),
    _scenario(
        "members",
        _kept("@g"),
        Step("member and epoch on a simple group", fetch("@g", (ORDERS, [0]), member="m", epoch=5)),
        Step("member and epoch on an unknown group", fetch("@nobody", (ORDERS, [0]), member="m", epoch=5)),
        Step("member without epoch", fetch("@g", (ORDERS, [0]), member="m")),
        Step("epoch without member", fetch("@g", (ORDERS, [0]), epoch=0)),
        Step("empty member", fetch("@g", (ORDERS, [0]), member="", epoch=-2)),
        versions="9+",
    ),
)
