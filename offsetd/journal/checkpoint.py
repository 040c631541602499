"""The checkpoint: the compacted state in LevelDB, up to a known place of the journal. Data of record, not a cache.

Rows and place move together in one synced write. What the rows mean is the table's business, which batches go in is the
compactor's; one process at a time has the checkpoint open (LevelDB's own lock).
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any, Final, Self

import msgpack
import plyvel
import structlog

from offsetd.failpoint import failpoint
from offsetd.journal.files import OsFiles, sync_directory
from offsetd.journal.fold import Fold, Place, SlotMark

logger = structlog.get_logger(__name__)

FORMAT: Final = 1
LOCK_WAIT_S: Final = 10.0
_LOCK_POLL_S: Final = 0.02
_ROW: Final = b"r"
_HEAD: Final = Struct(">cHH")
_SLOT: Final = Struct(">cH")
_META_FORMAT: Final = b"mformat"
_META_CLUSTER: Final = b"mcluster"
_META_MADE_BY: Final = b"mmade_by"
_META_PLACE: Final = b"mplace"
_META_SLOTS: Final = b"mslots"

# Uncompressed on purpose: the bytes are then those of the table, and a load is not bound by unpacking them.
_OPTIONS: Final[dict[str, Any]] = {
    "paranoid_checks": True,
    "compression": None,
    "write_buffer_size": 8 * 1024 * 1024,
    "max_file_size": 8 * 1024 * 1024,
    "block_size": 16 * 1024,
    "lru_cache_size": 16 * 1024 * 1024,
    "max_open_files": 64,
}
_REBUILD: Final = (
    "`offsetd journal repair` can rebuild it from history/ and journal/ where these reach back to batch 1 without a "
    "gap; otherwise bring back a copy of the whole data directory"
)


class CheckpointRefused(Exception):
    """The checkpoint cannot be trusted or used, so nothing may be served from it."""

    def __init__(self, path: Path, reason: str, advice: str) -> None:
        super().__init__(f"the checkpoint {path} {reason}. {advice}.")
        self.path = path
        self.reason = reason
        self.advice = advice


class CheckpointLost(CheckpointRefused):
    """What it held is gone, harmed or not ours; history may bring it back."""

    def __init__(self, path: Path, reason: str, advice: str = _REBUILD) -> None:
        super().__init__(path, reason, advice)


def row_key(slot: int, group_id: str, topic: str) -> bytes:
    """Return the key of one row; a group's rows are neighbours, its own row (topic "") first."""
    group = group_id.encode()
    return _HEAD.pack(_ROW, slot, len(group)) + group + topic.encode()


def directory_bytes(directory: Path) -> int:
    """Return how much the files of a directory take, also while another process works in it; 0 if there is none."""
    total = 0
    try:
        for path in directory.iterdir():
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
    except FileNotFoundError:
        return 0
    return total


