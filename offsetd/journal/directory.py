"""The data directory: whose it is, who may use it, and where things lie in it.

Made once, checked at every start. What the journal's files hold is not looked at here.
"""

import base64
import binascii
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

from offsetd.journal.files import Files, OsFiles, replace_file, sync_directory

logger = structlog.get_logger(__name__)

FORMAT: Final = 1
IDENTITY: Final = "identity.json"
LOCK: Final = "lock"
_IDENTITY_BYTES_MAX: Final = 64 * 1024
_CLUSTER_BYTES: Final = 16
_TOP: Final = frozenset({IDENTITY, IDENTITY + ".tmp", "lost+found"})


class DirectoryRefused(Exception):
    """The data directory cannot be used by this daemon; the words say why, and what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose data this is."""

    cluster_id: str
    broker_id: int
    slots: int

    @property
    def cluster(self) -> bytes:
        """The cluster's uuid."""
        return decode_cluster_id(self.cluster_id)


@dataclass(frozen=True, slots=True)
class BrokerDirectory:
    """Where a broker's things lie."""

    path: Path

    @property
    def journal(self) -> Path:
        """The segments."""
        return self.path / "journal"

    @property
    def quarantine(self) -> Path:
        """What was cut off."""
        return self.path / "quarantine"

    @property
    def checkpoint(self) -> Path:
        """The LevelDB checkpoint."""
        return self.path / "checkpoint"

    @property
    def history(self) -> Path:
        """Segments that compaction released."""
        return self.path / "history" / "segments"

    @property
    def sealed(self) -> Path:
        """What these segments became: files of Parquet, by day. There is none before the first is sealed."""
        return self.path / "history" / "sealed"

    @property
    def reserve(self) -> Path:
        """Space for a full disk."""
        return self.path / "reserve"

    @property
    def lock(self) -> Path:
        """Held by the daemon that uses the directory."""
        return self.path / LOCK


def broker_directory(data: Path, broker_id: int) -> BrokerDirectory:
    """Return where a broker's things lie below a data directory."""
    return BrokerDirectory(data / f"broker-{broker_id}")


def make_cluster_id(random_bytes: bytes) -> str:
    """Return 16 random bytes as a cluster id: 22 characters of url-safe base64."""
    assert len(random_bytes) == _CLUSTER_BYTES, "a cluster id is made of 16 bytes"
    return base64.urlsafe_b64encode(random_bytes).decode("ascii").rstrip("=")


