"""The sealer: `python -m offsetd.history.sealer`, a low-priority process of its own that the daemon starts.

It ends when its parent does, whatever it is doing. One JSON line on stdout says what was done, also when not all could
be; a failure is a sentence on stderr and exit code 1.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from offsetd.journal.directory import DirectoryRefused, broker_directory, read_identity
from offsetd.journal.worker import end_with_parent, step_back

#: Exit code where nothing was wrong, but another process is at it.
BUSY: Final = 75


def main(arguments: Sequence[str] | None = None) -> int:
    """Seal as the command line says; return the exit code."""
    options = _parse(arguments)
    if options.parent is not None:
        end_with_parent(options.parent)
    step_back()
    started = time.monotonic()
    try:
        # Only now, because they take long to load and the parent may end meanwhile.
        import pyarrow as pa  # noqa: PLC0415

        from offsetd.history import seal  # noqa: PLC0415
    except ImportError as error:
        sys.stderr.write(f"history cannot be sealed without pyarrow and numpy: {error}\n")
        return 1
    # One core at most, whatever the machine has.
    pa.set_cpu_count(1)
    code, done = 0, seal.Done()
    try:
        identity = read_identity(options.data, options.broker_id)
        seal.seal(
            broker_directory(options.data, options.broker_id),
            identity,
            done=done,
            file_rows=options.file_rows or seal.FILE_ROWS,
        )
    except seal.SealedByAnother as busy:
        sys.stderr.write(f"{busy}\n")
        code = BUSY
    except (*seal.REFUSALS, DirectoryRefused, OSError) as error:
        sys.stderr.write(f"{error}\n")
        code = 1
    sys.stdout.write(json.dumps({**asdict(done), "seconds": round(time.monotonic() - started, 6)}) + "\n")
    sys.stdout.flush()
    return code


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="offsetd.history.sealer", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--broker-id", type=int, required=True)
    parser.add_argument("--file-rows", type=int, help="records of a file")
    parser.add_argument("--parent", type=int, help="end when this process does, or when stdin closes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
