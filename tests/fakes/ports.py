"""Ports for servers that are started more than once."""

import socket
from random import Random


def lasting_port() -> int:
    """Find a free port below those that the system gives away, so that nobody is given it between two lives."""
    random = Random()
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
