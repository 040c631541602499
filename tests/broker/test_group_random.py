"""Random lives of members at the broker: whichever path a commit takes, the group's state at that moment decides it."""

from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.coordinator.limits import Limits
from protocol.errors import Code
from tests.broker.consumers import ORDERS, Consumer, describe, listed, send_delete
from tests.broker.scene import Scene

LIMITS: Final = Limits(slots=2, initial_rebalance_delay_ms=0, group_members_max=3)
CLIENTS: Final = 4

_who = st.integers(0, CLIENTS - 1)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("join"), _who, st.sampled_from((3, 3, 9))),
        st.tuples(st.just("return"), _who, st.sampled_from((5, 9))),
        st.tuples(st.just("sync"), _who, st.just(0)),
        st.tuples(st.just("commit"), _who, st.sampled_from((0, 0, 0, 1))),
        st.tuples(st.just("commit"), _who, st.sampled_from((0, 0, 0, 1))),
        st.tuples(st.just("outside"), _who, st.just(0)),
        st.tuples(st.just("beat"), _who, st.just(0)),
        st.tuples(st.just("leave"), _who, st.just(0)),
        st.tuples(st.just("time"), st.just(0), st.sampled_from((1, 3_000, 9_999, 60_000))),
        st.tuples(st.just("settle"), st.just(0), st.sampled_from((1, 2, 99))),
        st.tuples(st.just("refuse"), st.just(0), st.just(0)),
        st.tuples(st.just("delete"), st.just(0), st.just(0)),
        st.tuples(st.just("look"), st.just(0), st.just(0)),
    ),
    min_size=15,
    max_size=60,
)


class Life:
    """A broker, clients of which two are static members, and what is still to be answered."""

    def __init__(self) -> None:
        self.scene = Scene(limits=LIMITS)
        instances = (None, None, "blue", "green")
        self.consumers = [Consumer(self.scene, instance=instance) for instance in instances]
        self.joins: list[tuple[Consumer, int]] = []
        self.expected: list[tuple[Consumer, int, Code]] = []
        self.refused = False

    def play(self, verb: str, who: int, value: int) -> None:
        getattr(self, f"_{verb}")(self.consumers[who], value)
        for consumer, number in list(self.joins):
            if number in consumer.client.order():
                self.joins.remove((consumer, number))
                consumer.joined(number)

    def _join(self, consumer: Consumer, version: int) -> None:
        self.joins.append((consumer, consumer.send_join(version)))

    def _return(self, consumer: Consumer, version: int) -> None:
        consumer.member_id = ""
        self._join(consumer, version)

    def _sync(self, consumer: Consumer, _: int) -> None:
        consumer.send_sync({consumer.member_id: b"part"}, 3)

    def _beat(self, consumer: Consumer, _: int) -> None:
        # Its answer may have to wait behind a join on the same connection; another one takes it.
        other = Consumer(self.scene, instance=consumer.instance)
        other.member_id, other.generation = consumer.member_id, consumer.generation
        code = other.heartbeat()
        membership = self.scene.broker.groups.memberships.get("g")
        known = membership is not None and other.member_id in membership.roster.members

        assert known or code in (Code.UNKNOWN_MEMBER_ID, Code.FENCED_INSTANCE_ID)

    def _leave(self, consumer: Consumer, _: int) -> None:
        other = Consumer(self.scene, instance=consumer.instance)
        other.member_id = consumer.member_id
        other.leave()

    def _commit(self, consumer: Consumer, stale: int) -> None:
        generation = consumer.generation - stale
        self._expect(consumer, consumer.member_id, consumer.instance, generation)

    def _outside(self, consumer: Consumer, _: int) -> None:
        self._expect(consumer, "", None, -1)

    def _expect(self, consumer: Consumer, member_id: str, instance: str | None, generation: int) -> None:
        broker = self.scene.broker
        membership = broker.groups.memberships.get("g")
        group = broker.slots.table_of("g").groups.get("g")
        if membership is not None:
            code = membership.refuse_commit(member_id, instance, generation)
        elif generation < 0:
            code = Code.NONE
        else:
            code = Code.ILLEGAL_GENERATION if group is None else Code.UNKNOWN_MEMBER_ID
        number = consumer.send_commit(
            len(self.expected),
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        self.expected.append((consumer, number, code))

    def _time(self, _: Any, ms: int) -> None:
        self.scene.clock.advance(ms)

    def _settle(self, _: Any, count: int) -> None:
        self.scene.log.settle(count)
        self.scene.run()

    def _refuse(self, _: Any, _count: int) -> None:
        self.refused = self.refused or bool(self.scene.log.held)
        self.scene.log.refuse()

    def _delete(self, _: Any, _value: int) -> None:
        send_delete(self.scene, "g")

    def _look(self, _: Any, _value: int) -> None:
        (shown,) = describe(self.scene, "g")
        assert len({row.member_id for row in shown.members}) == len(shown.members)
        assert shown.group_state in {"Dead", "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}
        assert bool(shown.members) == (shown.group_state not in {"Dead", "Empty"}) or shown.group_state.startswith("P")

    def end(self) -> None:
        """Let everybody be answered, and everybody's session end."""
        for _ in range(50):
            self.scene.clock.advance(60_000)
            self.scene.log.settle()
            self.scene.run()


@settings(deadline=None, max_examples=200)
@given(steps=_steps)
def test_commits_are_judged_by_the_state_of_their_moment_and_everybody_is_answered(
    steps: list[tuple[str, int, int]],
) -> None:
    life = Life()
    for step in steps:
        life.play(*step)
    life.end()
    scene = life.scene
    groups = scene.broker.groups

    for consumer in life.consumers:
        assert not consumer.client.turns.queue
        assert consumer.client.faults == []
    for consumer, number, code in life.expected:
        got = consumer.client.codes(number)[ORDERS]
        assert got == code or (life.refused and code is Code.NONE and got == Code.COORDINATOR_NOT_AVAILABLE)
    assert not any((groups.memberships, groups._looked_for, groups._due, groups._marked))
    restarted = Scene(tuple(scene.log.written), limits=LIMITS)
    assert listed(restarted) == listed(scene)
    assert restarted.shown("g") == scene.shown("g")
