"""Replies leave in the order of the requests, and a read sees the commits before it."""

from offsetd.broker.turns import Turn, Turns


def _never(fault: Exception) -> None:
    raise AssertionError("no read fails here") from fault


def test_replies_wait_for_those_before_them() -> None:
    sent: list[bytes] = []
    turns = Turns(sent.append, lambda: None, _never)
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
    turns = Turns(sent.append, lambda: None, _never)
    commit = Turn()
    turns.wait(commit)
    turns.read(lambda _: state)
    state = b"after"
    turns.done(commit, b"ok")
    assert sent == [b"ok", b"after"]


def test_a_read_with_nothing_before_it_is_answered_at_once() -> None:
    sent: list[bytes] = []
    turns = Turns(sent.append, lambda: None, _never)
    turns.read(lambda _: b"now")
    assert sent == [b"now"]


def test_a_read_may_take_longer_and_holds_up_what_follows() -> None:
    sent: list[bytes] = []
    started: list[Turn] = []
    turns = Turns(sent.append, lambda: None, _never)
    turns.read(started.append)
    turns.reply(b"second")
    assert sent == []
    turns.done(started[0], b"first")
    assert sent == [b"first", b"second"]


def test_a_read_that_could_not_be_answered_at_once_goes_on_in_its_turn() -> None:
    sent: list[bytes] = []
    started: list[Turn] = []
    turns = Turns(sent.append, lambda: None, _never)
    turns.read(started.append)
    turns.read(lambda _: b"second")

    turns.resume(started[0], started.append)
    turns.resume(started[1], lambda _: b"first")

    assert sent == [b"first", b"second"]
    assert not turns.queue


def test_a_read_that_fails_is_told_to_its_connection_and_not_to_whoever_sent_the_reply_before() -> None:
    sent: list[bytes] = []
    faults: list[Exception] = []
    turns = Turns(sent.append, lambda: None, faults.append)
    commit = Turn()
    turns.wait(commit)
    turns.read(lambda _: 1 // 0)  # type: ignore[arg-type, return-value]
    turns.reply(b"third")

    turns.done(commit, b"first")

    assert [type(fault) for fault in faults] == [ZeroDivisionError]
    assert sent == [b"first"]


def test_what_comes_too_late_for_a_lost_connection_is_let_go() -> None:
    sent: list[bytes] = []
    started: list[Turn] = []
    turns = Turns(sent.append, lambda: None, _never)
    turns.read(started.append)
    turns.queue.clear()

    turns.resume(started[0], lambda _: b"late")
    turns.done(started[0], b"later")

    assert sent == []
