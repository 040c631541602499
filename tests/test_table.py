"""The table against a plain dict: any history, any numbers, the same answers."""

from struct import pack

from hypothesis import given, settings
from hypothesis import strategies as st

from offsetd.record import Kind, TopicOffsets, Who, decode_entries, encode_commit, encode_opening
from offsetd.rows import checkpoint_rows, restore
from offsetd.table import SlotTable, TopicIndex, apply, run_start
from tests.histories import SLOTS, Commit, Model, Row, Step, Tombstone, check_index, check_slot, encode, slot_of, steps

WHO = Who("client", "/127.0.0.1", "")
TIME_MS = 1 << 41


def _body(entries: list[bytes]) -> bytes:
    return b"\xdd" + pack(">I", len(entries)) + b"".join(entries)


def _fresh() -> tuple[TopicIndex, list[SlotTable]]:
    index = TopicIndex()
    return index, [SlotTable(slot, index) for slot in range(SLOTS)]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(history=st.lists(steps, max_size=14))
def test_any_history_leaves_what_a_plain_dict_says(history: list[Step]) -> None:
    index, tables = _fresh()
    models = [Model() for _ in range(SLOTS)]

    for step in history:
        (entry,) = decode_entries(_body([encode(step)]))
        versions = {table: table.version for table in tables}
        apply(tables[slot_of(step.group)], entry)
        models[slot_of(step.group)].apply(step)
        assert all(table.version >= version for table, version in versions.items())

    for table, model in zip(tables, models, strict=True):
        check_slot(table, model)
    check_index(index, tables)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(history=st.lists(steps, max_size=14), backwards=st.booleans(), after=st.lists(steps, max_size=4))
def test_a_checkpoint_brings_every_group_back_and_life_goes_on(
    history: list[Step], backwards: bool, after: list[Step]
) -> None:
    _, tables = _fresh()
    models = [Model() for _ in range(SLOTS)]
    for step in history:
        apply(tables[slot_of(step.group)], decode_entries(_body([encode(step)]))[0])
        models[slot_of(step.group)].apply(step)

    index, restored = _fresh()
    for old, new in zip(tables, restored, strict=True):
        new.sequence, new.newest_ms = old.sequence, old.newest_ms
        rows = [(group_id, *row) for group_id, group in old.groups.items() for row in checkpoint_rows(group)]
        for group_id, name, value in reversed(rows) if backwards else rows:
            restore(new, group_id, name, value)
    for table, model in zip(restored, models, strict=True):
        check_slot(table, model)

    for step in after:
        apply(restored[slot_of(step.group)], decode_entries(_body([encode(step)]))[0])
        models[slot_of(step.group)].apply(step)
    for table, model in zip(restored, models, strict=True):
        check_slot(table, model)
    check_index(index, restored)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(history=st.lists(steps, min_size=1, max_size=6))
def test_what_is_decoded_is_what_was_encoded(history: list[Step]) -> None:
    entries = decode_entries(_body([encode(step) for step in history]))

    assert [(entry[1], entry[2], entry[3]) for entry in entries] == [
        (1, slot_of(step.group), step.group) for step in history
    ]
    for entry, step in zip(entries, history, strict=True):
        assert entry[4] == step.time_ms
        assert Who(*entry[5]) == step.who
        if isinstance(step, Commit):
            again = encode_commit(entry[2], entry[3], entry[4], Who(*entry[5]), [TopicOffsets(*t) for t in entry[6]])
            assert again == encode(step)


def test_a_group_that_was_emptied_is_gone_from_the_index() -> None:
    index, tables = _fresh()
    rows = (Row(0, 1, -1, None, "note"), Row((1 << 31) - 1, 2, -1, None, ""))
    step = Commit("billing", TIME_MS, WHO, (("orders", rows, 7), ("empty", (), None)))
    table = tables[slot_of("billing")]

    apply(table, decode_entries(_body([encode(step)]))[0])
    assert index.groups.keys() == {"orders"}
    group = table.groups["billing"]
    gone = Tombstone("billing", TIME_MS, WHO, (("orders", ((1 << 31) - 1,)),))
    apply(table, decode_entries(_body([encode(gone)]))[0])
    assert group.partitions("orders") == 1
    gone = Tombstone("billing", TIME_MS, WHO, (("orders", (0,)),))
    apply(table, decode_entries(_body([encode(gone)]))[0])

    assert (index.groups, table.groups, table.live) == ({}, {}, 0)
    assert group.version == -1


def test_a_huge_partition_number_costs_no_memory() -> None:
    _, tables = _fresh()
    step = Commit("b", TIME_MS, WHO, (("o", (Row((1 << 31) - 1, 5, -1, None, ""),), None),))

    apply(tables[slot_of("b")], decode_entries(_body([encode(step)]))[0])

    assert tables[slot_of("b")].groups["b"].topics == {}


def test_only_an_ascending_run_counts_as_one() -> None:
    assert run_start(pack(">3i", 4, 5, 6)) == 4
    assert run_start(pack(">3i", 4, 6, 5)) == -1
    assert run_start(pack(">2i", -1, 0)) == -1
    assert run_start(pack(">2i", 3, 3)) == -1
    assert run_start(b"") == -1


def test_an_opening_belongs_to_no_slot() -> None:
    (entry,) = decode_entries(_body([encode_opening(3, TIME_MS, "0.1.0")]))

    assert entry == (Kind.OPENING, 1, -1, 3, TIME_MS, "0.1.0")