def decode_cluster_id(cluster_id: str) -> bytes:
    """Return the 16 bytes of a cluster id.

    Raises:
        ValueError: it is no cluster id.
    """
    try:
        decoded = base64.b64decode(cluster_id + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    # The last character has spare bits: only one of its values is the text of these bytes.
    if len(decoded) != _CLUSTER_BYTES or make_cluster_id(decoded) != cluster_id:
        raise ValueError(f"{cluster_id!r} is no cluster id: want 22 characters of url-safe base64")
    return decoded


class DirectoryLock:
    """One daemon per broker directory. Released by the kernel when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock.

        Raises:
            DirectoryRefused: another process has it, or the file system cannot lock.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        self._lock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)

    def share(self) -> None:
        """Take the lock to read: beside other readers, never beside a daemon. Changes nothing in the directory.

        Raises:
            DirectoryRefused: a daemon has it, or the file system cannot lock.
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return  # a copy without its lock: no daemon uses that
        self._lock(descriptor, fcntl.LOCK_SH)

    def _lock(self, descriptor: int, how: int) -> None:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise DirectoryRefused(
                    f"{self._path.parent} is in use by the process {holder}, or by an `offsetd journal` command: one "
                    "daemon per data directory, and none while a command looks at it. Stop that one, or give this one "
                    "another --data."
                ) from None
            raise DirectoryRefused(
                f"{self._path} cannot be locked ({error.strerror}), so nothing would keep a second daemon out. "
                "Put the data directory on a local file system."
            ) from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have the directory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def open_directory(
    data: Path,
    *,
    broker_id: int,
    slots: int,
    random_bytes: Callable[[int], bytes],
    cluster_id: str | None = None,
    files: Files | None = None,
) -> tuple[Identity, BrokerDirectory, DirectoryLock]:
    """Check the data directory, or make it if there is none, and lock it.

    Args:
        data: the directory that the settings name.
        broker_id: of this broker.
        slots: how many slots this broker has.
        random_bytes: gives so many random bytes, for a new cluster id.
        cluster_id: what the settings demand; None takes what the directory says.
        files: the file system.

    Raises:
        DirectoryRefused: it belongs to another cluster, broker, slot count or format, or to another daemon.
    """
    files = files or OsFiles()
    broker = broker_directory(data, broker_id)
    try:
        if not data.is_dir():
            data.mkdir(parents=True)
            sync_directory(files, data.parent)
        with _alone(data):
            identity = _open_cluster(files, data, broker_id, slots, cluster_id, random_bytes)
            if not broker.path.is_dir():
                files.make_directory(broker.path)
                sync_directory(files, data)
        lock = DirectoryLock(broker.lock)
        lock.take()
    except OSError as error:
        raise DirectoryRefused(
            f"the data directory {data} cannot be used: {error.strerror} ({error.filename or data}). "
            "It must be on a writable file system and belong to the daemon's user."
        ) from error
    try:
        _open_broker(files, broker, identity)
    except OSError as error:
        lock.release()
        raise DirectoryRefused(f"{broker.path} cannot be used: {error.strerror} ({error.filename})") from error
    except DirectoryRefused:
        lock.release()
        raise
    return identity, broker, lock


def read_identity(data: Path, broker_id: int) -> Identity:
    """Return whose data a directory holds, without a lock and without changing it.

    Raises:
        DirectoryRefused: it is no data directory of this broker, or of a newer format.
    """
    top = _load(OsFiles(), data / IDENTITY)
    if top is None:
        raise DirectoryRefused(f"{data} is no data directory: it has no {IDENTITY}.")
    broker = broker_directory(data, broker_id)
    if not broker.path.is_dir():
        raise DirectoryRefused(f"{data} holds nothing of broker {broker_id}; broker.id says which one is meant.")
    identity = Identity(_text(top, "cluster_id", data), broker_id, _number(top, "slots", data))
    _check_broker(OsFiles(), broker, identity)
    return identity


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Keep two brokers that start at once on one new directory from giving it two cluster ids."""
    descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open_cluster(
    files: Files,
    data: Path,
    broker_id: int,
    slots: int,
    wanted: str | None,
    random_bytes: Callable[[int], bytes],
) -> Identity:
    path = data / IDENTITY
    found = _load(files, path)
    if found is None:
        strangers = sorted(listed.name for listed in files.list(data) if listed.name not in _TOP)
        if strangers:
            raise DirectoryRefused(
                f"{data} is not empty (it holds {strangers[0]!r}) and has no {IDENTITY}, so whose data it is cannot be "
                "told. Bring the file back, or give an empty directory."
            )
        cluster_id = wanted or make_cluster_id(random_bytes(_CLUSTER_BYTES))
        decode_cluster_id(cluster_id)
        _save(files, path, {"format": FORMAT, "cluster_id": cluster_id, "slots": slots})
        return Identity(cluster_id, broker_id, slots)
    cluster_id = _text(found, "cluster_id", path)
    if wanted is not None and wanted != cluster_id:
        raise DirectoryRefused(
            f"{data} holds data of the cluster {cluster_id}, the settings say {wanted}. "
            "Correct the setting, or give the other cluster's directory."
        )
    if _number(found, "slots", path) != slots:
        raise DirectoryRefused(
            f"{data} was made with {found['slots']} slots (offsets.topic.num.partitions), the settings say {slots}. "
            "The number cannot change once there is data: set it back."
        )
    for listed in files.list(data):
        if listed.name not in _TOP and not listed.name.startswith("broker-"):
            logger.warning("foreign_file_ignored", path=str(data / listed.name))
    return Identity(cluster_id, broker_id, slots)


def _open_broker(files: Files, broker: BrokerDirectory, identity: Identity) -> None:
    if not _check_broker(files, broker, identity):
        members = {"format": FORMAT, "cluster_id": identity.cluster_id, "broker_id": identity.broker_id}
        _save(files, broker.path / IDENTITY, members)
    for directory in (broker.journal, broker.quarantine, broker.history.parent, broker.history):
        if not directory.is_dir():
            files.make_directory(directory)
            sync_directory(files, directory.parent)


def _check_broker(files: Files, broker: BrokerDirectory, identity: Identity) -> bool:
    """Return whether the broker's directory says whose it is; one without data need not.

    Raises:
        DirectoryRefused: it is another's, or nobody knows whose.
    """
    path = broker.path / IDENTITY
    found = _load(files, path)
    if found is None:
        present = {listed.name for listed in files.list(broker.path)}
        if present & {"journal", "checkpoint"}:
            raise DirectoryRefused(
                f"{broker.path} holds data, but no {IDENTITY}, so whose it is cannot be told. Bring the file back."
            )
        return False
    if _text(found, "cluster_id", path) != identity.cluster_id:
        raise DirectoryRefused(
            f"{broker.path} holds data of the cluster {found['cluster_id']}, "
            f"the directory above is of {identity.cluster_id}. Give each cluster its own directory."
        )
    if _number(found, "broker_id", path) != identity.broker_id:
        raise DirectoryRefused(
            f"{broker.path} holds data of broker {found['broker_id']}, this is broker {identity.broker_id}. "
            "Give the directory back its name, or set broker.id."
        )
    return True


def _save(files: Files, path: Path, members: dict[str, object]) -> None:
    replace_file(files, path, json.dumps(members, indent=2).encode("ascii") + b"\n")


def _load(files: Files, path: Path) -> dict[str, Any] | None:
    try:
        text = files.read(path, 0, _IDENTITY_BYTES_MAX)
    except FileNotFoundError:
        return None
    try:
        members = json.loads(text)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        raise DirectoryRefused(f"{path} cannot be read as JSON. Bring back a whole copy of it.")
    if _number(members, "format", path) > FORMAT:
        raise DirectoryRefused(
            f"{path} is of format {members['format']}, this offsetd knows format {FORMAT}. "
            "Start the offsetd that wrote it, or a later one. Nothing was changed."
        )
    return members


def _number(members: dict[str, Any], name: str, path: Path) -> int:
    value = members.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DirectoryRefused(f"{path} has no number {name!r}. Bring back a whole copy of it.")
    return value


def _text(members: dict[str, Any], name: str, path: Path) -> str:
    value = members.get(name)
    try:
        decode_cluster_id(str(value))
    except ValueError:
        raise DirectoryRefused(f"{path} has no {name!r} of 22 characters. Bring back a whole copy of it.") from None
    return str(value)
