"""Positions as Spark says them, what they do to a group, and where reads start; without Spark."""

import json

import pytest

from offsetd.client import Committed, TopicPartition
from offsetd.pipeline.jobs.checkpoint import newest_batch, parse_position
from offsetd.pipeline.jobs.mailbox import Mailbox
from offsetd.pipeline.jobs.move import decide_move
from offsetd.pipeline.jobs.position import QueryPosition, join_sources, offsets_of_source, position_of_progress
from offsetd.pipeline.jobs.starting import StartRefused, choose_starts, options

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def position(*, batch: int = 3, query: str = "q", **offsets: int) -> QueryPosition:
    return QueryPosition(
        group="spark.job",
        query_id=query,
        batch_id=batch,
        offsets={TopicPartition("a", int(k[1:])): v for k, v in offsets.items()},
    )


@pytest.mark.parametrize(
    "text",
    [None, "", "-", "17", '{"logOffset":0}', '{"a":{"x":1}}', '{"a":{"0":-1}}', '{"a":{"0":true}}', "{", "[]", "{}"],
)
def test_what_is_no_position_of_kafka_is_left_alone(text: str | None) -> None:
    assert offsets_of_source(text) is None


def test_several_kafka_sources_are_one_position_and_others_are_not_in_it() -> None:
    found = position_of_progress(
        {
            "name": "job",
            "id": "q",
            "batchId": 3,
            "sources": [
                {"description": "KafkaV2[Subscribe[a]]", "endOffset": '{"a":{"0":5,"1":9}}'},
                {"description": "RateStreamV2[rowsPerSecond=1]", "endOffset": "4"},
                {"description": "KafkaV2[Subscribe[b]]", "endOffset": {"b": {"0": 7}}},
            ],
        }
    )

    assert found is not None
    assert (found.group, found.metadata) == ("spark.job", "q:3")
    assert found.offsets == {A0: 5, A1: 9, B0: 7}


def test_of_two_sources_of_one_topic_the_slower_counts() -> None:
    assert join_sources([{A0: 5, A1: 1}, {A0: 3}]) == {A0: 3, A1: 1}


def test_a_group_goes_forward_and_stays_where_the_query_is_behind() -> None:
    move = decide_move(position(p0=5, p1=2), {A0: Committed(4), A1: Committed(8)}, allow_rewind=False)

    assert move.commit == {A0: Committed(5, "q:3")}
    assert move.back == {A1: (8, 2)}
    assert move.back_words() == "a/1 from 8 to 2"


def test_a_group_goes_back_when_told_to_and_it_is_said() -> None:
    move = decide_move(position(p1=2), {A1: Committed(8)}, allow_rewind=True)

    assert move.commit == {A1: Committed(2, "q:3")}
    assert move.back == {A1: (8, 2)}


def test_a_checkpoint_s_last_finished_batch_is_found_among_other_files() -> None:
    assert newest_batch([".9.crc", "2", "10", ".11.tmp", "12.tmp"]) == 10
    assert newest_batch([]) is None


def test_a_checkpoint_s_entry_is_a_position() -> None:
    entry = 'v1\n{"batchWatermarkMs":0}\n{"a":{"0":5}}\n-\n{"logOffset":1}'

    found = parse_position("spark.job", json.dumps({"id": "q"}), 3, entry)

    assert found == position(p0=5)


def test_a_checkpoint_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="v9"):
        parse_position("g", '{"id":"q"}', 1, "v9\n{}\n{}")


def test_the_newest_batch_of_a_group_wins_until_the_query_starts_again() -> None:
    mailbox = Mailbox()
    assert mailbox.put(position(batch=3, p0=5))
    assert mailbox.put(position(batch=4, p0=6))
    assert not mailbox.put(position(batch=3, p0=5))
    taken = mailbox.take()
    assert isinstance(taken, QueryPosition)
    assert taken.batch_id == 4
    mailbox.begin("spark.job")
    assert mailbox.put(position(batch=3, p0=5))


def test_what_comes_back_does_not_replace_what_is_newer() -> None:
    mailbox = Mailbox()
    mailbox.put(position(batch=4, p0=6))
    mailbox.put_back(position(batch=3, p0=5))
    taken = mailbox.take()
    assert isinstance(taken, QueryPosition)
    assert taken.batch_id == 4


def test_without_upstream_only_what_the_group_has_is_read() -> None:
    assert choose_starts("g", ["a"], {A0: 5, B0: 1}, None, "refuse") == {A0: 5}
    with pytest.raises(StartRefused, match="b"):
        choose_starts("g", ["a", "b"], {A0: 5}, None, "earliest")


def test_partitions_without_an_offset_start_as_told() -> None:
    assert choose_starts("g", ["a"], {A0: 5}, [A0, A1], "earliest") == {A0: 5, A1: -2}
    assert choose_starts("g", ["a"], {A0: 5}, [A0, A1], "latest") == {A0: 5, A1: -1}
    with pytest.raises(StartRefused, match="a/1"):
        choose_starts("g", ["a"], {A0: 5}, [A0, A1], "refuse")


def test_options_are_as_spark_wants_them() -> None:
    assert options({A0: 5, A1: -2}, upstream="h:1", subscribe=True) == {
        "startingOffsets": '{"a": {"0": 5, "1": -2}}',
        "subscribe": "a",
        "kafka.bootstrap.servers": "h:1",
    }
    assert options({A0: 5}, upstream=None, subscribe=False)["assign"] == '{"a": [0]}'