class Checkpoint:
    """An open checkpoint. Made by `create` or `open`, and to be closed: others wait for its lock."""

    def __init__(self, directory: Path, *, cluster_id: str, wait_s: float = LOCK_WAIT_S) -> None:
        self._directory = directory
        self._wait_s = wait_s
        self._db = self._open()
        try:
            self.place = self._identify(cluster_id)
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def open(cls, directory: Path, *, cluster_id: str, wait_s: float = LOCK_WAIT_S) -> "Checkpoint":
        """Open the checkpoint of a cluster, waiting a while for a compaction that is just ending.

        Raises:
            CheckpointRefused: it is missing, damaged, in use, of another cluster or of a newer format.
        """
        return cls(directory, cluster_id=cluster_id, wait_s=wait_s)

    @classmethod
    def create(cls, directory: Path, *, cluster_id: str, made_by: str) -> "Checkpoint":
        """Make an empty checkpoint, which holds the journal up to batch 0, and open it.

        A crash leaves either the whole checkpoint or none.

        Raises:
            CheckpointRefused: there is one already, or none can be made there.
        """
        if directory.exists():
            raise CheckpointRefused(directory, "is there already", "Move it away before another one is made")
        unfinished = directory.with_name(directory.name + ".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            db = plyvel.DB(str(unfinished), create_if_missing=True, error_if_exists=True, **_OPTIONS)
            with db.write_batch(transaction=True, sync=True) as batch:
                batch.put(_META_FORMAT, msgpack.packb(FORMAT))
                batch.put(_META_CLUSTER, msgpack.packb(cluster_id))
                batch.put(_META_MADE_BY, msgpack.packb(made_by))
                for key, value in _place_rows(Place()):
                    batch.put(key, value)
            db.close()
            # Opened once more, LevelDB moves what was written from its log into a table: see `fold`.
            plyvel.DB(str(unfinished), **_OPTIONS).close()
            files = OsFiles()
            sync_directory(files, unfinished)
            unfinished.rename(directory)
            sync_directory(files, directory.parent)
        except (plyvel.Error, OSError) as error:
            raise CheckpointRefused(directory, f"cannot be made: {_words(error)}", "Look at the disk") from error
        return cls(directory, cluster_id=cluster_id)

    @staticmethod
    def exists(directory: Path) -> bool:
        """Return whether anything stands where the checkpoint should, whole or not."""
        return directory.exists()

    @property
    def directory(self) -> Path:
        """Where it lies."""
        return self._directory

    def rows(self, slot: int) -> Iterator[tuple[str, str, bytes]]:
        """Yield (group id, topic, value) of all rows of a slot, a group's rows together, its own row ("") first.

        Raises:
            CheckpointRefused: a block of it is damaged.
        """
        head = _HEAD.size
        # A bytes prefix compare is cheaper than decoding the same group id for each of its topics.
        prefix, group_id, end = b"\0", "", 0
        key = None
        try:
            with self._db.iterator(prefix=_SLOT.pack(_ROW, slot), verify_checksums=True, fill_cache=False) as iterator:
                for key, value in iterator:
                    if not key.startswith(prefix):
                        end = head + int.from_bytes(key[3:5], "big")
                        prefix = key[:end]
                        group_id = key[head:end].decode()
                    yield group_id, key[end:].decode(), value
            # Where damage hides all that is left, plyvel's iterator ends as if nothing were; a raw one raises.
            with self._raw_iterator(fill_cache=False) as raw:
                raw.seek(_SLOT.pack(_ROW, slot) if key is None else key)
                if key is not None:
                    raw.next()
        except plyvel.Error as error:
            raise self._damaged(error) from error

    def group_rows(self, slot: int, group_id: str) -> Iterator[tuple[str, bytes]]:
        """Yield (topic, value) of one group's rows.

        Raises:
            CheckpointRefused: a block of it is damaged.
        """
        prefix = row_key(slot, group_id, "")
        try:
            with self._raw_iterator(fill_cache=True) as raw:
                raw.seek(prefix)
                while raw.valid() and (key := raw.key()).startswith(prefix):
                    yield key[len(prefix) :].decode(), raw.value()
                    raw.next()
        except plyvel.Error as error:
            raise self._damaged(error) from error

    def fold(self, fold: Fold) -> None:
        """Write one fold with its place, synced; when this returns the batches up to there may be released.

        LevelDB's log never holds more than one fold that was not moved into a table since: should power fail while
        it is written, the log may be dropped (`_open`) without losing anything that the journal no longer has.

        Raises:
            CheckpointRefused: LevelDB could not write; what was there before is still there.
        """
        failpoint("fold_before_write")
        try:
            with self._db.write_batch(transaction=True, sync=True) as batch:
                for key, value in fold.puts.items():
                    batch.put(row_key(*key), value)
                for key in fold.deletes:
                    batch.delete(row_key(*key))
                for name, packed in _place_rows(fold.place):
                    batch.put(name, packed)
            self._db.close()
        except plyvel.Error as error:
            raise CheckpointRefused(
                self._directory, f"could not be written: {_words(error)}", "Nothing was released; look at the disk"
            ) from error
        failpoint("fold_after_write")
        self._db = self._open()
        sync_directory(OsFiles(), self._directory)
        self.place = fold.place

    def _raw_iterator(self, *, fill_cache: bool) -> Any:
        return self._db.raw_iterator(verify_checksums=True, fill_cache=fill_cache)

    def size_bytes(self) -> int:
        """Return how much its files take."""
        return directory_bytes(self._directory)

    def close(self) -> None:
        """Let others open it. Harmless when it is closed already."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Any:
        if not (self._directory / "CURRENT").is_file():
            reason = "is damaged: it has no file CURRENT" if self._directory.exists() else "is missing"
            raise CheckpointLost(self._directory, reason)
        try:
            return self._open_locked(checked=True)
        except plyvel.CorruptionError as error:
            torn = _words(error)
        # A power cut in the middle of a fold leaves a torn record in LevelDB's log. Without its checks LevelDB drops
        # it, and the checkpoint is where it was before that fold. Opened once more with the checks on, all else is
        # still looked at; that the place still meets the journal is looked at by the journal's recovery.
        try:
            self._open_locked(checked=False).close()
            db = self._open_locked(checked=True)
        except plyvel.CorruptionError as error:
            raise self._damaged(error) from error
        logger.warning("checkpoint_log_dropped", path=str(self._directory), reason=torn)
        return db

    def _open_locked(self, *, checked: bool) -> Any:
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                return plyvel.DB(str(self._directory), **{**_OPTIONS, "paranoid_checks": checked})
            except plyvel.CorruptionError:
                raise
            except plyvel.Error as error:
                if not _words(error).startswith("IO error: lock "):
                    advice = "Look at the disk and at who owns the files"
                    raise CheckpointRefused(self._directory, f"cannot be opened: {_words(error)}", advice) from error
                if time.monotonic() >= deadline:
                    raise CheckpointRefused(
                        self._directory,
                        f"is still in use by another process after {self._wait_s:g} s",
                        "Wait for that compaction or `offsetd journal` command to end, or stop it",
                    ) from error
            time.sleep(_LOCK_POLL_S)

    def _identify(self, cluster_id: str) -> Place:
        try:
            version = self._meta(_META_FORMAT)
            if not isinstance(version, int) or version < 1:
                raise CheckpointLost(self._directory, "is damaged: it does not say its format")
            if version > FORMAT:
                raise CheckpointRefused(
                    self._directory,
                    f"is of format {version}, this offsetd knows format {FORMAT}",
                    "Start the offsetd that wrote it, or a later one",
                )
            owner = self._meta(_META_CLUSTER)
            if owner != cluster_id:
                raise CheckpointLost(
                    self._directory,
                    f"belongs to the cluster {owner}, this is {cluster_id}",
                    f"Bring back the checkpoint of this cluster; {_REBUILD}",
                )
            number, crc, epoch, time_ms = self._meta(_META_PLACE)
            slots = {slot: SlotMark(sequence, newest) for slot, sequence, newest in self._meta(_META_SLOTS)}
        except plyvel.Error as error:
            raise self._damaged(error) from error
        except (TypeError, ValueError) as error:
            raise CheckpointLost(self._directory, "is damaged: it does not say where it ends") from error
        return Place(number=number, crc=crc, epoch=epoch, time_ms=time_ms, slots=slots)

    def _meta(self, key: bytes) -> Any:
        packed = self._db.get(key, verify_checksums=True)
        return None if packed is None else msgpack.unpackb(packed, use_list=False)

    def _damaged(self, error: Exception) -> CheckpointLost:
        return CheckpointLost(self._directory, f"is damaged: {_words(error)}")


def _place_rows(place: Place) -> tuple[tuple[bytes, bytes], ...]:
    marks = tuple((slot, mark.sequence, mark.newest_ms) for slot, mark in sorted(place.slots.items()))
    where = (place.number, place.crc, place.epoch, place.time_ms)
    return (_META_PLACE, msgpack.packb(where)), (_META_SLOTS, msgpack.packb(marks))


def _words(error: Exception) -> str:
    """Return what LevelDB says; plyvel passes it on as bytes."""
    text = error.args[0] if error.args else error
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(error)
