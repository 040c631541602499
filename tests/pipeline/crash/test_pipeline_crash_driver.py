"""The driver of a load ends without warning in every window between the plan and the commit: nothing lost or twice."""

import signal

import pytest

from tests.pipeline.crash.loads import Loads
from tests.pipeline.crash.windows import AFTER_PUBLISHING, BEFORE_PUBLISHING, asked_for

pytestmark = pytest.mark.crash


def test_an_end_before_the_rename_leaves_nothing_and_one_after_it_a_whole_load(loads: Loads) -> None:
    """The first of three runs has written all and is as if it had never been; the third commits for the second."""
    loads.topic.produce(300, 0, 200)

    loads.crash("load_written")

    assert loads.table.numbers() == []
    assert loads.table.staged(), "what was written is not there: the window is another one"
    loads.topic.produce(10, 20, 30)

    loads.crash("load_renamed")

    assert loads.table.numbers() == [1]
    assert loads.table.check_rows() == [310, 20, 230]
    loads.topic.produce(1, 2, 3)
    assert "committed load 1" in loads.finish().text()
    assert loads.table.numbers() == [1, 2]


@asked_for
@pytest.mark.parametrize("window", [*BEFORE_PUBLISHING, *AFTER_PUBLISHING])
def test_an_end_in_a_window_neither_loses_nor_repeats(window: str, loads: Loads) -> None:
    """In a first load, and in one that goes on behind others."""
    for before in (0, 1):
        loads.topic.produce(200, 10 * before, 100)
        known = len(loads.table.numbers())
        loads.crash(window)
        assert len(loads.table.numbers()) == known + (window in AFTER_PUBLISHING)
        loads.topic.produce(10, 20, 30)
        loads.finish()


@asked_for
def test_an_end_after_the_repair_leaves_nothing_to_repair(loads: Loads) -> None:
    loads.topic.produce(200, 0, 100)
    loads.crash("load_published")

    loads.crash("load_repaired")

    assert loads.table.numbers() == [1]
    loads.table.check_complete(loads.daemon.address, loads.group)
    loads.topic.produce(1, 2, 3)
    assert "committed load" not in loads.finish().text()


@asked_for
@pytest.mark.parametrize("whole", [True, False], ids=["driver and JVM", "driver alone"])
def test_a_kill_while_spark_writes_publishes_nothing(whole: bool, loads: Loads) -> None:
    """A JVM that outlives its driver may go on writing to its own staging directory, and can publish nothing."""
    loads.topic.value_bytes = 400
    loads.topic.produce(20_000, 15_000, 10_000)
    run = loads.start()
    run.wait_for_writing(loads.out)

    if whole:
        run.kill_all()
        assert loads.table.staged(), "nothing was being written"
    else:
        run.kill_driver()

    assert run.wait() == -signal.SIGKILL
    assert loads.table.numbers() == []
    loads.topic.produce(1, 2, 3)
    loads.finish()
    assert loads.table.numbers() == [1]
