"""The daemon's side of the sync helper: start it, hand it files, ask it to sync, read its answers.

The helper is a process, not a thread, so that a sync never fights the loop for the interpreter.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final, Protocol

_HELPER: Final = Path(__file__).with_name("sync_helper.py")
_START_SECONDS_MAX: Final = 10.0
_END_SECONDS_MAX: Final = 10.0


class SyncerGone(Exception):
    """The helper has ended, so nothing can be made durable any more."""


class SyncFiles(Protocol):
    """What the writer asks of a syncer."""

    def use(self, descriptor: int) -> None:
        """Name the file that `request` syncs."""

    def request(self) -> None:
        """Ask for the data of the current file to be made durable; one answer follows."""

    def request_roll(self, descriptor: int, others: list[int]) -> None:
        """Ask for a new file, from now on the current one, and the others to be made durable; one answer follows."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with an answer."""

    def read_answer(self) -> int:
        """Return 0, or the number of the error that the sync met."""

    def close(self) -> None:
        """Let the helper end."""


class Syncer:
    """One sync helper. Start it before the loop and before any thread."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the helper and wait until it is deaf to the signals that stop the daemon.

        Raises:
            SyncerGone: it did not come up.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            # A session of its own: a terminal's Ctrl-C is for the daemon, which needs its last sync.
            self._process = subprocess.Popen(  # noqa: S603 -- our own interpreter and our own file
                [sys.executable, "-I", "-S", str(_HELPER)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        ours.settimeout(_START_SECONDS_MAX)
        try:
            ready = ours.recv(1)
        except OSError:
            ready = b""
        if ready != b"\0":
            self.close()
            raise SyncerGone("the sync helper did not start; what it printed stands above")
        ours.settimeout(0)

    @property
    def process_id(self) -> int:
        """The helper's process id."""
        assert self._process is not None, "start the syncer first"
        return self._process.pid

    def use(self, descriptor: int) -> None:
        """Name the file that `request` syncs."""
        self._send(b"u", [descriptor])

    def request(self) -> None:
        """Ask for the data of the current file to be made durable; one answer follows."""
        assert self._socket is not None, "start the syncer first"
        try:
            self._socket.send(b"s")
        except OSError as error:
            raise SyncerGone(f"the sync helper does not listen: {os.strerror(error.errno or 0)}") from error

    def request_roll(self, descriptor: int, others: list[int]) -> None:
        """Ask for a new file, from now on the current one, and the others to be made durable; one answer follows."""
        self._send(b"r", [descriptor, *others])

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with an answer."""
        assert self._socket is not None, "start the syncer first"
        return self._socket.fileno()

    def read_answer(self) -> int:
        """Return 0, or the number of the error that the sync met.

        Raises:
            SyncerGone: the helper has ended.
            BlockingIOError: there is no answer yet.
        """
        assert self._socket is not None, "start the syncer first"
        try:
            answer = self._socket.recv(1)
        except ConnectionResetError:
            answer = b""
        if not answer:
            raise SyncerGone("the sync helper has ended")
        return answer[0]

    def close(self) -> None:
        """Let the helper end, and wait for it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(_END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _send(self, command: bytes, descriptors: list[int]) -> None:
        assert self._socket is not None, "start the syncer first"
        try:
            socket.send_fds(self._socket, [command], descriptors)
        except OSError as error:
            raise SyncerGone(f"the sync helper does not listen: {os.strerror(error.errno or 0)}") from error
