"""The edge is tested on the loop that the daemon runs on: uvloop's transports are not asyncio's."""

import asyncio
from collections.abc import Callable, Mapping

import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run every test of this folder on uvloop."""
    return {"uvloop": uvloop.new_event_loop}
