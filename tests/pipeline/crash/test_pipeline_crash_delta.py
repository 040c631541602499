"""A load into a Delta table ends without warning: before Delta's commit it has never been, after it it stands whole."""

import signal

import pytest

from tests.pipeline.crash.loads import Loads
from tests.pipeline.crash.windows import AFTER_DELTA, BEFORE_PUBLISHING, asked_for

pytestmark = pytest.mark.crash


@asked_for
@pytest.mark.parametrize("window", [*BEFORE_PUBLISHING, *AFTER_DELTA])
def test_an_end_around_the_commit_neither_loses_nor_repeats(window: str, delta_loads: Loads) -> None:
    """In a first load, which also makes the table, and in one that goes on behind others."""
    for before in (0, 1):
        delta_loads.topic.produce(200, 10 * before, 100)
        known = len(delta_loads.table.numbers())
        delta_loads.crash(window)
        assert len(delta_loads.table.numbers()) == known + (window in AFTER_DELTA)
        delta_loads.topic.produce(10, 20, 30)
        delta_loads.finish()


@asked_for
def test_driver_and_jvm_killed_while_spark_writes_commit_nothing(delta_loads: Loads) -> None:
    delta_loads.topic.value_bytes = 400
    delta_loads.topic.produce(20_000, 15_000, 10_000)
    run = delta_loads.start()
    run.wait_for_writing(delta_loads.out)

    run.kill_all()

    assert run.wait() == -signal.SIGKILL
    assert delta_loads.table.numbers() == []
    delta_loads.topic.produce(1, 2, 3)
    delta_loads.finish()
    assert delta_loads.table.numbers() == [1]
