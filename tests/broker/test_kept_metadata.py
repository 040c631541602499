"""Metadata is made anew only when a topic has come or gone, or has other partitions; and says what is true."""

from collections.abc import Callable

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from offsetd.broker.kept import Kept
from offsetd.coordinator.catalog import Identity, answer_metadata
from offsetd.coordinator.limits import Limits
from offsetd.coordinator.topics import KnownTopic
from protocol.api import METADATA, encode_request, encode_response
from protocol.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.scene import FakeClient, Scene

ALL = MetadataRequest(topics=None)


def asks(*names: str, create: bool = False) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def sent_again(scene: Scene, client: FakeClient, frame: bytes) -> bool:
    """Ask, and tell whether the reply was a kept one: the very one, and not one that equals it."""
    before = dict(scene.broker.metadata.kept.replies)
    client.send_frame(frame)
    after = scene.broker.metadata.kept.replies
    return after.keys() == before.keys() and all(reply is before[key] for key, reply in after.items())


def frame_of(request: MetadataRequest, version: int = 9, number: int = 0) -> bytes:
    return encode_request(METADATA, version, number, "c", request)[4:]


def test_the_same_question_gets_the_kept_reply_whoever_asks() -> None:
    scene = Scene()
    scene.commit("g", {("orders", 0): 1})
    client = scene.client()

    first = sent_again(scene, client, frame_of(ALL))
    other = sent_again(scene, client, encode_request(METADATA, 9, 77, "somebody else", ALL)[4:])

    assert (first, other) == (False, True)
    assert client.replies[0][8:] == client.replies[1][8:]
    assert [reply[4:8] for reply in client.replies] == [bytes(4), bytes((0, 0, 0, 77))]


@pytest.mark.parametrize(
    ("happens", "moved"),
    [
        (lambda scene: scene.commit("g", {("orders", 0): 2}), False),
        (lambda scene: scene.commit("h", {("orders", 0): 2}), False),
        (lambda scene: scene.commit("g", {("orders", 2): 2}), True),
        (lambda scene: scene.commit("g", {("new", 0): 2}), True),
        (lambda scene: scene.client().send(asks("asked", create=True), 9), True),
        (lambda scene: scene.client().send(asks("asked", create=False), 9), False),
        (lambda scene: scene.drop("g"), True),
    ],
)
def test_only_a_change_of_topics_makes_it_anew(happens: Callable[[Scene], object], moved: bool) -> None:
    scene = Scene()
    scene.commit("g", {("orders", 0): 1})
    client = scene.client()
    scene.commit("other", {("orders", 0): 1})
    client.send(ALL, 9)

    happens(scene)

    assert sent_again(scene, client, frame_of(ALL)) is not moved


def test_a_topic_that_is_asked_for_is_known_and_the_reply_kept() -> None:
    scene = Scene()
    client = scene.client()

    assert not sent_again(scene, client, frame_of(asks("orders", create=True)))
    assert sent_again(scene, client, frame_of(asks("orders", create=True)))
    assert client.replies[0] == client.replies[1]


def test_another_address_is_told_at_once() -> None:
    """The port is known only when the listener has one."""
    scene = Scene()
    client = scene.client()
    client.send(ALL, 9)

    scene.broker.identity = Identity("abcdefghijklmnopqrstug", 1, "broker.example", 1234)
    client.send(ALL, 9)

    assert [client.answer(number).brokers[0].port for number in (0, 1)] == [9092, 1234]


def test_what_was_told_while_slots_loaded_is_not_told_after_it() -> None:
    scene = Scene(loaded=False)
    client = scene.client()
    client.send(asks("orders"), 9)

    scene.load()
    client.send(asks("orders"), 9)

    assert [client.answer(number).topics[0].error_code for number in (0, 1)] == [5, 3]


def test_kept_descriptions_are_bounded() -> None:
    scene = Scene()
    scene.broker.metadata.kept = Kept(bytes_max=20_000, reply_bytes_max=20_000)
    client = scene.client()

    for number in range(200):
        client.send(asks(f"topic-{number}"), 9)
        assert scene.broker.metadata.kept.held_bytes <= 20_000

    assert len(scene.broker.metadata.kept.replies) > 1


_names = st.lists(st.sampled_from(("orders", "o", "asked", "stated", "a b", "")), max_size=3)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), _names, st.booleans(), st.integers(0, 13)),
        st.tuples(st.just("all"), st.integers(0, 13)),
        st.tuples(st.just("commit"), st.sampled_from(("orders", "o")), st.integers(0, 3)),
        st.tuples(st.just("drop")),
    ),
    max_size=15,
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(steps=_steps)
def test_every_description_is_what_a_fresh_one_would_be(steps: list[tuple[object, ...]]) -> None:
    scene = Scene(limits=Limits(slots=2, topics_asked_max=2), known={"stated": KnownTopic(3)})
    client = scene.client()
    hits = 0

    for what, *rest in steps:
        if what == "commit":
            topic, partition = rest
            scene.commit("g", {(str(topic), int(str(partition))): 1})
        elif what == "drop":
            scene.drop("g")
        else:
            version = int(str(rest[-1]))
            request = ALL if what == "all" else asks(*rest[0], create=bool(rest[1]))  # type: ignore[misc]
            if what == "all" and version == 0:
                request = MetadataRequest(topics=())
            for number in (4, -4):
                hits += sent_again(scene, client, frame_of(request, version, number))
                response, topics = answer_metadata(
                    request, version=version, identity=scene.broker.identity, topics=scene.broker.topics
                )
                fresh = response._replace(topics=tuple(topics))
                assert client.replies.pop() == encode_response(METADATA, version, number, fresh)

    event(f"kept replies used: {min(hits, 5)}")
