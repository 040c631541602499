"""Replies leave in the order of the requests, and a read sees the commits before it."""

from offsetd.broker.turns import Turn, Turns


def test_replies_wait_for_those_before_them() -> None:
    sent: list[bytes] = []
    turns = Turns(sent.append, lambda: None)
    first, second = Turn(), Turn()
    turns.wait(first)
    turns.wait(second)
    turns.reply(b"third")
    turns.done(second, b"second")
    assert sent == []
    turns.done(first, b"first")
    assert sent == [b"first", b"second", b"third"]


def test_a_read_is_evaluated_when_its_turn_comes() -> None:
    sent: list[bytes] = []
    state = b"before"
    turns = Turns(sent.append, lambda: None)
    commit = Turn()
    turns.wait(commit)
    turns.read(lambda _: state)
    state = b"after"
    turns.done(commit, b"ok")
    assert sent == [b"ok", b"after"]


def test_a_read_with_nothing_before_it_is_answered_at_once() -> None:
    sent: list[bytes] = []
    turns = Turns(sent.append, lambda: None)
    turns.read(lambda _: b"now")
    assert sent == [b"now"]


def test_a_read_may_take_longer_and_holds_up_what_follows() -> None:
    sent: list[bytes] = []
    started: list[Turn] = []
    turns = Turns(sent.append, lambda: None)
    turns.read(started.append)
    turns.reply(b"second")
    assert sent == []
    turns.done(started[0], b"first")
    assert sent == [b"first", b"second"]
