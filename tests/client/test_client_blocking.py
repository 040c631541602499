"""The blocking client: any thread, the same errors, and an end in every way a program can end."""

import asyncio
import gc
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from offsetd.client import AtLeastOnce, BlockingClient, Closed, Committed, ExactlyOnce, PartitionsRefused
from protocol.api import Request
from protocol.errors import Code
from protocol.offset_commit import OffsetCommitRequest
from tests.client.program import run_program
from tests.client.scripted import OFFSET_COMMIT, OFFSET_FETCH, QUICK, WAIT_SECONDS, Hold, ScriptedBroker

ORDERS, BILLS = ("orders", 0), ("bills", 7)


@contextmanager
def broker_in_a_thread() -> Iterator[ScriptedBroker]:
    """Run a broker beside a test that blocks."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    broker = ScriptedBroker()
    try:
        asyncio.run_coroutine_threadsafe(broker.start(), loop).result(WAIT_SECONDS)
        yield broker
    finally:
        asyncio.run_coroutine_threadsafe(broker.stop(), loop).result(WAIT_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_SECONDS)
        loop.close()


def client_threads() -> list[threading.Thread]:
    """Return the threads of clients that run."""
    return [thread for thread in threading.enumerate() if thread.name == "offsetd-client"]


def wait_for(broker: ScriptedBroker, kind: type[Request], count: int = 1) -> None:
    """Wait until requests have come."""
    deadline = time.monotonic() + WAIT_SECONDS
    while len(broker.of(kind)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_it_does_what_the_client_does() -> None:
    with broker_in_a_thread() as broker, BlockingClient(broker.address, limits=QUICK) as client:
        client.commit("billing", {ORDERS: Committed(5, "note", 3)})
        broker.then(OFFSET_COMMIT, Code.OFFSET_METADATA_TOO_LARGE)
        with pytest.raises(PartitionsRefused):
            client.commit("billing", {BILLS: 6})

        assert client.fetch("billing", [ORDERS, BILLS]) == {ORDERS: Committed(5, "note", 3)}
        assert client.fetch_groups({"billing": None, "other": None}) == {
            "billing": {ORDERS: Committed(5, "note", 3)},
            "other": {},
        }


def test_positions_are_kept_without_a_loop() -> None:
    with broker_in_a_thread() as broker, BlockingClient(broker.address, limits=QUICK) as client:
        with client.keep(AtLeastOnce, "billing") as keeper:
            start = keeper.resume([ORDERS])[ORDERS]  # type: ignore[index]
            with keeper.processing({ORDERS: start.offset + 1}):
                assert broker.table == {}
        with client.keep(ExactlyOnce, "audit") as teller, teller.processing({ORDERS: 7}):
            pass

        assert broker.table == {("billing", "orders", 0): (1, "", -1), ("audit", "orders", 0): (7, "", -1)}


def test_threads_share_it_and_their_commits() -> None:
    with broker_in_a_thread() as broker, BlockingClient(broker.address, limits=QUICK) as client:
        hold = Hold()
        broker.then(OFFSET_COMMIT, hold)
        with ThreadPoolExecutor(33) as threads:
            first = threads.submit(client.commit, "billing", {("first", 0): 1})
            wait_for(broker, OffsetCommitRequest)
            rest = [threads.submit(client.commit, "billing", {("orders", number): number}) for number in range(32)]
            deadline = time.monotonic() + WAIT_SECONDS
            while len(client._client._commits._callers.get("billing", ())) < 33:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            assert broker._server is not None
            broker._server.get_loop().call_soon_threadsafe(hold.release.set)
            for call in (first, *rest):
                call.result(WAIT_SECONDS)

        assert [len(request.topics[0].partitions) for request in broker.of(OffsetCommitRequest)] == [1, 32]


def test_closing_ends_the_thread_and_the_calls_of_other_threads() -> None:
    with broker_in_a_thread() as broker:
        client = BlockingClient(broker.address, limits=QUICK)
        broker.then(OFFSET_COMMIT, Hold())
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(client.commit, "billing", {ORDERS: 5})
            wait_for(broker, OffsetCommitRequest)
            client.close()

            with pytest.raises(Closed):
                waiting.result(WAIT_SECONDS)
        with pytest.raises(Closed):
            client.fetch("billing")
        client.close()
        assert client_threads() == []


def test_a_client_that_nobody_refers_to_is_closed() -> None:
    with broker_in_a_thread() as broker:
        client = BlockingClient(broker.address, limits=QUICK)
        client.fetch("billing")
        del client
        gc.collect()

        assert client_threads() == []


def test_an_interrupted_caller_takes_its_call_along() -> None:
    with broker_in_a_thread() as broker, BlockingClient(broker.address, limits=QUICK) as client:
        broker.then(OFFSET_COMMIT, Hold())

        def interrupt() -> None:
            wait_for(broker, OffsetCommitRequest)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            client.commit("billing", {ORDERS: 5})
        thread.join()
        deadline = time.monotonic() + WAIT_SECONDS
        while not all(caller.done.done() for caller in client._client._commits._callers["billing"]):
            assert time.monotonic() < deadline
            time.sleep(0.001)


def test_a_call_on_its_own_loop_is_refused_instead_of_waiting_for_ever() -> None:
    with broker_in_a_thread() as broker, BlockingClient(broker.address, limits=QUICK) as client:

        async def blunder() -> None:
            client.fetch("billing")

        with pytest.raises(RuntimeError, match="on the client's own loop"):
            client._loop.run(blunder())


COMMIT = "client.commit('billing', {('orders', 0): 5})"


def run(program: str, address: str) -> "subprocess.CompletedProcess[str]":
    """Run a program that begins with a client."""
    head = f"from offsetd.client import BlockingClient\nclient = BlockingClient({address!r})\n"
    return run_program(head + program)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (COMMIT, 0),
        (f"{COMMIT}\nraise SystemExit(3)", 3),
        (f"{COMMIT}\nclient.close()", 0),
        (f"from threading import Thread\nfor _ in range(4): Thread(target=lambda: {COMMIT}).start()", 0),
    ],
    ids=["falls off its end", "exits", "closes", "leaves calls in threads"],
)
def test_a_program_that_ends_leaves_quietly(program: str, code: int) -> None:
    with broker_in_a_thread() as broker:
        done = run(program, broker.address)

        assert (done.returncode, done.stderr) == (code, "")
        assert broker.table == {("billing", "orders", 0): (5, "", -1)}


def test_a_forked_process_is_told_to_make_its_own_and_ends() -> None:
    program = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
client.fetch("billing")
if os.fork() == 0:
    try:
        client.fetch("billing")
    except RuntimeError as error:
        print(error, flush=True)
    raise SystemExit(0)
print(os.wait()[1])
"""
    with broker_in_a_thread() as broker:
        done = run(program, broker.address)

        assert done.stdout == "this client was made by the process that forked this one: make a new one here\n0\n"
        assert done.returncode == 0, done.stderr


def test_a_fetch_waits_no_longer_than_it_is_told() -> None:
    with broker_in_a_thread() as broker, BlockingClient(broker.address, limits=QUICK) as client:
        broker.then(OFFSET_FETCH, Hold())

        with pytest.raises(Exception, match=r"within 0\.05 s"):
            client.fetch("billing", timeout_s=0.05)
