"""Ask a broker and its HTTP port for a sign of life. Standard library only, so that a health check starts quickly."""

import socket
import struct
import time
from typing import NamedTuple

from offsetd.settings.address import Address

API_VERSIONS = 18
OFFSET_COMMIT = 8
CLIENT_ID = b"offsetd-healthcheck"
CORRELATION_ID = 0x0FF5E7
REPLY_BYTES_MAX = 1 << 16


class Finding(NamedTuple):
    """Whether it is well, and one sentence that says so."""

    well: bool
    sentence: str


def probe_broker(address: Address, *, seconds_max: float) -> Finding:
    """Send a real ApiVersions request and look for OffsetCommit in the reply."""
    body = struct.pack(">hhih", API_VERSIONS, 0, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    deadline = time.monotonic() + seconds_max
    try:
        with socket.create_connection(address, timeout=seconds_max) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", _exactly(connection, 4, deadline))
            if not 10 <= size <= REPLY_BYTES_MAX:
                return Finding(well=False, sentence=f"{address} answered, but not as a Kafka broker does.")
            reply = _exactly(connection, size, deadline)
    except OSError as error:
        return Finding(well=False, sentence=f"{address} does not answer: {_reason(error)}.")
    correlation_id, error_code, count = struct.unpack_from(">ihi", reply)
    if correlation_id != CORRELATION_ID or error_code != 0 or count * 6 != len(reply) - 10:
        return Finding(well=False, sentence=f"{address} answered, but not as a Kafka broker does.")
    served = {key for key, _, _ in struct.iter_unpack(">hhh", reply[10:])}
    if OFFSET_COMMIT not in served:
        return Finding(well=False, sentence=f"{address} answered, but does not serve OffsetCommit.")
    return Finding(well=True, sentence=f"{address} answers, and serves {count} APIs.")


def probe_ready(address: Address, *, seconds_max: float) -> Finding:
    """Ask ``/readyz``; its body says what is missing."""
    request = f"GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode("ascii")
    reply = b""
    deadline = time.monotonic() + seconds_max
    try:
        with socket.create_connection(address, timeout=seconds_max) as connection:
            connection.sendall(request)
            while len(reply) < REPLY_BYTES_MAX and (data := _some(connection, 4096, deadline)):
                reply += data
    except OSError as error:
        return Finding(well=False, sentence=f"http://{address}/readyz does not answer: {_reason(error)}.")
    head, _, body = reply.partition(b"\r\n\r\n")
    status = head.split(b" ")[1:2]
    text = body.decode(errors="replace").strip()
    if status != [b"200"]:
        return Finding(well=False, sentence=f"http://{address}/readyz is not ready: {text or 'no reason given'}")
    return Finding(well=True, sentence=f"http://{address}/readyz is ready.")


def _exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < size:
        data = _some(connection, size - len(received), deadline)
        if not data:
            raise ConnectionResetError(0, "it closed the connection")
        received += data
    return bytes(received)


def _some(connection: socket.socket, size: int, deadline: float) -> bytes:
    """Receive what there is; the deadline is for all of a reply, so that a byte now and then does not pass for life."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    connection.settimeout(remaining)
    return connection.recv(size)


def _reason(error: OSError) -> str:
    return "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
