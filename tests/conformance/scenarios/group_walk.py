"""One member after another in one group, as it comes: the same seeds make the same steps in every run."""

from collections.abc import Callable
from random import Random
from typing import Final

from protocol.api import JOIN_GROUP
from tests.conformance.group_requests import (
    beat,
    delete,
    delete_offsets,
    describe,
    join,
    leave,
    listing,
    subscription,
    sync,
)
from tests.conformance.requests import commit, fetch_all, row
from tests.conformance.scenario import ORDERS, PAYMENTS, Scenario, Step

SEEDS: Final = range(8)
STEPS: Final = 150
_INSTANCE: Final = "blue"
#: Any two of them have a protocol in common, or a member that joins again would be refused and nothing more.
_SAID: Final = (
    (("range", subscription(ORDERS)),),
    (("range", subscription(ORDERS, PAYMENTS)),),
    (("range", subscription(PAYMENTS)), ("roundrobin", subscription(PAYMENTS))),
    (("roundrobin", subscription()), ("range", subscription())),
    (("range", b""),),
)


class _Walk:
    """What the script knows of the group: enough to ask nothing that would have to wait for somebody else."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.steps: list[Step] = []
        self.clients: list[str] = []
        # Who is in the group, and whether it is a static member.
        self.member: str | None = None
        self.is_static = False
        self.generation = 0
        # Whether anybody has been in it: what is left of a group of offsets alone differs on purpose.
        self.has_had_members = False

    def add(self, step: Step) -> None:
        number = len(self.steps)
        self.steps.append(
            Step(
                f"{number}: {step.name}",
                step.asked,
                at=step.at,
                by=step.by,
                unordered=True,
                own=step.own,
            )
        )

    # --- words ------------------------------------------------------------------------------------------------------

    def somebody(self) -> str:
        """Return a member id: mostly that of the member, else of one before it, or of nobody."""
        if self.member is not None and self.random.random() < 0.7:
            return f"~{self.member}"
        known = [f"~{client}" for client in self.clients] + [f"~{client}:0" for client in self.clients]
        return self.random.choice((*known, "nobody", ""))

    def some_generation(self) -> int:
        return self.random.choice((*[self.generation] * 6, self.generation - 1, self.generation + 1, -1, 0))

    def some_instance(self) -> str | None:
        if self.is_static:
            return self.random.choice((_INSTANCE, _INSTANCE, None, "red"))
        return self.random.choice((None, None, None, None, _INSTANCE))

    # --- steps ------------------------------------------------------------------------------------------------------

    def come(self) -> None:
        if self.member is not None:
            self.come_again()
            return
        client = f"c{len(self.clients)}"
        self.is_static = self.random.random() < 0.5
        version = self.random.randint(5, 9) if self.is_static else self.random.randint(0, 3)
        instance = _INSTANCE if self.is_static else None
        said = self.random.choice(_SAID)
        self.add(Step("joins", join(instance=instance, protocols=said), at=version, by=client))
        self.clients.append(client)
        self.member = client
        self.has_had_members = True
        self.generation += 1

    def come_again(self) -> None:
        if self.member is None:
            self.come()
            return
        version = self.random.randint(5, 9) if self.is_static else self.random.randint(0, 9)
        instance = _INSTANCE if self.is_static else None
        comes_back = self.is_static and self.random.random() < 0.5
        member = "" if comes_back else f"~{self.member}"
        said = self.random.choice(_SAID)
        request = join(member=member, instance=instance, protocols=said)
        self.add(Step("comes back" if comes_back else "joins again", request, at=version, by=self.member))
        # The next generation, or the same one: it need not be known for the script to go on.
        self.generation += self.random.randint(0, 1)

    def share(self) -> None:
        member, generation = self.somebody(), self.some_generation()
        part = self.random.choice((b"", b"\0", b"part"))
        request = sync(member, generation, (member, part), instance=self.some_instance())
        self.add(Step("sync", request, at=self.random.randint(0, 4), by=self.member or ""))

    def beat(self) -> None:
        request = beat(self.somebody(), self.some_generation(), instance=self.some_instance())
        self.add(Step("beat", request, at=self.random.randint(0, 4)))

    def commit(self) -> None:
        rows = [(name, [row(self.random.randint(0, 3), self.random.randint(0, 99))]) for name in (ORDERS, PAYMENTS)]
        if self.random.random() < 0.3:
            self.add(Step("commit from outside", commit("@g", *rows), at=self.random.randint(2, 9)))
            return
        request = commit(
            "@g", *rows, generation=self.some_generation(), member=self.somebody(), instance=self.some_instance()
        )
        self.add(Step("commit", request, at=self.random.randint(2, 9)))

    def leave(self) -> None:
        version = self.random.randint(0, 5)
        if self.member is not None and self.random.random() < 0.6:
            instance = _INSTANCE if self.is_static and self.random.random() < 0.5 else None
            by_instance = self.is_static and version >= 3 and self.random.random() < 0.3
            who = ("", _INSTANCE) if by_instance else (f"~{self.member}", instance)
            self.add(Step("goes", leave(who), at=version))
            self.member, self.is_static = None, False
            self.generation += 1
            return
        self.add(Step("a stranger goes", leave((self.random.choice(("nobody", "")), None)), at=version))

    def delete(self) -> None:
        self.add(Step("delete", delete("@g", "@nobody"), at=self.random.randint(0, 2)))
        if self.member is None:
            self.generation = 0
            self.has_had_members = False

    def delete_offsets(self) -> None:
        if self.has_had_members:
            topics = [(name, [self.random.randint(0, 3)]) for name in (ORDERS, PAYMENTS)]
            self.add(Step("delete offsets", delete_offsets("@g", *topics), at=0))

    def look(self) -> None:
        looks: tuple[Callable[[], Step], ...] = (
            lambda: Step("describe", describe("@g"), at=self.random.randint(0, 6)),
            lambda: Step("list", listing(), at=self.random.randint(0, 5), own=True),
            lambda: Step("fetch", fetch_all("@g"), at=self.random.randint(2, 9)),
        )
        self.add(self.random.choice(looks)())


def _scenario(seed: int) -> Scenario:
    walk = _Walk(seed)
    while len(walk.steps) < STEPS:
        walk.random.choice(
            (
                *(walk.come, walk.come, walk.come_again, walk.share, walk.share, walk.share, walk.share),
                *(walk.beat, walk.beat, walk.commit, walk.commit, walk.commit, walk.leave, walk.leave),
                *(walk.delete, walk.delete_offsets, walk.look, walk.look, walk.look),
            )
        )()
    return Scenario(f"group walk {seed}", JOIN_GROUP, tuple(walk.steps), versions="9", strict=True)


SCENARIOS: Final = tuple(_scenario(seed) for seed in SEEDS)
