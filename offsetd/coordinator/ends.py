"""Where logs begin and end, as far as offsets can tell: ListOffsets, and empty answers to Fetch and Produce. Pure."""

from collections import Counter

from offsetd.coordinator.topics import Topics
from protocol.errors import Code
from protocol.fetch import FetchRequest, FetchResponse, FetchResponsePartition, FetchResponseTopic
from protocol.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsResponse,
    ListOffsetsResponsePartition,
    ListOffsetsResponseTopic,
)
from protocol.produce import ProduceRequest, ProduceResponse, ProduceResponsePartition, ProduceResponseTopic

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
#: The first version of ListOffsets that knows each special timestamp.
_KNOWN_SINCE = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING: 11}
_ISOLATION_LEVELS = (0, 1)
_LEADER_EPOCH = 0


def answer_list_offsets(request: ListOffsetsRequest, *, version: int, topics: Topics) -> ListOffsetsResponse:
    """Earliest is 0; latest is the highest live commit of any group, or what an operator stated."""
    times = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    answered: set[tuple[str, int]] = set()
    results = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            place = (topic.name, partition.partition_index)
            if times[place] > 1:
                if place not in answered:
                    partitions.append(_refused(partition, Code.INVALID_REQUEST))
                answered.add(place)
            elif request.isolation_level not in _ISOLATION_LEVELS:
                partitions.append(_refused(partition, Code.UNKNOWN_SERVER_ERROR))
            else:
                partitions.append(_list(topic.name, partition, version, topics))
        results.append(ListOffsetsResponseTopic(name=topic.name, partitions=tuple(partitions)))
    return ListOffsetsResponse(topics=tuple(results))


def _list(
    name: str, partition: ListOffsetsRequestPartition, version: int, topics: Topics
) -> ListOffsetsResponsePartition:
    index = partition.partition_index
    if not topics.has(name, index):
        return _refused(partition, Code.UNKNOWN_TOPIC_OR_PARTITION)
    moment = partition.timestamp
    if moment < _EARLIEST and version < _KNOWN_SINCE.get(moment, version + 1):
        return _refused(partition, Code.UNSUPPORTED_VERSION)
    if partition.current_leader_epoch > _LEADER_EPOCH:
        return _refused(partition, Code.UNKNOWN_LEADER_EPOCH)
    if moment == _LATEST:
        offset, epoch = topics.latest(name, index), _LEADER_EPOCH
    elif moment in {_EARLIEST, _EARLIEST_LOCAL}:
        offset, epoch = 0, _LEADER_EPOCH
    else:
        # A time can be looked up only in messages, and there are none: "nothing at or after it", as in an empty log.
        offset, epoch = -1, -1
    if version == 0:
        return ListOffsetsResponsePartition(partition_index=index, old_style_offsets=(offset,) if offset >= 0 else ())
    return ListOffsetsResponsePartition(partition_index=index, timestamp=-1, offset=offset, leader_epoch=epoch)


def _refused(partition: ListOffsetsRequestPartition, code: Code) -> ListOffsetsResponsePartition:
    return ListOffsetsResponsePartition(partition_index=partition.partition_index, error_code=code)


def answer_fetch_records(request: FetchRequest, *, version: int, topics: Topics) -> FetchResponse:
    """Answer with no records: offsetd holds none, and a client that polls must be answered all the same."""
    results = []
    for topic in request.topics:
        name = topic.topic if version < 13 else topics.name_of(topic.topic_id)
        partitions = []
        for partition in topic.partitions:
            if name is None:
                code, end = Code.UNKNOWN_TOPIC_ID, -1
            elif topics.has(name, partition.partition):
                code, end = Code.NONE, max(topics.latest(name, partition.partition), partition.fetch_offset)
            else:
                code, end = Code.UNKNOWN_TOPIC_OR_PARTITION, -1
            partitions.append(
                FetchResponsePartition(
                    partition_index=partition.partition,
                    error_code=code,
                    high_watermark=end,
                    last_stable_offset=end,
                    log_start_offset=0 if end >= 0 else -1,
                    aborted_transactions=None,
                    records=b"",
                )
            )
        results.append(FetchResponseTopic(topic=name or "", topic_id=topic.topic_id, partitions=tuple(partitions)))
    return FetchResponse(responses=tuple(results))


def refuse_produce(request: ProduceRequest, *, version: int) -> ProduceResponse:
    """Refuse messages, finally and in words: offsetd keeps positions only."""
    return ProduceResponse(
        responses=tuple(
            ProduceResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    ProduceResponsePartition(
                        index=partition.index,
                        error_code=Code.POLICY_VIOLATION if version >= 2 else Code.UNKNOWN_SERVER_ERROR,
                        base_offset=-1,
                        error_message="offsetd holds committed offsets and no messages: produce to your Kafka cluster",
                    )
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )
