"""One HTTP request, read from bytes, and one response, written to bytes. Pure: sockets live in the server."""

from typing import NamedTuple

HEADER_BYTES_MAX = 8192
HEADER_END = b"\r\n\r\n"
REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
HTML = "text/html; charset=utf-8"


class Response(NamedTuple):
    """What is answered."""

    status: int
    content_type: str
    body: bytes

    def encoded(self) -> bytes:
        """Return the bytes that go to the socket; every connection serves one request."""
        head = (
            f"HTTP/1.1 {self.status} {REASONS[self.status]}\r\n"
            f"Content-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\n"
            "Cache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\n"
        )
        if self.status == 405:
            head += "Allow: GET\r\n"
        return f"{head}Connection: close\r\n\r\n".encode("ascii") + self.body


def refusal(status: int) -> Response:
    """Return a response that says no more than its status."""
    return Response(status, TEXT, f"{REASONS[status]}\n".encode("ascii"))


def read_path(received: bytes) -> str | Response | None:
    """Return the path that a GET asks for, a refusal, or None while the header is not whole."""
    end = received.find(HEADER_END)
    if end < 0:
        return refusal(431) if len(received) > HEADER_BYTES_MAX else None
    if end > HEADER_BYTES_MAX:
        return refusal(431)
    line = received.split(b"\r\n", 1)[0].split(b" ")
    if len(line) != 3 or not line[2].startswith(b"HTTP/1.") or not line[1].startswith(b"/"):
        return refusal(400)
    if line[0] != b"GET":
        return refusal(405)
    return line[1].split(b"?", 1)[0].decode("latin-1")
