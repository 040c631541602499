"""Dump: every field of every entry comes out, with the sequence that the slot counted, and only what was asked for."""

from pathlib import Path
from struct import pack
from typing import Any

import pytest

from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.compact import compact
from offsetd.journal.dump import Wanted, dump_checkpoint, dump_segment, iso
from offsetd.journal.segment import Damage, encode_header
from offsetd.record import (
    Generation,
    GenerationMember,
    Reason,
    TopicOffsets,
    Who,
    encode_commit,
    encode_generation,
    encode_group_tombstone,
    encode_opening,
    encode_tombstone,
    encode_touch,
)
from tests.directories import flip_byte
from tests.segments import CLUSTER, CLUSTER_ID, JournalFiles

WHO = Who("client", "/10.0.0.1", "member-1")
MS = 1_767_225_600_000
PARTITIONS = pack(">2i", 0, 5)
FULL = TopicOffsets(
    "orders",
    PARTITIONS,
    pack(">2q", 42, 43),
    epochs=pack(">2i", -1, 3),
    times=pack(">2q", MS, MS + 5),
    expiries=pack(">2q", MS + 10, MS + 11),
    metadata=((1, "m\u00fc"),),
)
PLAIN = TopicOffsets("refunds", pack(">i", 1), pack(">q", 7))


def written(tmp_path: Path) -> Path:
    """Return a segment with an entry of every kind."""
    return JournalFiles(tmp_path / "journal").segment(
        [
            [encode_opening(4, MS, "0.1.0")],
            [encode_commit(2, "billing", MS, WHO, [FULL, PLAIN]), encode_commit(0, "audit", MS + 1, WHO, [PLAIN])],
            [encode_touch(2, "billing", MS + 2, WHO, [("orders", PARTITIONS)])],
            [encode_tombstone(2, "billing", MS + 3, WHO, Reason.EXPIRED, [("orders", pack(">i", 5))])],
            [encode_group_tombstone(2, "billing", MS + 4, WHO, Reason.DELETED)],
        ],
        epoch=4,
    )


def dumped(path: Path, **wanted: Any) -> list[dict[str, Any]]:
    return list(dump_segment(path, Wanted(**wanted)))


def test_a_commit_comes_out_with_all_that_it_says(tmp_path: Path) -> None:
    path = written(tmp_path)

    line = dumped(path)[1]

    position = line.pop("position")
    assert path.read_bytes()[position : position + 4] == b"OFDB"
    assert line == {
        "time": "2026-01-01T00:00:00.000Z",
        "time_ms": MS,
        "batch": 2,
        "epoch": 4,
        "segment": "00000000000000000001.segment",
        "kind": "commit",
        "slot": 2,
        "sequence": 0,
        "records": 3,
        "group": "billing",
        "who": {"client_id": "client", "host": "/10.0.0.1", "member_id": "member-1"},
        "topics": [
            {
                "topic": "orders",
                "partitions": [
                    {
                        "partition": 0,
                        "sequence": 0,
                        "offset": 42,
                        "leader_epoch": None,
                        "metadata": "",
                        "time": "2026-01-01T00:00:00.000Z",
                        "time_ms": MS,
                        "expiry_ms": MS + 10,
                    },
                    {
                        "partition": 5,
                        "sequence": 1,
                        "offset": 43,
                        "leader_epoch": 3,
                        "metadata": "m\u00fc",
                        "time": "2026-01-01T00:00:00.005Z",
                        "time_ms": MS + 5,
                        "expiry_ms": MS + 11,
                    },
                ],
            },
            {
                "topic": "refunds",
                "partitions": [
                    {
                        "partition": 1,
                        "sequence": 2,
                        "offset": 7,
                        "leader_epoch": None,
                        "metadata": "",
                        "time": "2026-01-01T00:00:00.000Z",
                        "time_ms": MS,
                        "expiry_ms": None,
                    }
                ],
            },
        ],
    }


