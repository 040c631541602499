"""Any number of runs of one table, each ended in a random window over random data; every row is looked at each time.

`OFFSETD_PIPELINE_CRASH_CYCLES` is how many, `OFFSETD_PIPELINE_CRASH_SEED` a seed (a number, or `fresh`). The seed fixes
windows and data; the moment of a kill while Spark writes differs from run to run.
"""

import signal
from collections import Counter
from random import Random

import pytest

from tests.pipeline.crash.loads import FAILPOINT_EXIT_CODE, Loads
from tests.pipeline.crash.windows import AFTER_DELTA, AFTER_PUBLISHING, BEFORE_PUBLISHING, asked_for, cycles, seed

pytestmark = pytest.mark.crash

_KILLED = "killed while writing"
_OTHERS = ("load_repaired", _KILLED, "none")


@asked_for
@pytest.mark.parametrize(
    ("kind", "after"), [("loads", AFTER_PUBLISHING), ("delta_loads", AFTER_DELTA)], ids=["Parquet", "Delta"]
)
def test_random_ends_in_a_row_neither_lose_nor_repeat(
    kind: str, after: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    loads: Loads = request.getfixturevalue(kind)
    drawn = seed()
    print(f"seed {drawn}")
    random = Random(drawn)
    loads.topic.value_bytes = 200
    ends: Counter[str] = Counter()
    for _ in range(cycles()):
        loads.topic.produce(*(random.choice((0, random.randint(1, 5), random.randint(100, 3000))) for _ in range(3)))
        before = loads.table.numbers()
        wanted = random.choice((*BEFORE_PUBLISHING, *after, *_OTHERS))

        ends[_end(loads, wanted)] += 1

        published = len(loads.table.numbers()) - len(before)
        assert published <= (wanted not in BEFORE_PUBLISHING and wanted != _KILLED), f"{wanted} published {published}"
        held = loads.table.check_rows()
        assert all(found <= end for found, end in zip(held, loads.topic.ends, strict=True))
        if wanted == "none":
            loads.table.check_complete(loads.daemon.address, loads.group)
        if random.random() < 0.2:
            loads.daemon.restart()
    loads.finish()
    print(f"{dict(ends)}, {len(loads.table.numbers())} loads, {sum(loads.topic.ends)} records")


def _end(loads: Loads, wanted: str) -> str:
    """Run once, to be ended as wanted; return how it ended: without news, say, no window may be passed."""
    if wanted == _KILLED and sum(loads.topic.ends) > sum(loads.table.check_rows()):
        run = loads.start()
        run.wait_for_stage(loads.out)
        run.kill_all()
        assert run.wait() == -signal.SIGKILL
        return wanted
    run = loads.start("" if wanted in (_KILLED, "none") else f"{wanted}=exit")
    code = run.wait()
    assert code in (0, FAILPOINT_EXIT_CODE), run.text()
    return wanted if code else "ran through"
