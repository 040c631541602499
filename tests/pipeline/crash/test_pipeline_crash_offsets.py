"""offsetd dies while it is told of a load: the load stands, the run says so by its exit code, the next one commits."""

import pytest

from offsetd.pipeline.load.refusal import Exit
from tests.fakes.daemon import Daemon
from tests.pipeline.crash.loads import FAILPOINT_EXIT_CODE, Loads
from tests.pipeline.crash.windows import asked_for

pytestmark = pytest.mark.crash


def end_at(daemon: Daemon, place: str) -> None:
    """Start the daemon anew, to end at a place of its journal the next time that something is committed."""
    daemon.kill()
    # The first passage is the start's own: it writes down that a new epoch has begun.
    daemon.failpoints = f"{place}=exit@2"
    daemon.start()


def bring_back(daemon: Daemon) -> None:
    """Start the daemon after it has ended at its place."""
    assert daemon.wait() == FAILPOINT_EXIT_CODE
    daemon.failpoints = ""
    daemon.start()


@pytest.mark.parametrize(
    "place",
    ["before_write", pytest.param("after_write", marks=asked_for), pytest.param("after_settled", marks=asked_for)],
)
def test_a_daemon_killed_in_the_commit_leaves_the_load_published(place: str, loads: Loads) -> None:
    """Before the write the commit is lost, after it is settled only the answer is; no run can tell which."""
    loads.topic.produce(300, 0, 200)
    end_at(loads.daemon, place)

    run = loads.run(code=Exit.NOT_COMMITTED)

    assert "load 1 is published" in run.text()
    assert loads.table.numbers() == [1]
    assert loads.table.check_rows() == [300, 0, 200]
    bring_back(loads.daemon)
    loads.topic.produce(10, 20, 30)
    again = loads.finish()
    assert loads.table.numbers() == [1, 2]
    if place == "before_write":
        assert "committed load 1" in again.text()


@asked_for
def test_records_gone_by_retention_are_refused_with_how_many(loads: Loads) -> None:
    loads.topic.produce(100, 10, 50)
    loads.finish()
    loads.topic.produce(100, 0, 0)
    loads.topic.drop_before(0, 137)

    run = loads.run(code=Exit.GONE)

    assert "37 offsets in 1 partition are gone" in run.text()
    assert loads.table.numbers() == [1]
    assert loads.table.check_rows() == [100, 10, 50]