def test_every_kind_has_its_own_facts_and_the_slot_s_next_sequence(tmp_path: Path) -> None:
    opening, _, audit, touch, tombstone, group_tombstone = dumped(written(tmp_path))

    assert (opening["kind"], opening["opened_epoch"], opening["release"]) == ("opening", 4, "0.1.0")
    assert (audit["slot"], audit["sequence"], audit["batch"]) == (0, 0, 2)
    assert (touch["kind"], touch["sequence"], touch["records"]) == ("touch", 3, 2)
    assert touch["topics"] == [
        {"topic": "orders", "partitions": [{"partition": 0, "sequence": 3}, {"partition": 5, "sequence": 4}]}
    ]
    assert (tombstone["kind"], tombstone["reason"], tombstone["sequence"]) == ("tombstone", "expired", 5)
    assert tombstone["topics"] == [{"topic": "orders", "partitions": [{"partition": 5, "sequence": 5}]}]
    assert (group_tombstone["kind"], group_tombstone["reason"]) == ("group_tombstone", "deleted")
    assert (group_tombstone["sequence"], group_tombstone["records"]) == (6, 1)


def test_sequences_go_on_from_the_segment_s_header(tmp_path: Path) -> None:
    path = written(tmp_path)
    old = path.read_bytes()
    header = encode_header(
        cluster=CLUSTER, first_number=1, previous_crc=0, epoch=4, created_ms=0, next_sequences=[10, 0, 100]
    )
    path.write_bytes(header + old[len(header) :])

    assert [line.get("sequence") for line in dumped(path)] == [None, 100, 10, 103, 105, 106]


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        ({"group": "audit"}, ["commit"]),
        ({"group": "nobody"}, []),
        ({"topic": "refunds"}, ["commit", "commit", "group_tombstone"]),
        ({"topic": "orders", "group": "billing"}, ["commit", "touch", "tombstone", "group_tombstone"]),
        ({"since_ms": MS + 3}, ["tombstone", "group_tombstone"]),
        ({"until_ms": MS + 1}, ["opening", "commit"]),
        ({"since_ms": MS + 1, "until_ms": MS + 2}, ["commit"]),
    ],
)
def test_only_what_was_asked_for_comes_out(tmp_path: Path, wanted: dict[str, Any], kinds: list[str]) -> None:
    assert [line["kind"] for line in dumped(written(tmp_path), **wanted)] == kinds


def test_other_topics_of_an_entry_are_left_out_and_still_counted(tmp_path: Path) -> None:
    (line, *_) = dumped(written(tmp_path), topic="refunds")

    assert [(topic["topic"], topic["partitions"][0]["sequence"]) for topic in line["topics"]] == [("refunds", 2)]


def test_what_stands_before_damage_comes_out_first(tmp_path: Path) -> None:
    path = written(tmp_path)
    flip_byte(path, -9)
    lines: list[dict[str, Any]] = []

    with pytest.raises(Damage):
        lines.extend(dump_segment(path, Wanted()))

    assert [line["batch"] for line in lines] == [1, 2, 2, 3, 4]


