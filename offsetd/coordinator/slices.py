"""Long answers, made in slices: pure generators that yield when it is time for others, and return the whole frame."""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice

from offsetd.coordinator.fetch import Lookup, each_topic, groups_asked, rows_of
from offsetd.coordinator.latest import Latest
from offsetd.coordinator.overview import GroupView, described_by, listed_by
from offsetd.group import Group
from protocol.api import DESCRIBE_GROUPS, LIST_GROUPS, METADATA, OFFSET_FETCH, encode_response
from protocol.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse, DescribeGroupsResponseGroup
from protocol.errors import Code
from protocol.list_groups import ListGroupsRequest, ListGroupsResponse, ListGroupsResponseGroup
from protocol.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from protocol.splice import Rows, around_last_array, fill, row_encoder, splice, splice_last, write_count

#: Rows between two turns of the loop: about two milliseconds.
SLICE_ROWS = 1000

Slices = Generator[None, None, bytes]

# Markers: rows that no answer has.
_NO_TOPIC = OffsetFetchResponseTopic(
    name="", partitions=(OffsetFetchResponsePartition(partition_index=-1, committed_offset=-1, error_code=-1),)
)
_NO_GROUP = OffsetFetchResponseGroup(group_id="", topics=(_NO_TOPIC,), error_code=-1)
_NO_DESCRIPTION = MetadataResponseTopic(
    name="",
    topic_id=b"\xff" * 16,
    partitions=(MetadataResponsePartition(partition_index=-1, leader_id=-1, leader_epoch=-1),),
)


class _Budget:
    """What may still be done in this slice, and how long the whole answer may still become."""

    def __init__(self, bytes_max: int) -> None:
        self._rows_left = SLICE_ROWS
        self.bytes_left = bytes_max

    def spend(self, rows: int, size: int) -> bool:
        """Count work; tell whether it is time for others."""
        self.bytes_left -= size
        self._rows_left -= rows
        if self._rows_left > 0:
            return False
        self._rows_left = SLICE_ROWS
        return True


