"""What tests of the load share."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from offsetd.bench.kafka import KafkaProcess
from tests.fakes.daemon import Daemon
from tests.pipeline.load.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def cluster(kafka: KafkaProcess, offsets_daemon: Daemon, spark: "SparkSession", tmp_path: Path) -> Cluster:
    """A Kafka, an offsetd and a Spark, with names that no other test uses."""
    return Cluster(kafka, offsets_daemon, spark, tmp_path / "table")
