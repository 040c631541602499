"""The health check against listeners that answer well, badly, or not at all."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from offsetd.cli import commands, healthcheck
from offsetd.cli.probe import CORRELATION_ID, probe_broker, probe_ready
from offsetd.settings import Address

SECONDS_MAX = 2.0


@contextmanager
def listener(answer: Callable[[bytes], bytes]) -> Iterator[Address]:
    """Serve one connection: read once, answer, close."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer(connection.recv(4096)))

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join(5)


def api_versions(*keys: int, correlation_id: int = CORRELATION_ID, error: int = 0) -> bytes:
    body = struct.pack(">ihi", correlation_id, error, len(keys))
    body += b"".join(struct.pack(">hhh", key, 0, 9) for key in keys)
    return struct.pack(">i", len(body)) + body


def test_a_broker_that_serves_commits_is_well() -> None:
    seen: list[bytes] = []

    def answer(request: bytes) -> bytes:
        seen.append(request)
        return api_versions(8, 9, 18)

    with listener(answer) as address:
        finding = probe_broker(address, seconds_max=SECONDS_MAX)

    assert finding == (True, f"{address} answers, and serves 3 APIs.")
    size, key, version = struct.unpack_from(">ihh", seen[0])
    assert (size, key, version) == (len(seen[0]) - 4, 18, 0)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (b"", "it closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not as a Kafka broker does"),
        (api_versions(8)[:-1], "it closed the connection"),
        (api_versions(8, correlation_id=1), "not as a Kafka broker does"),
        (api_versions(8, error=35), "not as a Kafka broker does"),
        (api_versions(18), "does not serve OffsetCommit"),
        (struct.pack(">i", 3) + b"abc", "not as a Kafka broker does"),
    ],
)
def test_any_other_answer_is_not_well(reply: bytes, says: str) -> None:
    with listener(lambda _: reply) as address:
        finding = probe_broker(address, seconds_max=SECONDS_MAX)

    assert not finding.well
    assert says in finding.sentence


def test_a_listener_that_says_nothing_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        finding = probe_broker(Address("127.0.0.1", server.getsockname()[1]), seconds_max=0.05)

    assert finding.sentence.endswith("does not answer: timed out.")


def test_readiness_is_asked_over_http() -> None:
    with listener(lambda _: b"HTTP/1.1 200 OK\r\n\r\n{}") as address:
        assert probe_ready(address, seconds_max=SECONDS_MAX).well
    with listener(lambda _: b'HTTP/1.1 503 Service Unavailable\r\n\r\n{"loading": 3}') as address:
        finding = probe_ready(address, seconds_max=SECONDS_MAX)

    assert finding == (False, f'http://{address}/readyz is not ready: {{"loading": 3}}')


def test_the_command_exits_by_what_it_found() -> None:
    with listener(lambda _: api_versions(8)) as address:
        well = CliRunner().invoke(commands, ["healthcheck", "--listen", str(address)])
    gone = CliRunner().invoke(commands, ["healthcheck", "--listen", str(address)])

    assert (well.exit_code, well.output) == (0, f"{address} answers, and serves 1 APIs.\n")
    assert (gone.exit_code, gone.output) == (1, f"Error: {address} does not answer: Connection refused.\n")


def test_the_command_can_ask_for_readiness_too() -> None:
    with (
        listener(lambda _: api_versions(8)) as address,
        listener(lambda _: b"HTTP/1.1 503 x\r\n\r\nloading") as http,
    ):
        result = CliRunner().invoke(commands, ["healthcheck", "--ready", "--listen", str(address), "--http", str(http)])

    assert result.exit_code == 1
    assert "is not ready: loading" in result.output


def test_a_wildcard_listener_is_reached_by_loopback() -> None:
    """Inside a container the broker listens on 0.0.0.0 and advertises a name that may not lead back here."""
    with listener(lambda _: api_versions(8)) as address:
        result = CliRunner().invoke(
            commands,
            ["healthcheck", "--listen", f"0.0.0.0:{address.port}", "--advertise", "nowhere.invalid:1"],
        )

    assert result.exit_code == 0
    assert healthcheck.SECONDS_MAX <= 3
