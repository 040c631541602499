"""SyncGroup, Heartbeat and LeaveGroup: in every state of a group, by members and by others."""

from typing import Final

from protocol.api import HEARTBEAT, LEAVE_GROUP, SYNC_GROUP
from protocol.leave_group import LeaveGroupRequest
from tests.conformance.group_requests import (
    BEAT,
    JOIN,
    PREPARING,
    STATIC_JOIN,
    SYNC,
    alone,
    answered,
    beat,
    join,
    leave,
    pair,
    shown,
    sync,
)
from tests.conformance.requests import LOOK, commit, row
from tests.conformance.scenario import ORDERS, Scenario, Seen, Step

_OFFSETS: Final = Step("offsets", commit("@o", (ORDERS, [row(0, 1)])), at=LOOK)


def _comes(client: str, members: int = 2, instance: str | None = None) -> Step:
    seen = Seen("@g", PREPARING, members)
    return Step(
        f"{client} comes",
        join(instance=instance),
        at=STATIC_JOIN if instance else JOIN,
        by=client,
        held=True,
        until=seen,
    )


def _sync(name: str, *steps: Step, versions: str = "0+") -> Scenario:
    return Scenario(f"sync: {name}", SYNC_GROUP, steps, versions)


def _beat(name: str, *steps: Step, versions: str = "0+") -> Scenario:
    return Scenario(f"heartbeat: {name}", HEARTBEAT, steps, versions)


def _leave(name: str, *steps: Step, versions: str = "0+") -> Scenario:
    return Scenario(f"leave: {name}", LEAVE_GROUP, steps, versions)


SYNCS: Final = (
    _sync(
        "of nobody",
        Step("no group", sync("m", 1, group="")),
        Step("an unknown group", sync("m", 1)),
        Step("an unknown group, no names", sync("m", 1, kind=None, protocol=None)),
        _OFFSETS,
        Step("a group of offsets", sync("m", 1, group="@o")),
        Step("no member", sync("", -1, group="@o")),
    ),
    _sync(
        "one member",
        Step("a joins", join(), at=JOIN, by="a"),
        Step("another member", sync("m", 1)),
        Step("another generation", sync("~a", 0)),
        Step("a later generation", sync("~a", 2)),
        Step("another member of another generation", sync("m", 7)),
        Step("another protocol", sync("~a", 1, protocol="roundrobin"), "5+"),
        Step("another type", sync("~a", 1, kind="connect"), "5+"),
        Step("no protocol", sync("~a", 1, protocol=None), "5+"),
        Step("no type", sync("~a", 1, kind=None), "5+"),
        Step("no names, another generation", sync("~a", 7, kind=None, protocol=None), "5+"),
        Step("another protocol, another generation", sync("~a", 7, protocol="roundrobin"), "5+"),
        Step("an instance that there is not", sync("~a", 1, instance="i"), "3+"),
        shown(name="nothing has happened"),
        Step("parts", sync("~a", 1, ("~a", b"first"), ("m", b"x"), ("~a", b"last")), by="a"),
        Step("parts again", sync("~a", 1, ("~a", b"other")), by="a"),
        Step("no parts", sync("~a", 1), by="a"),
        shown(name="the first ones count"),
        Step("a joins again", join(member="~a"), at=JOIN, by="a"),
        Step("no part for anybody", sync("~a", 2), by="a"),
        shown(name="none has a part"),
    ),
    _sync(
        "two members",
        *alone("a"),
        _comes("b"),
        Step("the first while one waits", sync("~a", 1), by="a"),
        Step("of an older generation while one waits", sync("~a", 0), by="a"),
        Step("another protocol while one waits", sync("~a", 1, protocol="roundrobin"), "5+", by="a"),
        Step("a joins with b", join(member="~a"), at=JOIN, by="a", unordered=True),
        answered("b"),
        Step(
            "b asks, and brings what nobody asked for", sync("~b", 2, ("~a", b"no"), ("~b", b"no")), by="b", held=True
        ),
        Step("a assigns", sync("~a", 2, ("~b", b"two"), ("~a", b"one")), by="a"),
        answered("b", "b has its part"),
        Step("a joins again", join(member="~a"), at=JOIN, by="a", held=True, until=Seen("@g", PREPARING, 2)),
        Step("b joins again", join(member="~b"), at=JOIN, by="b", unordered=True),
        answered("a", "a has joined again"),
        Step("b asks", sync("~b", 3), by="b", held=True),
        Step("c comes", join(), at=JOIN, by="c", held=True, until=Seen("@g", PREPARING, 3)),
        answered("b", "b is told to join"),
    ),
    _sync(
        "static members",
        *pair(at=STATIC_JOIN, first="blue", second="green"),
        Step("its part", sync("~b", 2, instance="green"), by="b"),
        Step("its part without its instance", sync("~b", 2), by="b"),
        Step("another's instance", sync("~b", 2, instance="blue"), by="b"),
        Step("an unknown instance", sync("~b", 2, instance="red"), by="b"),
        Step("no member", sync("", 2, instance="green"), by="b"),
        Step("another's instance, another generation", sync("~b", 7, instance="blue"), by="b"),
        versions="3+",
    ),
)

