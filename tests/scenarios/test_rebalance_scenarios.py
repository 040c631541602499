"""Every scenario file tells the truth. `OFFSETD_REWRITE_SCENARIOS=1` writes down what happens; then read the diff."""

import os
from pathlib import Path

import pytest

from tests.scenarios.rebalance import replay

FILES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_happens_as_written(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    happened = replay(written)
    if os.environ.get("OFFSETD_REWRITE_SCENARIOS"):
        path.write_text(happened, encoding="utf-8")

    assert happened == written


def test_a_wrong_scenario_is_noticed() -> None:
    written = FILES[0].read_text(encoding="utf-8")

    assert replay(written.replace("generation=1", "generation=7")) != written.replace("generation=1", "generation=7")
