"""What the log of a Delta table says of its newest load, after others have written to the table, or restored it."""

import json
from pathlib import Path
from typing import Any

import pytest

from offsetd.pipeline.load.delta_actions import mark
from offsetd.pipeline.load.delta_log import stands

LOAD_1: dict[str, Any] = {"operation": "WRITE", "userMetadata": mark(1)}
LOAD_2: dict[str, Any] = {"operation": "WRITE", "userMetadata": mark(2)}
OPTIMIZE: dict[str, Any] = {"operation": "OPTIMIZE"}


def restore(version: int | None) -> dict[str, Any]:
    return {"operation": "RESTORE", "operationParameters": {"version": version, "timestamp": None}}


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        pytest.param([{}, LOAD_1, LOAD_2], True, id="the load itself"),
        pytest.param([{}, LOAD_1, LOAD_2, OPTIMIZE, OPTIMIZE], True, id="others behind it"),
        pytest.param([{}, LOAD_1, LOAD_2, restore(1)], False, id="restored to before it"),
        pytest.param([{}, LOAD_1, LOAD_2, OPTIMIZE, restore(2)], True, id="restored to it"),
        pytest.param([{}, LOAD_1, LOAD_2, restore(1), OPTIMIZE, restore(4)], False, id="restored to what was restored"),
        pytest.param([{}, LOAD_1, LOAD_2, restore(1), restore(2)], True, id="restored back"),
        pytest.param([{}, LOAD_1, LOAD_2, restore(None)], False, id="restored by time, to nobody knows what"),
        pytest.param([None, None, None, OPTIMIZE], True, id="forgotten"),
        pytest.param([None, None, None, OPTIMIZE, restore(2)], False, id="restored to something forgotten"),
    ],
)
def test_a_table_stands_behind_its_newest_load_or_was_restored(
    commits: list[dict[str, Any] | None], expected: bool, tmp_path: Path
) -> None:
    for version, info in enumerate(commits):
        if info is not None:
            lines = [{"commitInfo": info}, {"txn": {"appId": "another", "version": 1}}]
            (tmp_path / f"{version:020}.json").write_text("\n".join(map(json.dumps, lines)))

    assert stands(tmp_path, len(commits) - 1, 2) is expected
