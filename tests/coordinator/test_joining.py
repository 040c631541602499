"""What a join may bring, and what ids are made of it."""

import pytest

from offsetd.coordinator.member import NAME_BYTES_MAX, Joining
from offsetd.record import ENTRY_BYTES_MAX
from protocol.errors import Code


def joining(
    *,
    client_id: str = "client",
    instance_id: str | None = None,
    kind: str = "consumer",
    protocols: tuple[tuple[str, bytes], ...] = (("range", b""),),
) -> Joining:
    return Joining("", instance_id, client_id, "/host", 10_000, 60_000, kind, protocols)


def test_ids_are_made_of_the_clients_name_or_the_instance() -> None:
    assert joining().made_id("7") == "client-7"
    assert joining(client_id="").made_id("7") == "-7"
    assert joining(instance_id="blue").made_id("7") == "blue-7"
    assert joining(instance_id="").made_id("7") == "-7"
    assert joining(client_id="x" * 300).made_id("7") == "x" * 255 + "-7"


@pytest.mark.parametrize("letter", ["x", "ä", "😀"])
def test_names_are_bounded_in_bytes(letter: str) -> None:
    name = letter * (NAME_BYTES_MAX // len(letter.encode()))
    for fits in (joining(kind=name), joining(instance_id=name), joining(protocols=((name, b""),))):
        assert fits.refuse() is Code.NONE
    for long in (
        joining(kind=name + letter),
        joining(instance_id=name + letter),
        joining(protocols=(("range", b""), (name + letter, b""))),
    ):
        assert long.refuse() is Code.INVALID_REQUEST


def test_what_all_protocols_say_together_is_bounded() -> None:
    half = bytes(ENTRY_BYTES_MAX // 2 - 64)

    assert joining(protocols=(("a", half), ("b", half))).refuse() is Code.NONE
    assert joining(protocols=(("a", half), ("b", half + b"x"))).refuse() is Code.INVALID_REQUEST
    assert joining(protocols=tuple((str(n), b"") for n in range(ENTRY_BYTES_MAX // 64 + 1))).refuse() is not Code.NONE
