"""Where the peers run: once for all scenarios; and the count of what was compared."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from offsetd.bench.kafka import bring
from offsetd.bench.server import ServerFailed
from tests.conformance.peers import LIBRARIES, Peers, started
from tests.conformance.tally import Tally

_POM: Final = Path(__file__).parents[2] / "deploy" / "peers" / "pom.xml"
_TALLY: Final = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    """Kafka and the daemons that are compared with it; no process outlives the run."""
    try:
        bring(_POM, LIBRARIES)
    except ServerFailed as error:
        pytest.skip(f"no Kafka to compare with: {error}")
    with started(LIBRARIES, tmp_path_factory.mktemp("conformance")) as running:
        yield running


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    """Count over all scenarios."""
    return pytestconfig.stash.setdefault(_TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how much was compared, if anything was to be."""
    tally = config.stash.get(_TALLY, None)
    if tally is not None:
        terminalreporter.write_line(str(tally))
