"""Loads into plain Parquet with a real Kafka, offsetd and Spark: nothing lost, nothing twice."""

import pytest

from offsetd.client import Committed
from offsetd.pipeline.load.observer import Silent
from offsetd.pipeline.load.refusal import RecordsGone
from offsetd.pipeline.load.value import ValueFormat, Values
from tests.pipeline.load.cluster import Cluster

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


def test_a_load_then_news_then_nothing(cluster: Cluster) -> None:
    cluster.create(partitions=3)
    cluster.produce([b"v%d" % n for n in range(30)], partition=0)
    cluster.produce([b"w%d" % n for n in range(20)], partition=1)

    first = cluster.load()
    cluster.produce([b"x%d" % n for n in range(5)], partition=1)
    second = cluster.load()
    third = cluster.load()

    assert (first.total_rows, second.total_rows, third.total_rows) == (50, 5, 0)
    assert [item.key.partition for item in first.plan.idle] == [2]
    assert cluster.rows() == cluster.expected(p0=30, p1=25)
    assert cluster.committed() == {
        (cluster.topic, 0): Committed(30, "load:2"),
        (cluster.topic, 1): Committed(25, "load:2"),
        (cluster.topic, 2): Committed(0, "load:2"),
    }
    assert sorted(path.name for path in cluster.out.iterdir() if "=" in path.name) == ["load=000001", "load=000002"]
    assert list((cluster.out / "_staging").iterdir()) == []


class Retention(Silent):
    """Takes records away when a load has just begun to write."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def stage(self, name: str, total_records: int | None) -> None:
        if name == "write":
            self.cluster.delete_before(10)


def test_records_that_go_while_they_are_read_end_the_load_and_leave_no_hole(cluster: Cluster) -> None:
    cluster.create(partitions=1)
    cluster.produce([b"v"] * 30)

    with pytest.raises(RecordsGone, match="the log lost records while load 1 read them"):
        cluster.load(Retention(cluster))

    assert not list(cluster.out.glob("load=*"))
    assert cluster.committed() == {}


@pytest.mark.parametrize(
    ("values", "good", "bad"),
    [
        pytest.param(Values(format=ValueFormat.JSON, schema="id BIGINT"), b'{"id": 7}', b"{broken", id="json"),
        pytest.param(Values(format=ValueFormat.AVRO, schema=AVRO), b"\x0e", b"\xff", id="avro"),
    ],
)
def test_values_are_parsed_and_one_that_cannot_be_is_kept_as_it_came(
    cluster: Cluster, values: Values, good: bytes, bad: bytes
) -> None:
    cluster.create(partitions=1)
    cluster.produce([good, bad, None])

    summary = cluster.load(values=values)

    rows = cluster.spark.read.parquet(str(cluster.out)).orderBy("offset").select("value.id", "value_raw").collect()
    assert [tuple(row) for row in rows] == [(7, None), (None, bytearray(bad)), (None, None)]
    assert summary.unparsed == 1
