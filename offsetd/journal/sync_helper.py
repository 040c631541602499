"""The process that syncs: it gets descriptors through its standard input, a socket, and answers one byte per sync.

Run as a script, without the rest of offsetd, so that it starts in milliseconds and holds nothing but what it syncs.
Commands, one byte each: `u` with a descriptor: this is the file now. `s`: fdatasync it and answer. `r` with several
descriptors: fsync them in order, the first one is the file from now on, and answer. An answer is 0, or the error's
number; after an error it ends.
"""

import errno
import os
import signal
import socket
import sys
import time

DESCRIPTORS_MAX = 8


def _fault() -> tuple[str, str, int]:
    """Return what tests ask of the helper: verb, value, and at which sync (0: at each)."""
    for pair in os.environ.get("OFFSETD_FAILPOINTS", "").split(","):
        name, _, action = pair.partition("=")
        if name == "sync":
            action, _, hit = action.partition("@")
            verb, _, value = action.partition(":")
            return verb, value, int(hit or 0)
    return "", "", 0


def _inject(fault: tuple[str, str, int], count: int) -> None:
    verb, value, hit = fault
    if not verb or (hit and hit != count):
        return
    if verb == "exit":
        os._exit(86)
    if verb == "sleep":
        time.sleep(int(value) / 1000)
    if verb == "error":
        code = getattr(errno, value)
        raise OSError(code, os.strerror(code))


def main() -> int:
    """Serve until the socket closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    daemon = socket.socket(fileno=0)
    fault = _fault()
    current = -1
    count = 0
    daemon.send(b"\0")  # from here on no signal that stops the daemon can stop the helper before it
    while True:
        command, received, _, _ = socket.recv_fds(daemon, 1, DESCRIPTORS_MAX)
        if not command:
            return 0
        code = 0
        try:
            if command == b"s":
                count += 1
                _inject(fault, count)
                os.fdatasync(current)
            elif command == b"r":
                for descriptor in received:
                    os.fsync(descriptor)
            if received:
                if current >= 0:
                    os.close(current)
                current = received[0]
                for descriptor in received[1:]:
                    os.close(descriptor)
        except OSError as error:
            code = min(error.errno or errno.EIO, 255)
        if command != b"u":
            daemon.send(bytes((code,)))
        if code:
            return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)  # the daemon has ended
