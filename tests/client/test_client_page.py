"""The page about the client: every example runs as it stands, and prints what the page says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.program import run_program
from tests.fakes.daemon import Daemon, running

pytestmark = pytest.mark.integration

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
PAGE_ADDRESS = "127.0.0.1:9092"


def examples() -> list[tuple[str, str]]:
    """Return the programs of the page with what they print."""
    return re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon as `make run` starts it, but for the wait that a first join of a group has."""
    with running(tmp_path_factory.mktemp("daemon"), {"group.initial.rebalance.delay.ms": 0}) as found:
        yield found


@pytest.mark.parametrize(("program", "output"), examples(), ids=lambda text: text.partition("\n")[0])
def test_an_example_prints_what_the_page_says(daemon: Daemon, tmp_path: Path, program: str, output: str) -> None:
    done = run_program(program.replace(PAGE_ADDRESS, daemon.address), cwd=tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def test_no_program_of_the_page_is_left_out() -> None:
    assert len(examples()) == PAGE.read_text().count("```python") >= 7
