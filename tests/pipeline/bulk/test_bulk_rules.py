"""What a row is, where dumps hide them, how they are packed, and what a comparison says; without Spark."""

import pytest

from offsetd.pipeline.bulk.outcome import ImportSummary, refused_row
from offsetd.pipeline.bulk.parcel import Conflict, Packer, Parcel, row_bytes
from offsetd.pipeline.bulk.pipelined import commit_request
from offsetd.pipeline.bulk.reading import DumpUnreadable, header_columns, kafka_columns, sniff
from offsetd.pipeline.bulk.row import Malformed, OffsetRow, make_row
from offsetd.pipeline.bulk.verdict import Side, Verdict, judge
from offsetd.pipeline.bulk.zookeeper import Znode, parse_znode, znode_of_line, znodes_of_json


def test_a_row_may_be_of_texts_or_of_numbers() -> None:
    assert make_row("g", "t", "3", " 42 ", "", "-1") == OffsetRow("g", "t", 3, 42, "", -1)
    assert make_row("g", "t", 3, 2**63 - 1) == OffsetRow("g", "t", 3, 2**63 - 1)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ((None, "t", "0", "1"), "group is missing"),
        (("g", "", "0", "1"), "topic has 0 characters"),
        (("g", "t" * 250, "0", "1"), "topic has 250"),
        (("g", "t", "x", "1"), "partition 'x' is not a whole number"),
        (("g", "t", "-1", "1"), "partition -1 is not in"),
        (("g", "t", "0", "-5"), "offset -5 is not in"),
        (("g", "t", "0", str(2**63)), "is not in"),
        (("g", "t", "0", "1.5"), "not a whole number"),
        (("g", "t", "0", None), "offset is missing"),
        (("g", "t", "0", "1", "m" * 40_000), "metadata has 40000 bytes"),
        (("g", "t", "0", "1", "", "-2"), "leader_epoch -2"),
    ],
)
def test_what_is_no_row_says_why(fields: tuple[str, ...], why: str) -> None:
    with pytest.raises(Malformed, match=why):
        make_row(*fields)


@pytest.mark.parametrize(
    "line",
    [
        "/consumers/og/offsets/logs/0:6",
        "/consumers/og/offsets/logs/0 6",
        "/consumers/og/offsets/logs/0\t6 ",
        "/consumers/og/offsets/logs/0 = 6",
        "/kafka/main/consumers/og/offsets/logs/0:6",
    ],
)
def test_an_offset_of_zookeeper_is_found_however_the_line_is_written(line: str) -> None:
    assert parse_znode(znode_of_line(line)) == OffsetRow("og", "logs", 0, 6)


def test_a_group_s_name_may_have_separators_in_it() -> None:
    assert parse_znode(znode_of_line("/consumers/a b:c=d/offsets/logs/0:6")) == OffsetRow("a b:c=d", "logs", 0, 6)


