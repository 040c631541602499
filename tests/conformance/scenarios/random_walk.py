"""Commits and fetches as they come: the same seeds make the same steps in every run, in all versions mixed."""

from random import Random
from typing import Final

from protocol.api import OFFSET_COMMIT
from tests.conformance.requests import MANY_GROUPS, Rows, commit, fetch, fetch_all, fetch_many, look, row
from tests.conformance.scenario import ORDERS, PARTITIONS, PAYMENTS, Scenario, Step
from tests.conformance.scenarios.offset_commit import LARGEST, LIMIT, SMALLEST

SEEDS: Final = range(6)
STEPS: Final = 200
_GROUPS: Final = ("@a", "@b", "@ä")
_NAMES: Final = (ORDERS, ORDERS, PAYMENTS, PAYMENTS, "@nowhere", "a b")
_PARTITIONS: Final = (*range(PARTITIONS), *range(PARTITIONS), PARTITIONS, -1)
_OFFSETS: Final = (0, 1, 7, 42, -1, -2, 2**32, LARGEST, SMALLEST)
_TEXTS: Final = (None, "", "", "note", "ä😀", "x" * LIMIT, "x" * (LIMIT + 1), "😀" * (LIMIT // 2 + 1))
_COMMIT_VERSIONS: Final = range(2, 10)
_FETCH_VERSIONS: Final = range(1, 10)


def _commit(random: Random) -> tuple[Step, ...]:
    version = random.choice(_COMMIT_VERSIONS)
    group = random.choice(_GROUPS)
    topics: list[Rows] = []
    for name in random.sample(_NAMES, random.randint(1, 3)):
        rows = [
            row(
                random.choice(_PARTITIONS),
                random.choice(_OFFSETS),
                epoch=random.choice((-1, -1, 0, 7)),
                metadata=random.choice(_TEXTS),
            )
            for _ in range(random.randint(0, 4))
        ]
        topics.append((name, rows))
    request = commit(
        group,
        *topics,
        generation=random.choice((-1, -1, -1, 0, 3)),
        member=random.choice(("", "", "m")),
        instance=random.choice((None, None, "i")),
        retention_ms=random.choice((-1, -1, 3_600_000)),
    )
    return (Step("commit", request, at=version),)


def _fetch(random: Random) -> tuple[Step, ...]:
    version = random.choice(_FETCH_VERSIONS)
    topics = [
        (name, [random.choice(_PARTITIONS) for _ in range(random.randint(0, 4))])
        for name in random.sample(_NAMES, random.randint(0, 3))
    ]
    groups = [*_GROUPS, "@nobody"]
    if version >= MANY_GROUPS and random.random() < 0.5:
        request = fetch_many(*((group, random.choice((None, topics))) for group in random.sample(groups, 3)))
        return (Step("fetch many", request, at=version, unordered=True),)
    group = random.choice(groups)
    stable = random.random() < 0.5
    if version >= 2 and random.random() < 0.3:
        return (Step("fetch all", fetch_all(group, stable=stable), at=version, unordered=True),)
    return (Step("fetch", fetch(group, *topics, stable=stable), at=version),)


def _walk(seed: int) -> Scenario:
    random = Random(seed)
    # Every group exists from the start, because groups that a refused commit left behind differ on purpose.
    steps = [Step("first", commit(group, (ORDERS, [row(0, 0)])), at=9) for group in _GROUPS]
    while len(steps) < STEPS:
        steps += random.choice((_commit, _commit, _fetch))(random)
    steps += [look(group) for group in _GROUPS]
    numbered = tuple(
        Step(f"{number}: {step.name}", step.asked, at=step.at, unordered=step.unordered)
        for number, step in enumerate(steps)
    )
    return Scenario(f"random walk {seed}", OFFSET_COMMIT, numbered, versions="9", strict=True)


SCENARIOS: Final = tuple(_walk(seed) for seed in SEEDS)
