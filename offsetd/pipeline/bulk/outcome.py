"""What became of rows: committed, refused, malformed. Every row that was read is one of them; pure."""

from dataclasses import dataclass
from typing import NamedTuple

from offsetd.client.errors import advice, known_code
from offsetd.pipeline.bulk.row import OffsetRow


class RefusedRow(NamedTuple):
    """A row that is not in the broker, with the broker's code if it came so far, and what would help."""

    group: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    code: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """An import in numbers."""

    rows: int
    committed: int
    refused: int
    malformed: int
    requests: int
    retries: int

    def __post_init__(self) -> None:
        assert self.rows == self.committed + self.refused + self.malformed, "a row is not accounted for"

    @property
    def complete(self) -> bool:
        """Whether every row is in the broker."""
        return self.committed == self.rows


def refused_row(row: OffsetRow, code: int) -> RefusedRow:
    """Say why a broker refused a row."""
    known = known_code(code)
    return RefusedRow(row.group, row.topic, row.partition, row.offset, code, f"{known.name}: {advice(known)}")


def unreached_row(row: OffsetRow, why: str) -> RefusedRow:
    """Say that no broker answered; whether it took the row is then not known, and doing it again is harmless."""
    return RefusedRow(row.group, row.topic, row.partition, row.offset, None, why)
