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
_READ_COMMITTED = 1
_ISOLATION_LEVELS = (0, _READ_COMMITTED)
#: Refusals for want of a log, which Kafka words differently from those of a log.
_NO_LOG = (Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID)
_LEADER_EPOCH = 0
#: A client that does not know the leader's epoch.
_NO_EPOCH = -1


def topics_ended(request: ListOffsetsRequest) -> list[str]:
    """Return the topics whose ends the answer needs."""
    return [topic.name for topic in request.topics if any(one.timestamp == _LATEST for one in topic.partitions)]


def answer_list_offsets(request: ListOffsetsRequest, *, version: int, topics: Topics) -> ListOffsetsResponse:
    """Earliest is 0; latest is the highest live commit of any group, or what an operator stated."""
    if request.isolation_level not in _ISOLATION_LEVELS:
        return _refuse_list(request, Code.UNKNOWN_SERVER_ERROR)
    times = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    # Each partition once, and each topic once with all its partitions: as in Kafka, however they were asked for.
    results: dict[str, dict[int, ListOffsetsResponsePartition]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            index = partition.partition_index
            results.setdefault(topic.name, {})[index] = (
                _refused(partition, Code.INVALID_REQUEST)
                if times[topic.name, index] > 1
                else _list(topic.name, partition, version, topics)
            )
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsResponseTopic(name=name, partitions=tuple(partitions.values()))
            for name, partitions in results.items()
        )
    )


def _list(
    name: str, partition: ListOffsetsRequestPartition, version: int, topics: Topics
) -> ListOffsetsResponsePartition:
    index = partition.partition_index
    moment = partition.timestamp
    if moment < _EARLIEST and version < _KNOWN_SINCE.get(moment, version + 1):
        return _refused(partition, Code.UNSUPPORTED_VERSION)
    if not topics.are_whole() and (moment == _LATEST or not topics.has(name, index)):
        # What a group that is still being loaded has committed may lie beyond, and clients believe what we say: tools
        # clip resets to it, and Sarama starts over. So we say what a leader says that does not know its end yet.
        return _refused(partition, Code.OFFSET_NOT_AVAILABLE if version >= 5 else Code.LEADER_NOT_AVAILABLE)
    if not topics.has(name, index):
        return _refused(partition, Code.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.current_leader_epoch > _LEADER_EPOCH:
        return _refused(partition, Code.UNKNOWN_LEADER_EPOCH)
    if partition.current_leader_epoch < _NO_EPOCH:
        return _refused(partition, Code.FENCED_LEADER_EPOCH)
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


def _refuse_list(request: ListOffsetsRequest, code: Code) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsResponseTopic(
                name=topic.name, partitions=tuple(_refused(partition, code) for partition in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _refused(partition: ListOffsetsRequestPartition, code: Code) -> ListOffsetsResponsePartition:
    return ListOffsetsResponsePartition(partition_index=partition.partition_index, error_code=code)


def topics_polled(request: FetchRequest, *, version: int, topics: Topics) -> list[str]:
    """Return the topics whose ends the answer needs."""
    names = [topic.topic if version < 13 else topics.name_of(topic.topic_id) for topic in request.topics]
    return [name for name in names if name is not None]


def answer_fetch_records(request: FetchRequest, *, version: int, topics: Topics) -> FetchResponse:
    """Answer with no records: offsetd holds none, and a client that polls must be answered all the same."""
    committed = request.isolation_level == _READ_COMMITTED
    results = []
    for topic in request.topics:
        if not topic.partitions:
            continue
        name = topic.topic if version < 13 else topics.name_of(topic.topic_id)
        partitions = []
        for partition in topic.partitions:
            if name is None:
                code, end = Code.UNKNOWN_TOPIC_ID, -1
            elif not topics.has(name, partition.partition):
                code, end = Code.UNKNOWN_TOPIC_OR_PARTITION, -1
            elif partition.fetch_offset < 0:
                code, end = Code.OFFSET_OUT_OF_RANGE, -1
            else:
                code, end = Code.NONE, max(topics.latest(name, partition.partition), partition.fetch_offset)
            partitions.append(
                FetchResponsePartition(
                    partition_index=partition.partition,
                    error_code=code,
                    high_watermark=end,
                    last_stable_offset=end,
                    log_start_offset=0 if end >= 0 else -1,
                    # As in Kafka: null where a log was looked at, unless the client reads committed records only.
                    aborted_transactions=() if code in _NO_LOG or (committed and code is Code.NONE) else None,
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
