"""History through Spark: each record once wherever it lies, streams that go on where they stopped, the live state."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from offsetd.client import BlockingClient, Committed
from offsetd.pipeline.history import records, register
from offsetd.pipeline.history.options import HistoryOptions
from offsetd.pipeline.history.refusal import BatchesGone, HistoryRefused
from offsetd.pipeline.history.stream import StreamReader
from tests.fakes.daemon import running
from tests.pipeline.history.moving import COLUMNS, KEY, History, Row, keys, ordered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# pyspark leaves the socket that brings rows to the driver to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]

_DAY_MS = 86_400_000


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "data")


def rows(frame: "DataFrame") -> list[Row]:
    """Return what tells the records apart, in one order."""
    return ordered([tuple(row) for row in frame.select(*KEY).collect()])


def plan(frame: "DataFrame") -> str:
    return str(frame._jdf.queryExecution().toString())


def test_records_are_what_there_was_at_that_moment_wherever_they_go(spark: "SparkSession", history: History) -> None:
    history.write(4, time_ms=_DAY_MS)
    history.write(3, time_ms=2 * _DAY_MS)
    history.release(2)
    history.seal()
    history.write(5)
    history.release(1)
    history.write(2)
    frame = records(spark, history.path)
    expected = ordered(history.rows)
    assert rows(frame) == expected

    history.release(2)
    history.seal()
    history.write(1)
    assert rows(frame) == expected
    assert frame.columns == list(COLUMNS)
    assert frame.where("batch between 5 and 9").selectExpr("count(*)", "max(day)").first()[0] == 10


def test_sealed_records_are_read_by_spark_alone_and_days_are_left_out(spark: "SparkSession", history: History) -> None:
    history.write(4, time_ms=_DAY_MS)
    history.write(3, time_ms=2 * _DAY_MS)
    history.release(2)
    history.seal()
    frame = records(spark, history.path, broker_id=1)
    (history.data.broker.sealed / "_sealing.tmp").write_bytes(b"half")
    (next(history.data.broker.sealed.glob("day=*")) / "1-2.parquet.tmp").write_bytes(b"half")

    assert frame.schema == records(spark, history.path).schema
    assert rows(frame.where("day = date'1970-01-02'")) == ordered(history.rows[:8])
    said = plan(frame.where("day = date'1970-01-02'").select("offset"))
    assert "PartitionFilters: [isnotnull(day" in said
    assert "ReadSchema: struct<offset:bigint>" in said
    assert "BatchScan" not in said


def test_an_empty_directory_is_an_empty_frame(spark: "SparkSession", tmp_path: Path) -> None:
    frame = records(spark, tmp_path)
    assert (frame.columns, frame.count()) == (list(COLUMNS), 0)


def test_what_is_not_sealed_is_read_by_the_format_and_only_the_columns_asked_for(
    spark: "SparkSession", history: History
) -> None:
    history.write(4)
    history.release(1)
    history.seal()
    history.write(3)
    register(spark)
    reader = spark.read.format("offsetd")

    found = reader.schema("release string, batch bigint").load(str(history.path)).collect()
    assert sorted(tuple(row) for row in found) == [("0.1.0", number) for number in (5, 5, 6, 6, 7, 7)]
    with pytest.raises(Exception, match="the column 'batch' is bigint, and was asked for as string"):
        spark.read.format("offsetd").schema("batch string").load(str(history.path)).collect()
    with pytest.raises(Exception, match="no option 'foo'; it has batches, broker"):
        spark.read.format("offsetd").option("foo", "1").load(str(history.path))


# --- streams --------------------------------------------------------------------------------------------------------


def follow(spark: "SparkSession", history: History, folder: Path, **options: Any) -> list[int]:
    """Follow a history to its end and stop; return the batches that each micro-batch ended with."""
    register(spark)
    stream = spark.readStream.format("offsetd").options(**options).load(str(history.path))
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.option("path", str(folder / "out")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    ends = [progress["sources"][0]["endOffset"] for progress in query.recentProgress if progress["numInputRows"]]
    return [int(str(end).rpartition(" ")[2].rstrip("}")) for end in ends]


def test_a_stream_goes_on_where_it_stopped_and_sees_each_record_once(
    spark: "SparkSession", history: History, tmp_path: Path
) -> None:
    history.write(4)
    history.release(1)
    history.seal()
    history.write(4)
    # Two thirds of a file at a time, and the whole where a file ends.
    assert follow(spark, history, tmp_path, maxBatchesPerTrigger=3) == [3, 4, 7, 8]

    history.write(4)
    history.release(3)
    history.seal()
    history.write(1)
    assert follow(spark, history, tmp_path) == [13]
    assert rows(spark.read.parquet(str(tmp_path / "out"))) == ordered(history.rows)


def reader(history: History, **options: Any) -> StreamReader:
    return StreamReader(HistoryOptions(directory=history.path, **options), COLUMNS)


def read_between(found: StreamReader, start: int, end: int) -> list[Row]:
    planned = found.partitions({"batch": start}, {"batch": end})
    return [row for partition in planned for row in keys(found.read(partition))]


def test_a_new_stream_begins_where_it_is_told_to(history: History) -> None:
    assert reader(history).initialOffset() == {"batch": 0}
    assert reader(history, starting="latest").initialOffset() == {"batch": 0}
    history.write(4)
    history.write(4)
    history.release(1)
    history.forget()

    assert reader(history).initialOffset() == {"batch": 4}
    assert reader(history, starting="latest").initialOffset() == {"batch": 8}
    assert reader(history, starting=7).initialOffset() == {"batch": 6}
    assert reader(history, starting=9).initialOffset() == {"batch": 8}
    with pytest.raises(HistoryRefused, match="startingBatch is 10, and the newest batch is 8"):
        reader(history, starting=10).initialOffset()
    with pytest.raises(BatchesGone, match="the batches 2-4 are gone before they were read"):
        reader(history, starting=2).initialOffset()
    assert reader(history, starting=2, fail_on_data_loss=False).initialOffset() == {"batch": 4}


def test_a_stream_that_is_told_where_it_stands_bounds_its_next_micro_batch_from_there(history: History) -> None:
    history.write(20)
    found = reader(history, batches_max=5)
    assert found.partitions({"batch": 8}, {"batch": 8}) == []

    assert found.latestOffset() == {"batch": 13}
    assert found.latestOffset() == {"batch": 13}
    assert read_between(found, 8, 13) == history.rows[16:26]
    assert found.latestOffset() == {"batch": 18}


def test_batches_that_were_taken_before_a_stream_read_them_end_it_unless_allowed(history: History) -> None:
    for _ in range(3):
        history.write(4)
    history.release(2)
    history.forget()
    with pytest.raises(BatchesGone, match=r"the batches 3-4 are gone.*history.retention.ms.*failOnDataLoss=false"):
        reader(history).partitions({"batch": 2}, {"batch": 12})
    assert read_between(reader(history, fail_on_data_loss=False), 2, 12) == history.rows[8:]


def test_a_stream_does_not_take_another_journal_for_its_own(history: History) -> None:
    history.write(4)
    found = reader(history)
    found.partitions({"batch": 9}, {"batch": 9})
    with pytest.raises(HistoryRefused, match=r"the stream has read up to batch 9, and the newest one in .* is 4"):
        found.latestOffset()


# --- the live state -------------------------------------------------------------------------------------------------


@pytest.mark.integration
def test_the_live_state_is_what_was_committed(spark: "SparkSession", tmp_path: Path) -> None:
    expected = {(f"g{group}", f"t{topic}", topic, group * 10, f"m{group}") for group in range(7) for topic in range(3)}
    with running(tmp_path) as daemon:
        with BlockingClient(daemon.address) as client:
            for group in range(7):
                client.commit(
                    f"g{group}", {(f"t{topic}", topic): Committed(group * 10, f"m{group}") for topic in range(3)}
                )
        register(spark)
        live = spark.read.format("offsetd").option("broker", daemon.address).load()
        found = live.collect()
    assert live.columns == ["group", "topic", "partition", "offset", "leader_epoch", "metadata"]
    assert {(row.group, row.topic, row.partition, row.offset, row.metadata) for row in found} == expected
    assert len(found) == len(expected)
    assert {row.leader_epoch for row in found} == {None}
    with pytest.raises(Exception, match=f"the groups of {daemon.address} cannot be listed"):
        live.count()
