"""Segments for tests, written straight from entries without a writer."""

from collections.abc import Sequence
from pathlib import Path

from offsetd.journal.batch import cluster_seed, encode_batch, frame_crc
from offsetd.journal.directory import make_cluster_id
from offsetd.journal.segment import encode_header, segment_name
from offsetd.table import SlotTable, TopicIndex

CLUSTER = bytes(range(16))
CLUSTER_ID = make_cluster_id(CLUSTER)
OTHER_CLUSTER_ID = make_cluster_id(bytes(16))
TIME_MS = 1 << 32


class JournalFiles:
    """Writes batches into segments, one after the other, as the chain demands."""

    def __init__(self, directory: Path, *, cluster: bytes = CLUSTER, slots: int = 3) -> None:
        self.directory = directory
        self.paths: list[Path] = []
        self.number = 0
        self.crc = 0
        self._cluster = cluster
        self._slots = slots
        directory.mkdir(parents=True, exist_ok=True)

    def segment(
        self, batches: Sequence[Sequence[bytes]], *, epoch: int = 1, time_ms: int | Sequence[int] | None = None
    ) -> Path:
        """Write one segment with these batches (each a list of entries), made at a time or each at its own."""
        times = time_ms if isinstance(time_ms, Sequence) else [time_ms] * len(batches)
        path = self.directory / segment_name(self.number + 1)
        parts = [
            encode_header(
                cluster=self._cluster,
                first_number=self.number + 1,
                previous_crc=self.crc,
                epoch=epoch,
                created_ms=TIME_MS,
                next_sequences=[0] * self._slots,
            )
        ]
        for entries, made_ms in zip(batches, times, strict=True):
            self.number += 1
            frame = encode_batch(
                entries,
                seed=cluster_seed(self._cluster),
                number=self.number,
                previous_crc=self.crc,
                synced_number=self.number - 1,
                epoch=epoch,
                time_ms=TIME_MS + self.number if made_ms is None else made_ms,
            )
            self.crc = frame_crc(frame)
            parts.append(frame)
        path.write_bytes(b"".join(parts))
        self.paths.append(path)
        return path


def fresh_tables(slots: int = 3) -> tuple[TopicIndex, list[SlotTable]]:
    """Return empty tables that share an index."""
    index = TopicIndex()
    return index, [SlotTable(slot, index) for slot in range(slots)]
