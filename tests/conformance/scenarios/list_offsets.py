"""ListOffsets: the ends of an empty log, special times by version, and what is refused."""

from dataclasses import replace
from typing import Final

from protocol.api import LIST_OFFSETS
from tests.conformance.requests import at, commit, ends, row
from tests.conformance.scenario import EMPTY, ORDERS, Scenario, Step

LATEST: Final = -1
EARLIEST: Final = -2
#: Far beyond what any other scenario commits.
COMMITTED: Final = 2**40
NEW_YEAR_MS: Final = 1_767_225_600_000


def _scenario(name: str, *steps: Step, versions: str = "0+") -> Scenario:
    # Kafka answers in the order of a hash map.
    unordered = tuple(replace(step, unordered=True) for step in steps)
    return Scenario(f"list offsets: {name}", LIST_OFFSETS, unordered, versions)


SCENARIOS: Final = (
    _scenario(
        "an empty log",
        Step("latest", ends((EMPTY, [at(0, LATEST)]))),
        Step("earliest", ends((EMPTY, [at(0, EARLIEST)]))),
        Step("both of several", ends((EMPTY, [at(3, LATEST), at(0, EARLIEST), at(1, LATEST)]))),
        Step("a time", ends((EMPTY, [at(0, NEW_YEAR_MS), at(1, 0), at(2, 2**63 - 1)]))),
        Step("no topics", ends()),
        Step("no partitions", ends((EMPTY, []))),
        Step("two topics", ends((EMPTY, [at(0, LATEST)]), ("@nowhere", [at(0, LATEST)]))),
    ),
    _scenario(
        "special times",
        *(Step(f"{moment}", ends((EMPTY, [at(0, moment)]))) for moment in (-3, -4, -5, -6, -7, -100, -(2**63))),
        Step("beside an ordinary one", ends((EMPTY, [at(0, -3), at(1, LATEST)]))),
    ),
    _scenario(
        "refused",
        Step("unknown topic", ends(("@nowhere", [at(0, LATEST), at(1, EARLIEST)]))),
        Step("unknown partition", ends((EMPTY, [at(4, LATEST), at(-1, LATEST), at(0, LATEST)]))),
        Step("illegal name", ends(("a b", [at(0, LATEST)]))),
        Step("special time of an unknown topic", ends(("@nowhere", [at(0, -100)]))),
        Step("partition twice", ends((EMPTY, [at(0, LATEST), at(0, LATEST)]))),
        Step(
            "partition twice with others",
            ends((EMPTY, [at(1, LATEST), at(0, LATEST), at(2, EARLIEST), at(0, EARLIEST)])),
        ),
        Step("partition thrice", ends((EMPTY, [at(0, LATEST), at(0, LATEST), at(0, LATEST)]))),
        Step("topic twice", ends((EMPTY, [at(0, LATEST)]), (EMPTY, [at(1, LATEST)]))),
        Step("partition twice by topic", ends((EMPTY, [at(0, LATEST)]), (EMPTY, [at(0, LATEST), at(1, LATEST)]))),
        Step("unknown partition twice", ends(("@nowhere", [at(0, LATEST), at(0, LATEST)]))),
    ),
    _scenario(
        "isolation",
        Step("committed", ends((EMPTY, [at(0, LATEST), at(1, EARLIEST)]), isolation=1)),
        Step("5", ends((EMPTY, [at(0, LATEST), at(1, LATEST)]), isolation=5)),
        Step("-1", ends((EMPTY, [at(0, LATEST)]), isolation=-1)),
        Step("5 of an unknown topic", ends(("@nowhere", [at(0, LATEST)]), isolation=5)),
        Step("5 and a partition twice", ends((EMPTY, [at(0, LATEST), at(0, LATEST), at(1, LATEST)]), isolation=5)),
        versions="2+",
    ),
    _scenario(
        "leader epochs",
        Step("0", ends((EMPTY, [at(0, LATEST, epoch=0)]))),
        Step("ahead", ends((EMPTY, [at(0, LATEST, epoch=5), at(1, EARLIEST, epoch=1)]))),
        Step("-2", ends((EMPTY, [at(0, LATEST, epoch=-2)]))),
        Step("ahead of an unknown topic", ends(("@nowhere", [at(0, LATEST, epoch=5)]))),
        Step("ahead, special time", ends((EMPTY, [at(0, -100, epoch=5)]))),
        Step("ahead, at a time", ends((EMPTY, [at(0, NEW_YEAR_MS, epoch=5)]))),
        versions="4+",
    ),
    _scenario(
        "replicas",
        Step("another consumer", ends((EMPTY, [at(0, LATEST)]), replica=-2)),
        Step("a broker", ends((EMPTY, [at(0, LATEST)]), replica=7)),
    ),
    _scenario(
        "committed positions",
        Step("prepared", commit("@g", (ORDERS, [row(3, COMMITTED)])), at=9),
        Step("latest", ends((ORDERS, [at(3, LATEST)]))),
        Step("earliest", ends((ORDERS, [at(3, EARLIEST)]))),
    ),
)
