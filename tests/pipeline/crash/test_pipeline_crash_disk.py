"""The disk is full while a load is staged: nothing is published, and with room again everything is loaded."""

from pathlib import Path

import pytest

from offsetd.pipeline.load.refusal import Exit
from tests.daemon.volume import fill, volume
from tests.pipeline.crash.loads import Loads
from tests.pipeline.crash.windows import asked_for

pytestmark = pytest.mark.crash

MIB = 1 << 20


@asked_for
def test_a_full_disk_publishes_nothing_and_loses_nothing(loads: Loads, tmp_path: Path) -> None:
    loads.topic.value_bytes = 1000
    loads.topic.produce(100, 50, 0)
    with volume(tmp_path / "volume", 16 * MIB) as path:
        loads.out = path / "table"
        loads.finish()
        loads.topic.produce(3000, 2000, 100)
        filler = fill(path)
        with filler.open("r+b") as file:
            file.truncate(filler.stat().st_size - MIB)

        run = loads.run(code=Exit.FAILED)

        assert "No space left on device" in run.text()
        assert loads.table.numbers() == [1]
        assert loads.table.check_rows() == [100, 50, 0]
        filler.unlink()
        loads.finish()
        assert loads.table.numbers() == [1, 2]
