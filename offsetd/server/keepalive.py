"""How a peer that vanished without a word is found: the system asks it, and waits only so long for its answers."""

import socket

#: Silence before the system asks, between its questions, and how many may stay unanswered.
_IDLE_SECONDS = 60
_INTERVAL_SECONDS = 10
_QUESTIONS_MAX = 3
#: Bytes that we sent must be acknowledged by then; keepalive asks nothing while there are such.
_UNACKNOWLEDGED_MS_MAX = 90_000


def keep_alive(sock: socket.socket) -> None:
    """Have the system end the connection of a peer that is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _INTERVAL_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _QUESTIONS_MAX)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS_MAX)
