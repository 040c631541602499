"""Two directories trade names in one instant: renameat2(2) with RENAME_EXCHANGE, which Python does not offer."""

import ctypes
import errno
import os
import uuid
from pathlib import Path
from typing import Final

from offsetd.pipeline.load.refusal import LoadRefused

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


def exchange(one: Path, other: Path) -> None:
    """Let two paths of one filesystem trade places; at every instant each of them names one of the two.

    Raises:
        OSError: nothing was changed.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(one))
    if library.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(one))


def refuse_without_exchange(directory: Path) -> None:
    """Try it with two empty directories, before hours of work depend on it.

    Raises:
        LoadRefused: this system or filesystem cannot do it.
    """
    probes = [directory / f"probe-{uuid.uuid4().hex[:12]}" for _ in range(2)]
    try:
        for probe in probes:
            probe.mkdir()
        exchange(*probes)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.ENOTSUP):
            raise
        raise LoadRefused(
            f"{directory} is on a filesystem or system that cannot exchange two directories in one step "
            "(renameat2 with RENAME_EXCHANGE: Linux with ext4, XFS, Btrfs or tmpfs can), so folding would be seen by "
            "readers. Nothing was changed."
        ) from error
    finally:
        for probe in probes:
            if probe.is_dir():
                probe.rmdir()