def fetch_in_slices(
    request: OffsetFetchRequest, *, version: int, correlation_id: int, lookup: Lookup, bytes_max: int
) -> Generator[None, None, bytes | None]:
    """Answer a fetch of very many rows; None if that takes too many bytes."""
    budget = _Budget(bytes_max)
    groups: list[bytes] = []
    for group_id, asked in groups_asked(request, version=version):
        code, group = lookup(group_id)
        topics = yield from _topics(_at_once(group, asked, code), version, budget)
        if topics is None:
            return None
        if version < 8:
            whole = OffsetFetchResponse(topics=(_NO_TOPIC,), error_code=code)
            return splice(OFFSET_FETCH, version, correlation_id, whole, _NO_TOPIC, topics)
        one = OffsetFetchResponseGroup(group_id=group_id, topics=(_NO_TOPIC,), error_code=code)
        encoded = row_encoder(OFFSET_FETCH, version, OffsetFetchResponseGroup)(one)
        groups.append(b"".join(fill(OFFSET_FETCH, version, encoded, _NO_TOPIC, topics)))
        # The slot of a long name takes its time to find.
        if budget.spend(1 + len(group_id) // 16, len(group_id)):
            yield
    if budget.bytes_left < 0:
        return None
    many = OffsetFetchResponse(groups=(_NO_GROUP,))
    return splice(OFFSET_FETCH, version, correlation_id, many, _NO_GROUP, Rows(len(groups), groups))


def _at_once(
    group: Group | None, asked: tuple[OffsetFetchRequestTopic, ...] | None, code: Code
) -> Iterable[tuple[str, Iterator[OffsetFetchResponsePartition]]]:
    """Return a group's rows as of this moment: all partitions of a commit are shown, or none, however long it takes."""
    if group is not None and rows_of(group, asked) > SLICE_ROWS:
        return each_topic(group.copy(), asked, code)
    return [(name, iter(tuple(rows))) for name, rows in each_topic(group, asked, code)]


def _topics(
    topics: Iterable[tuple[str, Iterator[OffsetFetchResponsePartition]]], version: int, budget: _Budget
) -> Generator[None, None, Rows | None]:
    encode = row_encoder(OFFSET_FETCH, version, OffsetFetchResponsePartition)
    pieces: list[bytes] = []
    count = 0
    for name, rows in topics:
        count += 1
        head, tail = around_last_array(OFFSET_FETCH, version, OffsetFetchResponseTopic(name=name))
        partitions = 0
        parts: list[bytes] = []
        while some := list(islice(rows, SLICE_ROWS)):
            parts.append(b"".join(map(encode, some)))
            partitions += len(some)
            if budget.spend(len(some), len(parts[-1])):
                yield
            if budget.bytes_left < 0:
                return None
        pieces += (head, write_count(OFFSET_FETCH, version, partitions), *parts, tail)
        if budget.spend(1, len(head)):
            yield
    return Rows(count, pieces) if budget.bytes_left >= 0 else None


def metadata_in_slices(
    response: MetadataResponse,
    topics: Iterable[MetadataResponseTopic],
    *,
    version: int,
    correlation_id: int,
    bytes_max: int,
) -> Generator[None, None, bytes | None]:
    """Write a description of many topics (the response has all but these); None if that takes too many bytes."""
    encode = row_encoder(METADATA, version, MetadataResponseTopic)
    budget = _Budget(bytes_max)
    pieces: list[bytes] = []
    for topic in topics:
        pieces.append(encode(topic))
        if budget.spend(1 + len(topic.partitions), len(pieces[-1])):
            yield
        if budget.bytes_left < 0:
            return None
    around = response._replace(topics=(_NO_DESCRIPTION,))
    return splice(METADATA, version, correlation_id, around, _NO_DESCRIPTION, Rows(len(pieces), pieces))


def groups_in_slices(
    request: ListGroupsRequest,
    group_ids: Iterable[str],
    view: Callable[[str], GroupView | None],
    *,
    version: int,
    correlation_id: int,
    bytes_max: int,
) -> Slices:
    """List groups, each as it is when its turn comes; an error if that takes too many bytes."""
    encode = row_encoder(LIST_GROUPS, version, ListGroupsResponseGroup)
    listed = listed_by(request)
    budget = _Budget(bytes_max)
    pieces: list[bytes] = []
    for group_id in group_ids:
        found = view(group_id)
        row = None if found is None else listed(group_id, found)
        if row is not None:
            pieces.append(encode(row))
        if budget.spend(1 + len(group_id) // 16, 0 if row is None else len(pieces[-1])):
            yield
        if budget.bytes_left < 0:
            refusal = ListGroupsResponse(error_code=Code.UNKNOWN_SERVER_ERROR)
            return encode_response(LIST_GROUPS, version, correlation_id, refusal)
    return splice_last(LIST_GROUPS, version, correlation_id, ListGroupsResponse(), Rows(len(pieces), pieces))


def descriptions_in_slices(
    request: DescribeGroupsRequest,
    lookup: Callable[[str], tuple[Code, GroupView | None]],
    *,
    version: int,
    correlation_id: int,
    bytes_max: int,
) -> Generator[None, None, bytes | None]:
    """Describe groups, each as often as it was asked for; None if that takes too many bytes."""
    encode = row_encoder(DESCRIBE_GROUPS, version, DescribeGroupsResponseGroup)
    described = described_by(request, version=version)
    budget = _Budget(bytes_max)
    pieces: list[bytes] = []
    for group_id in request.groups:
        row = described(group_id, *lookup(group_id))
        pieces.append(encode(row))
        if budget.spend(1 + len(row.members) + len(group_id) // 16, len(pieces[-1])):
            yield
        if budget.bytes_left < 0:
            return None
    return splice_last(DESCRIBE_GROUPS, version, correlation_id, DescribeGroupsResponse(), Rows(len(pieces), pieces))


def ends_in_slices(ends: Latest, names: Iterable[str], answer: Callable[[], bytes]) -> Slices:
    """Find out where topics end, then answer."""
    for name in names:
        yield from ends.catch_up(name)
    return answer()