def test_the_rows_of_a_checkpoint_come_out_by_group(tmp_path: Path) -> None:
    journal = JournalFiles(tmp_path / "journal")
    journal.segment(
        [[encode_commit(2, group, MS, WHO, [FULL, PLAIN])] for group in ("billing", "audit")]
        + [[encode_commit(0, "", MS + 9, WHO, [PLAIN])]]
    )
    with Checkpoint.create(tmp_path / "checkpoint", cluster_id=CLUSTER_ID, made_by="test") as checkpoint:
        compact(checkpoint, journal.paths, cluster_id=CLUSTER_ID, history=None)
        lines = list(dump_checkpoint(checkpoint, 3, Wanted()))
        late = list(dump_checkpoint(checkpoint, 3, Wanted(since_ms=MS + 1)))
        refunds = list(dump_checkpoint(checkpoint, 3, Wanted(topic="refunds", group="billing")))

    assert [(line["slot"], line["group"]) for line in lines] == [(0, ""), (2, "audit"), (2, "billing")]
    assert lines[2]["who"] == WHO._asdict()
    assert lines[2]["topics"][0] == {
        "topic": "orders",
        "partitions": [
            {
                "partition": 0,
                "offset": 42,
                "leader_epoch": None,
                "metadata": "",
                "time": "2026-01-01T00:00:00.000Z",
                "time_ms": MS,
                "expiry_ms": MS + 10,
            },
            {
                "partition": 5,
                "offset": 43,
                "leader_epoch": 3,
                "metadata": "m\u00fc",
                "time": "2026-01-01T00:00:00.005Z",
                "time_ms": MS + 5,
                "expiry_ms": MS + 11,
            },
        ],
    }
    assert [row["partition"] for line in late for topic in line["topics"] for row in topic["partitions"]] == [1, 5, 5]
    assert [(line["group"], [topic["topic"] for topic in line["topics"]]) for line in refunds] == [
        ("billing", ["refunds"])
    ]


def test_a_time_that_no_calendar_has_is_none() -> None:
    assert iso(-1) == "1969-12-31T23:59:59.999Z"
    assert iso(1 << 62) is None
    assert iso(-(1 << 62)) is None


def completed(group: str, *members: str) -> bytes:
    rows = tuple(GenerationMember(name, "blue", "c", "/h", 60_000, 10_000, b"said", bytes(7)) for name in members)
    return encode_generation(2, group, MS + 9, WHO, Generation("consumer", 3, "range", "m-1", rows))


SHOWN = {
    "protocol_type": "consumer",
    "generation": 3,
    "protocol": "range",
    "leader": "m-1",
    "members": [
        {
            "member_id": "m-1",
            "instance_id": "blue",
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout_ms": 60_000,
            "session_timeout_ms": 10_000,
            "metadata": "4 bytes",
            "assignment": "7 bytes",
        }
    ],
}


def test_a_generation_comes_out_without_what_is_the_members_own(tmp_path: Path) -> None:
    path = JournalFiles(tmp_path / "journal").segment([[completed("billing", "m-1"), completed("audit")]])
    lines = dumped(path)

    assert [(line["kind"], line["group"], line["sequence"], line["records"]) for line in lines] == [
        ("group", "billing", 0, 1),
        ("group", "audit", 1, 1),
    ]
    assert {name: lines[0][name] for name in SHOWN} == SHOWN
    assert lines[1]["members"] == []
    assert dumped(path, topic="orders") == []


def test_a_checkpoint_shows_members_beside_offsets_and_without_any(tmp_path: Path) -> None:
    journal = JournalFiles(tmp_path / "journal")
    journal.segment(
        [[encode_commit(2, "billing", MS, WHO, [PLAIN]), completed("billing", "m-1")], [completed("audit")]]
    )
    with Checkpoint.create(tmp_path / "checkpoint", cluster_id=CLUSTER_ID, made_by="test") as checkpoint:
        compact(checkpoint, journal.paths, cluster_id=CLUSTER_ID, history=None)
        lines = {line["group"]: line for line in dump_checkpoint(checkpoint, 3, Wanted())}
        refunds = list(dump_checkpoint(checkpoint, 3, Wanted(topic="refunds")))
        early = list(dump_checkpoint(checkpoint, 3, Wanted(until_ms=MS + 9)))

    assert set(lines) == {"billing", "audit"}
    assert {name: lines["billing"][name] for name in SHOWN} == SHOWN
    assert [topic["topic"] for topic in lines["billing"]["topics"]] == ["refunds"]
    assert (lines["audit"]["members"], lines["audit"]["topics"]) == ([], [])
    assert [line["group"] for line in refunds] == ["billing"]
    assert "members" not in refunds[0]
    assert [("members" in line, len(line["topics"])) for line in early] == [(False, 1)]
