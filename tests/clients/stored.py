"""What the daemon holds of a group, read without a client library between."""

import asyncio
from typing import cast

from protocol.offset_fetch import OffsetFetchResponse
from tests.clients.process import Held, Place
from tests.fakes.daemon import Daemon
from tests.fakes.wire import connected, fetch_request


def stored(daemon: Daemon, group: str) -> dict[Place, Held]:
    """Return every offset of a group with its metadata."""
    return asyncio.run(_stored(daemon.port, group))


async def _stored(port: int, group: str) -> dict[Place, Held]:
    async with connected(port) as client:
        response = cast("OffsetFetchResponse", await client.call(fetch_request(group, None)))
    (found,) = response.groups
    assert found.error_code == 0, response
    return {
        (topic.name, row.partition_index): (row.committed_offset, row.metadata or "")
        for topic in found.topics
        for row in topic.partitions
    }
