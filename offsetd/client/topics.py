"""The topics that brokers know, and how many partitions each has."""

from collections.abc import Iterable

from offsetd.client.discovery import Discovery
from offsetd.client.topic_filter import BlackList, Topics, WhiteList
from offsetd.client.transient import Busy, is_transient
from protocol.errors import Code
from protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

ACTION = "asking for topics"


async def chosen_topics(discovery: Discovery, topics: Topics) -> frozenset[str]:
    """Return the names of the topics that are wanted now: those that were named, or those that a filter lets through.

    Raises:
        Transient: nobody could answer.
    """
    if not isinstance(topics, WhiteList | BlackList):
        return frozenset(topics)
    reply = await _ask(discovery, MetadataRequest(topics=None))
    known = (row.name for row in reply.topics if row.error_code == Code.NONE and not row.is_internal)
    return frozenset(name for name in known if name is not None and topics.allows(name))


async def partition_counts(discovery: Discovery, topics: Iterable[str]) -> dict[str, int]:
    """Return how many partitions each of some topics has; those that do not exist are left out.

    Brokers that make topics when they are asked for make these, as for every consumer that subscribes.

    Raises:
        Transient: nobody could answer.
    """
    names = tuple(MetadataRequestTopic(name=topic) for topic in sorted(topics))
    if not names:
        return {}
    reply = await _ask(discovery, MetadataRequest(topics=names, allow_auto_topic_creation=True))
    rows = (row for row in reply.topics if row.error_code == Code.NONE and row.name is not None)
    return {row.name: len(row.partitions) for row in rows if row.name is not None}


async def _ask(discovery: Discovery, request: MetadataRequest) -> MetadataResponse:
    reply, address = await discovery.ask_anybody(request, MetadataResponse)
    if is_transient(reply.error_code):
        raise Busy(address=address, code=reply.error_code)
    return reply
