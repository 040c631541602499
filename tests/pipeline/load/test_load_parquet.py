"""Loads into plain Parquet with a real Kafka, offsetd and Spark: nothing lost, nothing twice."""

from offsetd.client import Committed
from tests.pipeline.load.cluster import Cluster


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
