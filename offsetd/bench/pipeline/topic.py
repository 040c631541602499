"""A topic to load: so many messages over so many partitions, with values that do not compress to nothing."""

import random
from typing import Final

PARTITIONS: Final = 8
VALUE_BYTES: Final = 200
_NAME: Final = "bench-load"


def produce(port: int, records: int) -> str:
    """Fill a topic on a Kafka on this machine, evenly, and return its name."""
    # Not a dependency of offsetd: the bench runs from a checkout.
    from confluent_kafka import Producer  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    bootstrap = f"127.0.0.1:{port}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(_NAME, num_partitions=PARTITIONS, replication_factor=1)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "acks": "1", "compression.type": "none"})
    dice = random.Random(1)  # noqa: S311  # values, not secrets
    # A thousand different values are enough for a page of Parquet, and quick to make.
    values = [dice.randbytes(VALUE_BYTES // 2).hex().encode() for _ in range(1000)]
    for number in range(records):
        while True:
            try:
                producer.produce(_NAME, values[number % 1000], key=b"%d" % number, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    left = producer.flush(120)
    assert left == 0, f"{left} messages were not taken within two minutes"
    return _NAME
