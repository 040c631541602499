"""The README's first commit, run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.stored import stored
from tests.fakes.daemon import WAIT_SECONDS, running

pytestmark = pytest.mark.integration

README = Path(__file__).parents[2] / "README.md"
README_ADDRESS = "127.0.0.1:9092"


def test_the_readmes_first_commit_is_there_after_a_kill(tmp_path: Path) -> None:
    block = re.search(r"^## A first commit$.*?^```sh\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    assert block is not None
    assert README_ADDRESS in block[1]
    # The snippet speaks of .venv: here it is the environment that runs the tests, wherever that is.
    (tmp_path / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    with running(tmp_path / "daemon") as daemon:
        done = subprocess.run(
            ["bash", "-c", block[1].replace(README_ADDRESS, daemon.address)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        daemon.restart()

        assert (done.returncode, done.stdout) == (0, "committed: 42\n"), done.stderr
        assert stored(daemon, "billing") == {("orders", 0): (42, "first commit")}
