"""Fetch of an empty log, and Produce, which offsetd refuses."""

from collections.abc import Callable
from struct import pack
from typing import Final

from crc32c import crc32c

from protocol.api import FETCH, PRODUCE
from protocol.fetch import FetchRequest, FetchRequestTopic
from protocol.produce import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic
from tests.conformance.requests import records, since
from tests.conformance.scenario import EMPTY, WRITTEN, Scenario, Step, id_of

UNKNOWN_ID: Final = bytes(range(16))
#: From here on Produce names topics by their ids.
PRODUCE_BY_ID: Final = 13


def _batch() -> bytes:
    """Return a batch of one record without key and headers, as Kafka has written them since 0.11."""
    record = bytes([0, 0, 0, 1, 2]) + b"x" + bytes([0])
    record = bytes([2 * len(record)]) + record
    attributes, last, first_ms, last_ms, producer, epoch, sequence, count = 0, 0, 1, 1, -1, -1, -1, 1
    rest = pack(">hiqqqhii", attributes, last, first_ms, last_ms, producer, epoch, sequence, count) + record
    leader_epoch, magic = -1, 2
    return pack(">qiibI", 0, 9 + len(rest), leader_epoch, magic, crc32c(rest)) + rest


def _produce(topic: str, *, acks: int) -> Callable[[int], ProduceRequest]:
    def ask(version: int) -> ProduceRequest:
        rows = (ProduceRequestPartition(index=0, records=_batch()),)
        named = (
            ProduceRequestTopic(name=topic, partition_data=rows)
            if version < PRODUCE_BY_ID
            else ProduceRequestTopic(topic_id=id_of(topic), partition_data=rows)
        )
        return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=(named,))

    return ask


SCENARIOS: Final = (
    Scenario(
        "fetch records: an empty log",
        FETCH,
        (
            Step("from its start", records(EMPTY, since(0, 0))),
            Step("of several partitions", records(EMPTY, since(3, 0), since(1, 0))),
            Step("of committed transactions", records(EMPTY, since(0, 0), isolation=1)),
            Step("unknown partition, committed", records(EMPTY, since(4, 0), isolation=1)),
            Step("no topics", FetchRequest()),
            Step("no partitions", records(EMPTY)),
            Step("unknown partition", records(EMPTY, since(4, 0))),
            Step("beyond its end", records(EMPTY, since(0, 5))),
            Step("before its start", records(EMPTY, since(0, -1))),
            Step("before its start, committed", records(EMPTY, since(0, -1), isolation=1)),
        ),
    ),
    Scenario(
        "fetch records: unknown topics",
        FETCH,
        (
            Step(
                "by name",
                FetchRequest(topics=(FetchRequestTopic(topic="@nowhere", partitions=(since(0, 0),)),)),
                "0-12",
            ),
            Step(
                "by id",
                FetchRequest(topics=(FetchRequestTopic(topic_id=UNKNOWN_ID, partitions=(since(0, 0),)),)),
                "13+",
            ),
            Step(
                "illegal name",
                FetchRequest(topics=(FetchRequestTopic(topic="a b", partitions=(since(0, 0),)),)),
                "0-12",
            ),
        ),
    ),
    Scenario(
        "fetch records: leader epochs",
        FETCH,
        (
            Step("0", records(EMPTY, since(0, 0, epoch=0))),
            Step("ahead", records(EMPTY, since(0, 0, epoch=5))),
        ),
        versions="9+",
    ),
    Scenario(
        "fetch records: sessions",
        FETCH,
        (
            Step("a new one", records(EMPTY, since(0, 0), session_epoch=0)),
            Step("an unknown one", records(EMPTY, since(0, 0), session=77, session_epoch=3)),
            Step("a last request", records(EMPTY, since(0, 0), session=77, session_epoch=-1)),
        ),
        versions="7+",
    ),
    Scenario(
        "produce",
        PRODUCE,
        (
            Step("acknowledged by the leader", _produce(WRITTEN, acks=1)),
            Step("acknowledged by all", _produce(WRITTEN, acks=-1)),
            Step("acknowledged by two", _produce(WRITTEN, acks=2)),
            Step("nothing", ProduceRequest(acks=1)),
            Step("not acknowledged", _produce(WRITTEN, acks=0), answered=False),
        ),
    ),
)