BEATS: Final = (
    _beat(
        "of nobody",
        Step("no group", beat("m", 1, group="")),
        Step("an unknown group", beat("m", 1)),
        _OFFSETS,
        Step("a group of offsets", beat("m", 1, group="@o")),
        Step("no member", beat("", -1, group="@o")),
    ),
    _beat(
        "in every state",
        Step("a joins", join(), at=JOIN, by="a"),
        Step("before the parts", beat("~a", 1), by="a"),
        Step("an older generation before the parts", beat("~a", 0), by="a"),
        Step("parts", sync("~a", 1, ("~a", b"x")), at=SYNC, by="a"),
        Step("stable", beat("~a", 1), by="a"),
        Step("an older generation", beat("~a", 0), by="a"),
        Step("a later generation", beat("~a", 2), by="a"),
        Step("no generation", beat("~a", -1), by="a"),
        Step("another member", beat("m", 1), by="a"),
        Step("another member of another generation", beat("m", 7), by="a"),
        Step("no member", beat("", 1), by="a"),
        _comes("b"),
        Step("while one waits", beat("~a", 1), by="a"),
        Step("an older generation while one waits", beat("~a", 0), by="a"),
        Step("a goes", leave(("~a", None)), at=5, by="a"),
        answered("b"),
        Step("when gone", beat("~a", 1), by="a"),
        Step("b goes", leave(("~b", None)), at=5, by="b"),
        Step("empty", beat("~b", 2), by="b"),
        Step("empty, next generation", beat("~b", 3), by="b"),
    ),
    _beat(
        "static members",
        *pair(at=STATIC_JOIN, first="blue", second="green"),
        Step("stable", beat("~b", 2, instance="green"), by="b"),
        Step("without its instance", beat("~b", 2), by="b"),
        Step("another's instance", beat("~b", 2, instance="blue"), by="b"),
        Step("an unknown instance", beat("~b", 2, instance="red"), by="b"),
        Step("no member", beat("", 2, instance="green"), by="b"),
        Step("an older generation", beat("~b", 1, instance="green"), by="b"),
        Step("another's instance, another generation", beat("~b", 7, instance="blue"), by="b"),
        versions="3+",
    ),
)

LEAVES: Final = (
    _leave(
        "of nobody",
        Step("no group", leave(("m", None), group="")),
        Step("an unknown group", leave(("m", None))),
        Step("an unknown group, several", leave(("m", None), ("", "i"), ("n", "j")), "3+"),
        Step("an unknown group, nobody", LeaveGroupRequest(group_id="@g"), "3+"),
        _OFFSETS,
        Step("a group of offsets", leave(("m", None), group="@o")),
        Step("no member", leave(("", None), group="@o")),
    ),
    _leave(
        "one member",
        *alone("a"),
        Step("another", leave(("m", None)), by="a"),
        Step("nobody", LeaveGroupRequest(group_id="@g"), "3+", by="a"),
        Step("still there", beat("~a", 1), at=BEAT, by="a"),
        Step("an instance that there is not", leave(("~a", "i")), "3+", by="a"),
        Step("an instance that there is not, no id", leave(("", "i")), "3+", by="a"),
        Step("goes", leave(("~a", None)), by="a"),
        Step("goes again", leave(("~a", None)), by="a"),
        shown(name="empty"),
    ),
    _leave(
        "two members",
        *pair(),
        Step("b goes", leave(("~b", None)), by="b"),
        Step("a hears of it", beat("~a", 2), at=BEAT, by="a"),
        Step("b has gone", beat("~b", 2), at=BEAT, by="b"),
        Step("a joins again", join(member="~a"), at=JOIN, by="a"),
        Step("a goes before it has a part", leave(("~a", None)), by="a"),
        shown(name="empty"),
    ),
    _leave(
        "several at once",
        *pair(),
        Step("strangers", leave(("m", None), ("", None), ("n", "i")), by="a"),
        Step("one of them twice, and a stranger", leave(("~b", None), ("m", None), ("~b", None)), by="a"),
        Step("a hears of it", beat("~a", 2), at=BEAT, by="a"),
        Step("the last one", leave(("m", None), ("~a", None)), by="a"),
        shown(name="empty"),
        versions="3+",
    ),
    _leave(
        "all at once",
        *pair(),
        Step("both", leave(("~b", None), ("~a", None)), by="a"),
        shown(name="empty"),
        Step("c joins", join(), at=JOIN, by="c"),
        versions="3+",
    ),
    _leave(
        "while others wait",
        *pair(),
        Step("a joins", join(member="~a"), at=JOIN, by="a", held=True, until=Seen("@g", PREPARING, 2)),
        Step("b goes", leave(("~b", None)), by="b"),
        answered("a"),
        Step("a takes its part again", sync("~a", 3, ("~a", b"x")), at=SYNC, by="a"),
        _comes("c"),
        Step("a goes", leave(("~a", None)), by="a"),
        answered("c"),
    ),
    _leave(
        "static members",
        *pair(at=STATIC_JOIN, first="blue", second="green"),
        Step("another's instance", leave(("~b", "blue")), by="b"),
        Step("an unknown instance", leave(("~b", "red")), by="b"),
        Step("an unknown instance, no id", leave(("", "red")), by="b"),
        Step("by its instance alone", leave(("", "green")), by="c"),
        Step("a joins again", join(member="~a", instance="blue"), at=STATIC_JOIN, by="a"),
        Step("by its id alone", leave(("~a", None)), by="c"),
        shown(name="empty"),
        Step("blue comes back", join(instance="blue"), at=STATIC_JOIN, by="d"),
        Step("by both", leave(("~d", "blue")), by="c"),
        versions="3+",
    ),
)

SCENARIOS: Final = (*SYNCS, *BEATS, *LEAVES)
