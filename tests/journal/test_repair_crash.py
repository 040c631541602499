"""A repair as a real process: killed at every named place and run again, it ends where an undisturbed one does."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from offsetd.failpoint import EXIT_CODE
from offsetd.journal.plan import make_plan
from offsetd.journal.repair import repair
from offsetd.journal.segment import segment_name
from tests.directories import DataDirectory, flip_byte, position_of

KEY = ("billing", "orders", 0)


def _segment(data: DataDirectory, first_number: int) -> Path:
    return data.broker.journal / segment_name(first_number)


def _all_lost(data: DataDirectory) -> None:
    """Lose the checkpoint, and damage a segment that has two more behind it."""
    data.compact(1)
    (data.broker.checkpoint / "CURRENT").unlink()
    flip_byte(_segment(data, 4), position_of(_segment(data, 4), 5) + 60)


def _half_folded(data: DataDirectory) -> None:
    """Damage the folded half of a segment whose other half is needed."""
    data.fold(5)
    flip_byte(_segment(data, 4), position_of(_segment(data, 4), 4) + 60)


def _journal_gone(data: DataDirectory) -> None:
    """Lose every segment, so that the journal must begin anew after the checkpoint."""
    data.compact(2)
    for path in data.broker.journal.glob("*.segment"):
        path.unlink()


def _older_checkpoint(data: DataDirectory) -> None:
    """Bring back an old copy of the checkpoint."""
    shutil.copytree(data.broker.checkpoint, data.path / "copy")
    data.compact(2)
    shutil.rmtree(data.broker.checkpoint)
    (data.path / "copy").rename(data.broker.checkpoint)


CRASHES: list[tuple[Callable[[DataDirectory], None], int, tuple[str, ...]]] = [
    (
        _all_lost,
        4,
        (
            "fold_before_write",
            "rebuild_before_swap",
            "rebuild_within_swap",
            "rebuild_after_swap",
            "repair_after_move@1",
            "repair_after_move@2",
            "recovery_before_truncate",
            "recovery_after_truncate",
            "repair_before_marker",
            "repair_after_marker",
        ),
    ),
    (_half_folded, 12, ("repair_before_segment", "repair_after_segment", "recovery_before_truncate")),
    (_journal_gone, 6, ("repair_before_segment", "repair_after_segment", "repair_before_marker")),
    (_older_checkpoint, 12, ("fold_before_write", "fold_after_write")),
]


@pytest.mark.parametrize(
    ("harm", "kept", "failpoint"),
    [(harm, kept, failpoint) for harm, kept, failpoints in CRASHES for failpoint in failpoints],
)
def test_a_repair_that_was_killed_is_finished_by_the_next_one(
    tmp_path: Path, harm: Callable[[DataDirectory], None], kept: int, failpoint: str
) -> None:
    data = DataDirectory(tmp_path / "data")
    for _ in range(4):
        data.write(3)
    data.mark()
    harm(data)
    before = data.content()
    name, _, hit = failpoint.partition("@")

    killed = subprocess.run(
        [sys.executable, "-m", "offsetd", "journal", "repair", "--execute", "--data", str(data.path)],
        env={**os.environ, "OFFSETD_FAILPOINTS": f"{name}=exit" + (f"@{hit}" if hit else "")},
        capture_output=True,
        check=False,
        timeout=60,
    )
    list(repair(data.broker, data.identity))

    assert killed.returncode == EXIT_CODE, killed.stderr
    assert not make_plan(data.broker, data.identity).needed
    assert data.start() == {KEY: kept}
    after = list(data.content().values())
    for path, content in before.items():
        if path.endswith(".segment"):
            heads = [head for head in after if content.startswith(head)]
            assert any(content[len(head) :] in (*after, b"") for head in heads), f"bytes of {path} are gone"