@pytest.mark.parametrize(
    "line",
    ["", "/consumers/og", "/consumers/og/offsets/logs", "/consumers/og/owners/logs/0 og_vm-1-0", "/controller_epoch 1"],
)
def test_other_znodes_are_passed_over(line: str) -> None:
    assert parse_znode(znode_of_line(line)) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/consumers/g/offsets/t/1-0:5", "Kafka 0.7"),
        ("/consumers/g/offsets/t/0:", "empty"),
        ("/consumers/g/offsets/t/0:null", "empty"),
        ("/consumers/g/offsets/t/0:abc", "not a whole number"),
        ("/consumers/g/offsets/t/0:-5", "offset -5"),
    ],
)
def test_an_offset_of_zookeeper_that_is_none_says_why(line: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        parse_znode(znode_of_line(line))


@pytest.mark.parametrize(
    "text",
    [
        '{"/consumers/g/offsets/t/0": "6", "/controller": "{}"}',
        '{"consumers": {"g": {"offsets": {"t": {"0": 6}}, "ids": null}}}',
        '[{"path": "/consumers/g/offsets/t/0", "data": "6"}, {"path": "/brokers", "data": null}]',
        '{"path": "/consumers/g/offsets/t/0", "value": "6"}\n{"path": "/brokers"}\n',
    ],
)
def test_every_shape_of_json_gives_the_offset(text: str) -> None:
    rows = [parse_znode(znode) for znode in znodes_of_json(text)]
    assert [row for row in rows if row is not None] == [OffsetRow("g", "t", 0, 6)]


def test_what_is_not_json_is_said() -> None:
    with pytest.raises(Malformed, match="not JSON"):
        list(znodes_of_json("{nonsense"))
    assert parse_znode(Znode("/x", None)) is None


def pack(*rows: OffsetRow, limit: int = 10_000) -> list[Parcel | Conflict]:
    packer = Packer(parcel_bytes_max=limit)
    found = [each for row in rows for each in packer.feed(row)]
    return [*found, *packer.finish()]


def test_a_parcel_holds_one_group() -> None:
    a, b, c = OffsetRow("g", "t", 0, 1), OffsetRow("g", "u", 0, 2), OffsetRow("h", "t", 0, 3)
    assert pack(a, b, c) == [Parcel(group="g", rows=[a, b], times=[1, 1]), Parcel(group="h", rows=[c], times=[1])]


def test_a_parcel_is_no_larger_than_its_limit_and_nothing_is_lost() -> None:
    rows = [OffsetRow("g", "t", number, 1, "m" * 50) for number in range(100)]
    parcels = pack(*rows, limit=1_000)
    assert len(parcels) > 5
    assert [row for parcel in parcels for row in parcel.rows] == rows
    assert all(sum(map(row_bytes, parcel.rows)) <= 1_000 for parcel in parcels)


def test_rows_that_repeat_one_another_travel_once_and_count_twice() -> None:
    row = OffsetRow("g", "t", 0, 1)
    assert pack(row, row) == [Parcel(group="g", rows=[row], times=[2])]


def test_rows_that_contradict_one_another_are_not_committed() -> None:
    low, high, other = OffsetRow("g", "t", 0, 1), OffsetRow("g", "t", 0, 9), OffsetRow("g", "t", 1, 5)
    assert pack(low, high, other) == [Conflict(rows=[low, high]), Parcel(group="g", rows=[other], times=[1])]


def test_a_request_has_each_topic_once() -> None:
    request = commit_request(
        "g", [OffsetRow("g", "t", 0, 1, "m", 4), OffsetRow("g", "t", 1, 2), OffsetRow("g", "u", 0, 3)]
    )
    assert [(topic.name, len(topic.partitions)) for topic in request.topics] == [("t", 2), ("u", 1)]
    first, second = request.topics[0].partitions
    assert (first.committed_metadata, first.committed_leader_epoch) == ("m", 4)
    assert (second.committed_metadata, second.committed_leader_epoch) == ("", -1)


def test_a_summary_accounts_for_every_row() -> None:
    ImportSummary(rows=6, committed=3, refused=2, malformed=1, requests=1, retries=0)
    with pytest.raises(AssertionError, match="not accounted"):
        ImportSummary(rows=7, committed=3, refused=2, malformed=1, requests=1, retries=0)


def test_a_refused_row_says_what_to_do() -> None:
    assert "members" in refused_row(OffsetRow("g", "t", 0, 1), 25).why


@pytest.mark.parametrize(
    ("left", "right", "verdict", "by"),
    [
        (Side(5), Side(5), Verdict.EQUAL, 0),
        (Side(5), Side(None), Verdict.ONLY_LEFT, None),
        (Side(None), Side(5), Verdict.ONLY_RIGHT, None),
        (Side(7), Side(5), Verdict.LEFT_AHEAD, 2),
        (Side(5, "a"), Side(8, "b"), Verdict.RIGHT_AHEAD, 3),
        (Side(5, "a"), Side(5, "b"), Verdict.METADATA_DIFFERS, 0),
        (Side(5, ""), Side(5, None), Verdict.EQUAL, 0),
        (Side(0), Side(None), Verdict.ONLY_LEFT, None),
    ],
)
def test_verdicts(left: Side, right: Side, verdict: Verdict, by: int | None) -> None:
    assert judge(left, right) == (verdict, by)


@pytest.mark.parametrize(
    ("name", "line", "kind"),
    [
        ("a.parquet", "", "parquet"),
        ("a.txt", "/consumers/g/offsets/t/0:5", "zookeeper"),
        ("a.json", '{"consumers": {}}', "zookeeper"),
        ("a.csv", "offset,partition,topic,group", "csv"),
        ("a.csv", "g,t,0,5", "kafka-csv"),
    ],
)
def test_a_format_is_told_by_name_and_first_line(name: str, line: str, kind: str) -> None:
    assert sniff(name, line) == kind


def test_columns_are_named_in_any_order_and_known_ones_only() -> None:
    assert header_columns("topic,group,offset,partition,metadata")[:2] == ["topic", "group"]
    for line in ("group,topic,partition", "group,topic,partition,offset,lag", "group,group,topic,partition,offset"):
        with pytest.raises(DumpUnreadable, match="want group,topic,partition,offset"):
            header_columns(line)


def test_a_csv_of_kafka_names_its_group_or_is_told_it() -> None:
    assert kafka_columns('"t",0,5', "g") == ["topic", "partition", "offset"]
    assert kafka_columns("g,t,0,5", None) == ["group", "topic", "partition", "offset"]
    for line, group in (("t,0,5", None), ("g,t,0,5", "g"), ("t,5", "g")):
        with pytest.raises(DumpUnreadable):
            kafka_columns(line, group)
