"""OffsetCommit: what is accepted, what is refused and with which code, and what is kept afterwards."""

from typing import Final

from protocol.api import OFFSET_COMMIT
from tests.conformance.requests import commit, fetch, look, row
from tests.conformance.scenario import GROWN, ORDERS, PAYMENTS, Scenario, Step

LIMIT: Final = 4096
LARGEST: Final = 2**63 - 1
SMALLEST: Final = -(2**63)


def _scenario(name: str, *steps: Step, versions: str = "0+", strict: bool = False) -> Scenario:
    return Scenario(f"commit: {name}", OFFSET_COMMIT, steps, versions, strict)


SCENARIOS: Final = (
    _scenario(
        "plain",
        Step("first", commit("@g", (ORDERS, [row(0, 5, metadata="note")]))),
        look("@g", "kept after the first"),
        Step("forward", commit("@g", (ORDERS, [row(0, 7)]))),
        Step("backward", commit("@g", (ORDERS, [row(0, 3, metadata="back")]))),
        Step("again the same", commit("@g", (ORDERS, [row(0, 3, metadata="back")]))),
        look("@g", "kept in the end"),
    ),
    _scenario(
        "several topics and partitions",
        Step(
            "two topics",
            commit("@g", (ORDERS, [row(3, 30), row(0, 0), row(1, 10)]), (PAYMENTS, [row(2, 20), row(1, 11)])),
        ),
        Step("topic named twice", commit("@g", (ORDERS, [row(0, 1)]), (PAYMENTS, [row(0, 2)]), (ORDERS, [row(2, 3)]))),
        look("@g"),
    ),
    _scenario(
        "duplicates",
        Step("partition twice", commit("@g", (ORDERS, [row(0, 1, metadata="a"), row(0, 2, metadata="b")]))),
        look("@g", "the last wins"),
        Step("three times, backward", commit("@g", (ORDERS, [row(1, 9), row(1, 8), row(1, 7), row(0, 5)]))),
        Step("twice by topic", commit("@g", (ORDERS, [row(2, 1)]), (ORDERS, [row(2, 4)]))),
        Step("one of two refused", commit("@g", (ORDERS, [row(3, 1), row(3, 2, metadata="x" * (LIMIT + 1))]))),
        look("@g"),
    ),
    _scenario(
        "metadata",
        Step("null", commit("@g", (ORDERS, [row(0, 1, metadata=None)]))),
        Step("at the limit", commit("@g", (ORDERS, [row(1, 1, metadata="x" * LIMIT)]))),
        Step("beyond the limit", commit("@g", (ORDERS, [row(2, 1, metadata="x" * (LIMIT + 1))]))),
        Step("a few beyond", commit("@g", (ORDERS, [row(2, 1), row(3, 2, metadata="x" * 5000), row(0, 3)]))),
        look("@g"),
        Step("two-byte letters at the limit", commit("@g", (PAYMENTS, [row(0, 1, metadata="ä" * LIMIT)]))),
        Step("two-byte letters beyond", commit("@g", (PAYMENTS, [row(0, 2, metadata="ä" * (LIMIT + 1))]))),
        Step("letters of two units at the limit", commit("@g", (PAYMENTS, [row(1, 1, metadata="😀" * (LIMIT // 2))]))),
        Step("letters of two units beyond", commit("@g", (PAYMENTS, [row(1, 2, metadata="😀" * (LIMIT // 2) + "x")]))),
        Step("zero bytes", commit("@g", (PAYMENTS, [row(2, 1, metadata="x\0")]))),
        look("@g", "what is kept of letters"),
    ),
    _scenario(
        "all refused leaves no group",
        Step("too long", commit("@g", (ORDERS, [row(0, 1, metadata="x" * (LIMIT + 1))]))),
        Step("with a generation", commit("@g", (ORDERS, [row(0, 1)]), generation=0)),
        look("@g"),
    ),
    _scenario(
        "offsets out of the ordinary",
        Step("-1", commit("@g", (ORDERS, [row(0, -1)]))),
        Step("-2", commit("@g", (ORDERS, [row(1, -2)]))),
        Step("largest", commit("@g", (ORDERS, [row(2, LARGEST)]))),
        Step("smallest", commit("@g", (ORDERS, [row(3, SMALLEST)]))),
        look("@g"),
        Step("by name", fetch("@g", (ORDERS, [0, 1, 2, 3])), at=9),
    ),
    _scenario(
        "leader epochs",
        Step("0", commit("@g", (ORDERS, [row(0, 1, epoch=0)]))),
        Step("7", commit("@g", (ORDERS, [row(1, 1, epoch=7)]))),
        Step("-2", commit("@g", (ORDERS, [row(2, 1, epoch=-2)]))),
        Step("largest", commit("@g", (ORDERS, [row(3, 1, epoch=2**31 - 1)]))),
        look("@g"),
        Step("taken away", commit("@g", (ORDERS, [row(1, 1)]))),
        look("@g", "what is kept then"),
    ),
    _scenario(
        "retention",
        Step("an hour", commit("@g", (ORDERS, [row(0, 1)]), retention_ms=3_600_000)),
        Step("nothing", commit("@g", (ORDERS, [row(1, 1)]), retention_ms=0)),
        Step("negative", commit("@g", (ORDERS, [row(2, 1)]), retention_ms=-2)),
        Step("for ever", commit("@g", (ORDERS, [row(3, 1)]), retention_ms=LARGEST)),
        look("@g"),
        versions="2-4",
    ),
    _scenario(
        "nothing to commit",
        Step("no topics", commit("@g")),
        Step("no partitions", commit("@g", (ORDERS, []))),
        Step("one topic of two without partitions", commit("@h", (ORDERS, []), (PAYMENTS, [row(0, 1)]))),
        Step("no topics, with a generation", commit("@g", generation=5)),
        look("@g"),
        look("@h", "what is kept of the other"),
    ),
    _scenario(
        "generations",
        Step("0 on an unknown group", commit("@g", (ORDERS, [row(0, 1)]), generation=0)),
        Step("5 on an unknown group", commit("@g", (ORDERS, [row(0, 1)]), generation=5, member="m")),
        look("@g", "nothing is kept"),
        Step("simple", commit("@g", (ORDERS, [row(0, 1)]))),
        Step("0 on a simple group", commit("@g", (ORDERS, [row(0, 2)]), generation=0)),
        Step("5 on a simple group", commit("@g", (ORDERS, [row(0, 3)]), generation=5, member="m")),
        Step("5 without a member", commit("@g", (ORDERS, [row(0, 3)]), generation=5)),
        Step("-2", commit("@g", (ORDERS, [row(1, 4)]), generation=-2)),
        look("@g"),
    ),
    _scenario(
        "members of no group",
        Step("member id on an unknown group", commit("@g", (ORDERS, [row(0, 1)]), member="m-1")),
        Step("member id on a simple group", commit("@g", (ORDERS, [row(0, 2)]), member="m-2")),
        Step("instance id on an unknown group", commit("@h", (ORDERS, [row(0, 3)]), instance="i"), "7+"),
        Step("instance id on a simple group", commit("@h", (ORDERS, [row(0, 4)]), instance="i"), "7+"),
        Step("instance and member", commit("@h", (ORDERS, [row(1, 5)]), instance="j", member="m"), "7+"),
        Step("empty instance id", commit("@h", (ORDERS, [row(2, 6)]), instance=""), "7+"),
        Step("instance and generation", commit("@h", (ORDERS, [row(3, 7)]), instance="i", generation=1), "7+"),
        look("@g"),
        look("@h", "what is kept of the other"),
    ),
    _scenario(
        "group ids",
        Step("empty", commit("", (ORDERS, [row(0, 1)]))),
        Step("fetched by the empty id", fetch("", (ORDERS, [0])), at=9),
        Step("blank", commit(" ", (ORDERS, [row(0, 2)]))),
        Step("letters of all kinds", commit("@ä群😀/\0 .", (ORDERS, [row(0, 3)]))),
        look("@ä群😀/\0 .", "fetched by letters of all kinds"),
        Step("1000 bytes", commit("g" * 1000, (ORDERS, [row(0, 4)]))),
        Step("1025 bytes", commit("g" * 1025, (ORDERS, [row(0, 5)]))),
    ),
    _scenario(
        "unknown topics",
        Step("unknown topic", commit("@g", ("@nowhere", [row(0, 1), row(1, 2)]))),
        Step("unknown partition", commit("@g", (GROWN, [row(4, 1), row(9, 2)]))),
        Step(
            "beside known ones",
            commit("@g", (GROWN, [row(9, 1)]), (ORDERS, [row(0, 1)]), ("@nowhere", [row(0, 2)])),
            unordered=True,
        ),
        Step("negative partition", commit("@g", (ORDERS, [row(-1, 1)]))),
        Step("illegal name", commit("@g", ("a b", [row(0, 1)]))),
        Step("empty name", commit("@g", ("", [row(0, 1)]))),
        Step("with a generation", commit("@h", ("@nowhere", [row(0, 1)]), generation=3)),
    ),
    _scenario(
        "unknown topics, strictly",
        Step("unknown topic", commit("@g", ("@nowhere", [row(0, 1), row(1, 2)]))),
        look("@g", "nothing is kept"),
        Step("unknown partition", commit("@g", (ORDERS, [row(4, 1), row(100, 2)]))),
        Step("negative partition", commit("@g", (ORDERS, [row(-1, 1), row(-(2**31), 1)]))),
        Step("illegal name", commit("@g", ("a b", [row(0, 1)]))),
        Step("empty name", commit("@g", ("", [row(0, 1)]))),
        Step("with a generation", commit("@h", ("@nowhere", [row(0, 1)]), generation=3)),
        Step(
            "refused ones come first",
            commit(
                "@g",
                (ORDERS, [row(0, 1), row(9, 1), row(1, 1)]),
                ("@nowhere", [row(0, 2)]),
                (PAYMENTS, [row(2, 5), row(3, 6, metadata="x" * (LIMIT + 1)), row(-1, 7)]),
                ("@neither", [row(0, 2)]),
            ),
        ),
        Step("all with a generation", commit("@h", (ORDERS, [row(9, 1), row(0, 1)]), generation=3)),
        look("@g"),
        strict=True,
    ),
    _scenario(
        "large",
        Step("0.8 MB", commit("@g", (ORDERS, [row(0, number, metadata="x" * 4000) for number in range(200)]))),
        Step("1.2 MB", commit("@g", (ORDERS, [row(1, number, metadata="x" * 4000) for number in range(300)]))),
        look("@g"),
    ),
)
