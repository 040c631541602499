"""Two loaders of one table at the same time: one publishes, the other stops and says why."""

import fcntl

import pytest

from offsetd.pipeline.load.refusal import Exit
from tests.pipeline.crash.loads import Loads
from tests.pipeline.crash.processes import wait_until, waits_for_a_lock

pytestmark = pytest.mark.crash


def test_of_two_loaders_exactly_one_publishes(loads: Loads) -> None:
    """Both have written everything and stand before the rename when they are let go."""
    loads.topic.produce(300, 0, 200)
    loads.out.mkdir()
    with (loads.out / "_lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rivals = [loads.start(), loads.start()]
        for rival in rivals:
            wait_until(
                lambda rival=rival: rival.ended or waits_for_a_lock(rival.pid),  # type: ignore[misc]
                "a loader that wants to publish",
                rival.text,
            )
        assert not any(rival.ended for rival in rivals), rivals[0].text() + rivals[1].text()
        assert loads.table.numbers() == []

    ends = sorted(rival.wait() for rival in rivals)

    assert ends == [Exit.DONE, Exit.FENCED], rivals[0].text() + rivals[1].text()
    assert any("another loader was first" in rival.text() for rival in rivals)
    assert loads.table.numbers() == [1]
    loads.table.check_complete(loads.daemon.address, loads.group)
    loads.topic.produce(10, 20, 30)
    loads.finish()
    assert loads.table.numbers() == [1, 2]
