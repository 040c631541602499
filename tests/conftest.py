"""What every test finds and leaves behind."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """Let no test that sets logging up decide what the next one can see."""
    yield
    structlog.reset_defaults()
