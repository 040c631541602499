"""Data directories for tests, written without a daemon and loaded as one would load them."""

import shutil
from pathlib import Path
from struct import pack

from offsetd.journal.checkpoint import Checkpoint
from offsetd.journal.compact import compact
from offsetd.journal.directory import open_directory
from offsetd.journal.files import OsFiles
from offsetd.journal.fold import fold_runs
from offsetd.journal.load import Loader
from offsetd.journal.marker import DURABLE, Marker, encode_marker
from offsetd.journal.recovery import recover
from offsetd.journal.segment import read_batches
from offsetd.record import TopicOffsets, Who, encode_commit
from tests.segments import CLUSTER, CLUSTER_ID, TIME_MS, JournalFiles, fresh_tables

SLOTS = 3
WHO = Who("client", "/127.0.0.1", "member-1")


def commit(offset: int, *, group: str = "billing", slot: int = 1, topic: str = "orders", partition: int = 0) -> bytes:
    """Return the entry of a commit of one partition, made at a time that its offset tells."""
    columns = TopicOffsets(topic, pack(">i", partition), pack(">q", offset))
    return encode_commit(slot, group, TIME_MS + offset, WHO, [columns])


class DataDirectory:
    """A data directory of broker 1. By default each batch commits its own number as the offset of orders/0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity, self.broker, lock = open_directory(
            path, broker_id=1, slots=SLOTS, cluster_id=CLUSTER_ID, random_bytes=bytes
        )
        lock.release()
        self.journal = JournalFiles(self.broker.journal, slots=SLOTS)
        if not self.broker.checkpoint.exists():
            Checkpoint.create(self.broker.checkpoint, cluster_id=CLUSTER_ID, made_by="test").close()

    def copy(self, path: Path) -> "DataDirectory":
        """Return a copy, to be harmed."""
        shutil.copytree(self.path, path, symlinks=True)
        return DataDirectory(path)

    def write(self, batches: int) -> Path:
        """Add a segment."""
        first = self.journal.number + 1
        return self.journal.segment([[commit(number)] for number in range(first, first + batches)])

    def compact(self, segments: int) -> None:
        """Fold the oldest segments of the journal into the checkpoint, and release them to history."""
        paths = sorted(self.broker.journal.glob("*.segment"))[:segments]
        with Checkpoint.open(self.broker.checkpoint, cluster_id=CLUSTER_ID) as checkpoint:
            compact(checkpoint, paths, cluster_id=CLUSTER_ID, history=self.broker.history)

    def fold(self, number: int) -> None:
        """Fold batches up to this one, and release nothing: what a compaction leaves that was killed then."""
        with Checkpoint.open(self.broker.checkpoint, cluster_id=CLUSTER_ID) as checkpoint:
            batches = [each for path in sorted(self.broker.journal.glob("*.segment")) for each in read_batches(path)]
            upto = [batch for batch in batches if batch.number <= number]
            for fold in fold_runs(upto, checkpoint.place, checkpoint.group_rows):
                checkpoint.fold(fold)

    def mark(self) -> None:
        """Note the last batch as durable, as a clean stop does."""
        marker = Marker(number=self.journal.number, first_number=0, position=0, crc=self.journal.crc)
        (self.broker.journal / DURABLE).write_bytes(encode_marker(marker))

    def content(self) -> dict[str, bytes]:
        """Return every file below the data directory."""
        found = (path for path in self.path.rglob("*") if path.is_file())
        return {str(path.relative_to(self.path)): path.read_bytes() for path in found}

    def start(self) -> dict[tuple[str, str, int], int]:
        """Recover and load as a start does, and return the offsets that it would serve."""
        with Checkpoint.open(self.broker.checkpoint, cluster_id=CLUSTER_ID) as checkpoint:
            loader = Loader(checkpoint)
            for _ in recover(
                self.broker.journal,
                self.broker.quarantine,
                files=OsFiles(),
                cluster=CLUSTER,
                slots=SLOTS,
                after_number=loader.folded_number,
                after_crc=checkpoint.place.crc,
                on_batch=loader.add_batch,
            ):
                pass
            _, tables = fresh_tables(SLOTS)
            for table in tables:
                list(loader.load(table))
        return {
            (group_id, topic, partition): row.offset
            for table in tables
            for group_id, group in table.groups.items()
            for topic in group.names()
            for partition, row in group.rows(topic)
        }


def flip_byte(path: Path, position: int) -> None:
    """Turn the bits of one byte over; a negative position counts from the end."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def position_of(path: Path, number: int) -> int:
    """Return where a batch begins in a whole segment."""
    return next(batch.position for batch in read_batches(path) if batch.number == number)
